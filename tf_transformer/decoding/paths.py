"""What greedy search and sampling share: hypotheses that go on without looking at each other."""

import abc
from typing import Any, NamedTuple

import tensorflow as tf

from tf_transformer.decoding.buffers import (
    empty_extras,
    follow_extras,
    pick,
    write,
    write_extras,
)
from tf_transformer.decoding.loop import search_loop
from tf_transformer.decoding.rules import NONE, is_something
from tf_transformer.decoding.search import Call, Extras, Search, SearchResult, State, call_step


class Paths(NamedTuple):
    """R = B * K hypotheses, K of each row."""

    token_ids: tf.Tensor  # (R, T)
    token_log_probs: tf.Tensor  # (R, T)
    ranks: tf.Tensor  # (R,), log P as the rules weigh it
    log_probs: Any  # (R,), log P; () where there are no rules
    tokens: tf.Tensor  # (R,), the newest of each
    finished: tf.Tensor  # (R,), END was chosen
    done: tf.Tensor  # (R,), finished or at the limit


class PathSearch(Search):
    """Chooses one token after the other; what is chosen is never given up again."""

    @abc.abstractmethod
    def choose(self, call: Call, weights: tf.Tensor, paths: Paths, index: tf.Tensor) -> tf.Tensor:
        """(R, V) weights, minus infinity where a token may not come -> (R,) int32."""

    def search(self, call: Call, state: State) -> SearchResult:
        """See `Search`."""
        limits = tf.repeat(call.max_lengths, self.num_beams)  # (R,)
        rows = tf.shape(limits)[0]

        def going(index: tf.Tensor, paths: Paths, *_: Any) -> tf.Tensor:
            return tf.logical_and(index < call.longest, tf.logical_not(tf.reduce_all(paths.done)))

        def body(index: tf.Tensor, paths: Paths, state: State, said: Extras) -> Any:
            logits, state, more = call_step(call.step, paths.tokens, state, index)
            paths = self._longer(call, paths, logits, index, limits)
            return index + 1, paths, state, write_extras(said, index, more)

        paths = Paths(
            tf.fill([rows, call.longest], self.pad_id),
            tf.zeros([rows, call.longest]),
            tf.zeros([rows]),
            tf.zeros([rows]) if call.rules else (),
            tf.fill([rows], self.start_id),
            tf.zeros([rows], tf.bool),
            limits < 1,
        )
        said = empty_extras(call.extras, self.num_beams, call.longest)
        start = tf.constant(0), paths, state, said
        _, paths, _, said = search_loop(going, body, start)
        return self._result(call, paths, said)

    def _longer(
        self, call: Call, paths: Paths, logits: tf.Tensor, index: tf.Tensor, limits: tf.Tensor
    ) -> Paths:
        weights, appraise = self.weigh(call, logits, paths.token_ids, index)
        chosen = tf.expand_dims(self.choose(call, weights, paths, index), 1)  # (R, 1)
        rank, log_prob = appraise(tf.gather(weights, chosen, batch_dims=1), chosen)
        possible = is_something(rank[:, 0])
        # A row that is done keeps what it has while its neighbours go on.
        over = paths.done
        rank = tf.where(over, 0.0, rank[:, 0])
        log_prob = rank if log_prob is None else tf.where(over, 0.0, log_prob[:, 0])
        tokens = tf.where(over, self.pad_id, chosen[:, 0])
        ends = ~over & possible & tf.equal(tokens, self.end_id)
        token_ids, token_log_probs = write(paths[:2], index, (tokens, log_prob))
        return Paths(
            token_ids,
            token_log_probs,
            paths.ranks + rank,
            paths.log_probs + log_prob if call.rules else (),
            tokens,
            paths.finished | ends,
            over | ends | ~possible | (index + 1 >= limits),
        )

    def _result(self, call: Call, paths: Paths, said: Extras) -> SearchResult:
        ranks, finished = self._by_row(paths.ranks), self._by_row(paths.finished)  # (B, K)
        log_probs = self._by_row(paths.log_probs) if call.rules else ranks
        is_found = is_something(ranks)
        if call.num_beams is not None:
            is_found &= tf.expand_dims(tf.range(self.num_beams), 0) < call.num_beams
        is_real = tf.expand_dims(is_found, 2)
        token_ids = tf.where(is_real, self._by_row(paths.token_ids), self.pad_id)
        token_log_probs = tf.where(is_real, self._by_row(paths.token_log_probs), 0.0)
        is_token = tf.cast(tf.not_equal(token_ids, self.pad_id), tf.int32)
        lengths = tf.reduce_sum(is_token, axis=2)
        places = tf.expand_dims(tf.expand_dims(tf.range(self.num_beams), 0), 2)
        said = follow_extras(said, tf.zeros_like(token_ids) + places, lengths)
        scores = call.scoring.score(ranks, lengths)
        if call.scoring.coverage_penalty:
            scores += call.scoring.cover(tf.reduce_sum(said["attention"], axis=2))
        return SearchResult(
            token_ids,
            lengths,
            tf.where(is_found, scores, NONE),
            tf.where(is_found, log_probs, NONE),
            is_found & finished,
            token_log_probs,
            said,
        )

    def _by_row(self, x: tf.Tensor) -> tf.Tensor:
        shape = tf.concat([[-1, self.num_beams], tf.shape(x)[1:]], 0)
        return tf.ensure_shape(tf.reshape(x, shape), [None, self.num_beams, *x.shape[1:]])


def best_first(found: SearchResult) -> SearchResult:
    """The places in the order that a result has; of equal ones the earlier stays first."""
    beams = found.scores.shape[1]
    found = pick(found, tf.math.top_k(found.scores, beams).indices)
    finished = tf.cast(found.finished, tf.float32)
    return pick(found, tf.math.top_k(finished, beams).indices)

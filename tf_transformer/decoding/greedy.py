"""Greedy search: the best token, position by position."""

from typing import Any, NamedTuple

import tensorflow as tf

from tf_transformer.decoding.buffers import (
    empty_extras,
    follow_extras,
    shape_invariants,
    write,
    write_extras,
)
from tf_transformer.decoding.search import (
    Extras,
    Search,
    SearchResult,
    State,
    Step,
    call_step,
    length_penalty,
)

_NONE = -float("inf")  # log P of a row that came to where nothing may follow


class Path(NamedTuple):
    """The one hypothesis of each row."""

    token_ids: tf.Tensor  # (B, T)
    token_log_probs: tf.Tensor  # (B, T)
    log_probs: tf.Tensor  # (B,)
    tokens: tf.Tensor  # (B,), the newest of each
    finished: tf.Tensor  # (B,), END was chosen
    done: tf.Tensor  # (B,), finished or at the limit


class GreedySearch(Search):
    """Takes the most likely token until END; of equal ones the lowest id. K is 1.

    >>> table = tf.math.log([[0.1, 0.1, 0.1, 0.1, 0.6], [0, 0, 0, 1, 0]])
    >>> def step(token_ids, state, index):  # id 4, then END
    ...     return tf.gather(table, tf.where(token_ids == 4, 1, 0)), state
    >>> GreedySearch()(step, (), tf.constant([9])).token_ids.numpy()[0, 0, :3].tolist()
    [4, 3, 0]
    """

    num_beams = 1

    def __call__(
        self, step: Step, state: State, max_lengths: tf.Tensor, *, extras: Extras | None = None
    ) -> SearchResult:
        """See `Search`."""
        batch = tf.shape(max_lengths)[0]
        longest = tf.reduce_max(tf.concat([max_lengths, [0]], 0))

        def going(index: tf.Tensor, path: Path, *_: Any) -> tf.Tensor:
            return tf.logical_and(index < longest, tf.logical_not(tf.reduce_all(path.done)))

        def body(index: tf.Tensor, path: Path, state: State, said: Extras) -> Any:
            logits, state, more = call_step(step, path.tokens, state, index)
            path = self._longer(path, logits, index, max_lengths)
            return index + 1, path, state, write_extras(said, index, more)

        path = Path(
            tf.fill([batch, longest], self.pad_id),
            tf.zeros([batch, longest]),
            tf.zeros([batch]),
            tf.fill([batch], self.start_id),
            tf.zeros([batch], tf.bool),
            max_lengths < 1,
        )
        start = tf.constant(0), path, state, empty_extras(extras, 1, longest)
        _, path, _, said = tf.while_loop(
            going, body, start, shape_invariants=shape_invariants(start)
        )
        return self._result(path, said)

    def _longer(
        self, path: Path, logits: tf.Tensor, index: tf.Tensor, max_lengths: tf.Tensor
    ) -> Path:
        allowed = logits + self.suppressed(tf.shape(logits)[-1])
        best = tf.argmax(allowed, axis=-1, output_type=tf.int32)
        highest = tf.gather(allowed, best, batch_dims=1)
        possible = highest > _NONE
        gain = tf.where(possible, highest - tf.reduce_logsumexp(logits, axis=-1), _NONE)
        # A row that is done keeps what it has while its neighbours go on.
        tokens = tf.where(path.done, self.pad_id, best)
        gain = tf.where(path.done, 0.0, gain)
        ends = ~path.done & possible & tf.equal(best, self.end_id)
        token_ids, token_log_probs = write(path[:2], index, (tokens, gain))
        return Path(
            token_ids,
            token_log_probs,
            path.log_probs + gain,
            tokens,
            path.finished | ends,
            path.done | ends | ~possible | (index + 1 >= max_lengths),
        )

    def _result(self, path: Path, said: Extras) -> SearchResult:
        is_found = tf.expand_dims(path.log_probs > _NONE, 1)
        token_ids = tf.where(is_found, path.token_ids, self.pad_id)
        is_token = tf.cast(tf.not_equal(token_ids, self.pad_id), tf.int32)
        lengths = tf.reduce_sum(is_token, axis=1)
        scores = path.log_probs / length_penalty(lengths, self.alpha)
        token_log_probs = tf.where(is_found, path.token_log_probs, 0.0)
        parts = (token_ids, lengths, scores, path.log_probs, path.finished, token_log_probs)
        token_ids, lengths, scores, log_probs, finished, token_log_probs = (
            tf.expand_dims(part, 1) for part in parts
        )
        said = follow_extras(said, tf.zeros_like(token_ids), lengths)
        return SearchResult(token_ids, lengths, scores, log_probs, finished, token_log_probs, said)

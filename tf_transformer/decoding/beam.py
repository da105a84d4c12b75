"""Beam search with a pool of finished hypotheses (section 6.1; GNMT, arXiv 1609.08144)."""

from typing import Any, NamedTuple

import tensorflow as tf

from tf_transformer.decoding.greedy import GreedySearch
from tf_transformer.decoding.search import (
    Search,
    SearchResult,
    State,
    Step,
    length_penalty,
    shape_invariants,
    write,
)

_NONE = -float("inf")  # the score of a place that holds no hypothesis


class Live(NamedTuple):
    """Hypotheses without END, best first; all of a row are equally long."""

    token_ids: tf.Tensor  # (B, K, T)
    log_probs: tf.Tensor  # (B, K)
    tokens: tf.Tensor  # (B, K), the newest of each
    lengths: tf.Tensor  # (B,)


class Pool(NamedTuple):
    """Hypotheses that reached END, best normalised score first."""

    token_ids: tf.Tensor  # (B, K, T)
    log_probs: tf.Tensor  # (B, K)
    scores: tf.Tensor  # (B, K)
    lengths: tf.Tensor  # (B, K)


class Candidates(NamedTuple):
    """The M = 2K best one-token continuations of a row, best first."""

    log_probs: tf.Tensor  # (B, M)
    parents: tf.Tensor  # (B, M), which live hypothesis
    tokens: tf.Tensor  # (B, M)


class BeamSearch(Search):
    """Keeps the `num_beams` best open hypotheses, and those that ended in a pool of their own.

    Each step takes the 2K best continuations, so that K stay open even if K of them end. A row
    stops when no open hypothesis can still beat the pool's worst; with `num_beams=1` it is greedy
    search. What has not ended at the limit comes after what has, normalised alike, unfinished.

    Args:
        num_beams: K.
        alpha: exponent of the length penalty (0.6 in section 6.1); either sign.
        ids: `start_id`, `end_id`, `pad_id` of `Search`.
    """

    def __init__(self, num_beams: int = 4, alpha: float = 0.6, **ids: int) -> None:
        if not isinstance(num_beams, int) or isinstance(num_beams, bool) or num_beams < 1:
            raise ValueError(
                "`num_beams` must be a whole number of at least 1. "
                f"Received: num_beams={num_beams!r}"
            )
        super().__init__(alpha, **ids)
        self.num_beams = num_beams

    def __call__(self, step: Step, state: State, max_lengths: tf.Tensor) -> SearchResult:
        """See `Search`."""
        if self.num_beams == 1:
            ids = dict(start_id=self.start_id, end_id=self.end_id, pad_id=self.pad_id)
            return GreedySearch(self.alpha, **ids)(step, state, max_lengths)
        longest = tf.reduce_max(tf.concat([max_lengths, [0]], 0))

        def going(index: tf.Tensor, live: Live, pool: Pool, done: tf.Tensor, _: State) -> tf.Tensor:
            return tf.logical_and(index < longest, tf.logical_not(tf.reduce_all(done)))

        def body(index: tf.Tensor, live: Live, pool: Pool, done: tf.Tensor, state: State) -> Any:
            logits, state = step(tf.reshape(live.tokens, [-1]), state, index)
            found = self._candidates(live, logits)
            # A row that is done keeps what it has while its neighbours go on.
            pool = _keep(done, pool, self._pool(live, pool, found, index))
            grown, parents = self._live(live, found, index)
            live = _keep(done, live, grown)
            done = done | self._is_done(live, pool, max_lengths)
            return index + 1, live, pool, done, _reorder(state, parents)

        start = tf.constant(0), *self._start(max_lengths, longest), max_lengths < 1, state
        _, live, pool, _, _ = tf.while_loop(
            going, body, start, shape_invariants=shape_invariants(start)
        )
        return self._result(live, pool)

    def _start(self, max_lengths: tf.Tensor, longest: tf.Tensor) -> tuple[Live, Pool]:
        batch, beams = tf.shape(max_lengths)[0], self.num_beams
        token_ids = tf.fill([batch, beams, longest], self.pad_id)
        # One hypothesis is open at first; K equal ones would stay K copies.
        only_first = tf.tile([[0.0] + [_NONE] * (beams - 1)], [batch, 1])
        nothing = tf.fill([batch, beams], _NONE)
        live = Live(
            token_ids,
            tf.ensure_shape(only_first, [None, beams]),
            tf.fill([batch, beams], self.start_id),
            tf.zeros([batch], tf.int32),
        )
        return live, Pool(token_ids, nothing, nothing, tf.zeros([batch, beams], tf.int32))

    def _candidates(self, live: Live, logits: tf.Tensor) -> Candidates:
        beams, vocabulary_size = self.num_beams, logits.shape[-1]
        each = min(2 * beams, vocabulary_size)
        allowed = logits + self.suppressed(vocabulary_size)
        # The best of each hypothesis first, then one normaliser: no pass over (R, V) for
        # log-probabilities of which 2K are wanted.
        best, tokens = tf.math.top_k(allowed, each)  # (R, C)
        gain = best - tf.reduce_logsumexp(logits, axis=-1, keepdims=True)
        log_probs = tf.reshape(live.log_probs, [-1, 1]) + gain
        log_probs = tf.where(best > _NONE, log_probs, _NONE)
        log_probs, place = tf.math.top_k(
            tf.reshape(log_probs, [-1, beams * each]), min(2 * beams, beams * each)
        )  # (B, M)
        tokens = tf.gather(tf.reshape(tokens, [-1, beams * each]), place, batch_dims=1)
        return Candidates(log_probs, place // each, tokens)

    def _pool(self, live: Live, pool: Pool, found: Candidates, index: tf.Tensor) -> Pool:
        ended = tf.equal(found.tokens, self.end_id) & (found.log_probs > _NONE)
        log_probs = tf.where(ended, found.log_probs, _NONE)
        scores = log_probs / length_penalty(index + 1, self.alpha)
        token_ids = tf.gather(live.token_ids, found.parents, batch_dims=1)
        new = Pool(
            write(token_ids, index, found.tokens),
            log_probs,
            scores,
            tf.fill(tf.shape(scores), index + 1),
        )
        both = Pool(*(tf.concat(pair, axis=1) for pair in zip(pool, new, strict=True)))
        _, best = tf.math.top_k(both.scores, self.num_beams)
        return Pool(*(tf.gather(x, best, batch_dims=1) for x in both))

    def _live(self, live: Live, found: Candidates, index: tf.Tensor) -> tuple[Live, tf.Tensor]:
        open_only = tf.where(tf.equal(found.tokens, self.end_id), _NONE, found.log_probs)
        log_probs, best = tf.math.top_k(open_only, self.num_beams)
        parents = tf.gather(found.parents, best, batch_dims=1)  # (B, K)
        tokens = tf.gather(found.tokens, best, batch_dims=1)
        token_ids = write(tf.gather(live.token_ids, parents, batch_dims=1), index, tokens)
        return Live(token_ids, log_probs, tokens, live.lengths + 1), parents

    def _is_done(self, live: Live, pool: Pool, max_lengths: tf.Tensor) -> tf.Tensor:
        """(B,) bool: the limit is reached, or nothing open can still beat the pool's worst.

        log P only falls, so an open hypothesis ends with at most its own log P, over the penalty
        of some length from the next to the limit. The penalty is monotonous in the length, rising
        or falling with the sign of alpha: the best case is at one of the two ends.
        """
        best = live.log_probs[:, 0]
        soonest = best / length_penalty(live.lengths + 1, self.alpha)
        latest = best / length_penalty(max_lengths, self.alpha)
        hopeless = pool.scores[:, -1] >= tf.maximum(soonest, latest)
        return (live.lengths >= max_lengths) | hopeless | tf.equal(best, _NONE)

    def _result(self, live: Live, pool: Pool) -> SearchResult:
        lengths = tf.where(live.log_probs > _NONE, tf.expand_dims(live.lengths, 1), 0)  # (B, K)
        is_real = tf.expand_dims(live.log_probs > _NONE, 2)
        open_ids = tf.where(is_real, live.token_ids, self.pad_id)
        open_scores = live.log_probs / length_penalty(lengths, self.alpha)
        finished = pool.scores > _NONE  # (B, K)
        pool_lengths = tf.where(finished, pool.lengths, 0)
        count = tf.reduce_sum(tf.cast(finished, tf.int32), axis=1, keepdims=True)
        place = tf.expand_dims(tf.range(self.num_beams), 0)  # (1, K)
        take = tf.where(place < count, place, place - count + self.num_beams)

        def choose(ended: tf.Tensor, still_open: tf.Tensor) -> tf.Tensor:
            return tf.gather(tf.concat([ended, still_open], axis=1), take, batch_dims=1)

        return SearchResult(
            choose(pool.token_ids, open_ids),
            choose(pool_lengths, lengths),
            choose(pool.scores, open_scores),
            choose(pool.log_probs, live.log_probs),
            place < count,
        )


def _keep(done: tf.Tensor, old: Any, new: Any) -> Any:
    """Row by row the old value where `done` (B,), else the new one."""

    def select(before: tf.Tensor, after: tf.Tensor) -> tf.Tensor:
        rows = tf.reshape(done, tf.concat([tf.shape(done), [1] * (after.shape.rank - 1)], 0))
        return tf.where(rows, before, after)

    return type(new)(*(select(*pair) for pair in zip(old, new, strict=True)))


def _reorder(state: State, parents: tf.Tensor) -> State:
    """Every tensor of the state (R, ...) in the order of the surviving hypotheses (B, K)."""
    batch, beams = tf.shape(parents)[0], parents.shape[1]
    rows = tf.reshape(tf.expand_dims(tf.range(batch) * beams, 1) + parents, [-1])
    return tf.nest.map_structure(lambda x: tf.gather(x, rows), state)

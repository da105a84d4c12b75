"""Beam search with a pool of finished hypotheses (section 6.1; GNMT, arXiv 1609.08144)."""

from typing import Any

import tensorflow as tf

from tf_transformer.decoding.buffers import (
    empty_extras,
    follow_extras,
    pick,
    reorder,
    shape_invariants,
    write,
    write_extras,
)
from tf_transformer.decoding.greedy import GreedySearch
from tf_transformer.decoding.hypotheses import NONE, Candidates, History, Live, Pool, columns
from tf_transformer.decoding.search import (
    Extras,
    Search,
    SearchResult,
    State,
    Step,
    call_step,
    length_penalty,
)


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

    def __call__(
        self, step: Step, state: State, max_lengths: tf.Tensor, *, extras: Extras | None = None
    ) -> SearchResult:
        """See `Search`."""
        if self.num_beams == 1:
            ids = dict(start_id=self.start_id, end_id=self.end_id, pad_id=self.pad_id)
            return GreedySearch(self.alpha, **ids)(step, state, max_lengths, extras=extras)
        longest = tf.reduce_max(tf.concat([max_lengths, [0]], 0))

        def going(index: tf.Tensor, live: Live, pool: Pool, done: tf.Tensor, *_: Any) -> tf.Tensor:
            return tf.logical_and(index < longest, tf.logical_not(tf.reduce_all(done)))

        def body(
            index: tf.Tensor, live: Live, pool: Pool, done: tf.Tensor, state: State, said: Extras
        ) -> Any:
            logits, state, more = call_step(step, tf.reshape(live.tokens, [-1]), state, index)
            found = self._candidates(live, logits, done)
            pool = self._pool(live, pool, found, index)
            live, parents = self._live(live, found, index, done)
            done = done | self._is_done(live, pool, max_lengths)
            state, said = reorder(state, parents), write_extras(said, index, more)
            return index + 1, live, pool, done, state, said

        live, pool = self._start(max_lengths, longest, bool(extras))
        said = empty_extras(extras, self.num_beams, longest)
        start = tf.constant(0), live, pool, max_lengths < 1, state, said
        _, live, pool, _, _, said = tf.while_loop(
            going, body, start, shape_invariants=shape_invariants(start)
        )
        return self._result(live, pool, said)

    def _start(
        self, max_lengths: tf.Tensor, longest: tf.Tensor, with_speakers: bool
    ) -> tuple[Live, Pool]:
        batch, beams = tf.shape(max_lengths)[0], self.num_beams
        token_ids = tf.fill([batch, beams, longest], self.pad_id)
        speakers: Any = tf.zeros_like(token_ids) if with_speakers else ()
        history = History(token_ids, tf.zeros([batch, beams, longest]), speakers)
        # One hypothesis is open at first; K equal ones would stay K copies.
        only_first = tf.tile([[0.0] + [NONE] * (beams - 1)], [batch, 1])
        nothing = tf.fill([batch, beams], NONE)
        live = Live(
            history,
            tf.ensure_shape(only_first, [None, beams]),
            tf.fill([batch, beams], self.start_id),
            tf.zeros([batch], tf.int32),
        )
        return live, Pool(history, nothing, nothing, tf.zeros([batch, beams], tf.int32))

    def _candidates(self, live: Live, logits: tf.Tensor, done: tf.Tensor) -> Candidates:
        beams, vocabulary_size = self.num_beams, logits.shape[-1]
        each = min(2 * beams, vocabulary_size)
        allowed = logits + self.suppressed(vocabulary_size)
        # The best of each hypothesis first, then one normaliser: no pass over (R, V) for
        # log-probabilities of which 2K are wanted.
        best, tokens = tf.math.top_k(allowed, each)  # (R, C)
        gains = best - tf.reduce_logsumexp(logits, axis=-1, keepdims=True)
        gains = tf.reshape(tf.where(best > NONE, gains, NONE), [-1, beams, each])
        # A row that is done has no candidates: it keeps what it has while its neighbours go on.
        before = tf.where(tf.expand_dims(done, 1), NONE, live.log_probs)
        log_probs = tf.reshape(tf.expand_dims(before, 2) + gains, [-1, beams * each])
        log_probs, place = tf.math.top_k(log_probs, min(2 * beams, beams * each))  # (B, M)
        flat = tf.reshape(gains, [-1, beams * each]), tf.reshape(tokens, [-1, beams * each])
        gains, tokens = pick(flat, place)
        return Candidates(log_probs, gains, place // each, tokens)

    def _pool(self, live: Live, pool: Pool, found: Candidates, index: tf.Tensor) -> Pool:
        ended = tf.equal(found.tokens, self.end_id) & (found.log_probs > NONE)
        log_probs = tf.where(ended, found.log_probs, NONE)
        scores = log_probs / length_penalty(index + 1, self.alpha)
        lengths = tf.fill(tf.shape(scores), index + 1)
        scores, best = tf.math.top_k(tf.concat([pool.scores, scores], 1), self.num_beams)
        both = tf.concat([pool.log_probs, log_probs], 1), tf.concat([pool.lengths, lengths], 1)
        log_probs, lengths = pick(both, best)
        # Where the K of the pool and the K they grew out of stand in a row of 2K.
        count = tf.shape(best)[0]
        old = tf.tile(tf.expand_dims(tf.range(self.num_beams), 0), [count, 1])
        parents = tf.concat([old, found.parents + self.num_beams], 1)  # (B, K + M)
        is_new = best >= self.num_beams
        gains = tf.concat([tf.zeros_like(pool.scores), found.gains], 1)
        parents, gains = pick((parents, gains), best)
        history = tf.nest.map_structure(
            lambda *pair: tf.concat(pair, 1), pool.history, live.history
        )
        # What is not new has ended before: there is nothing at `index`, and nothing is written.
        end, gains = tf.where(is_new, self.end_id, self.pad_id), tf.where(is_new, gains, 0.0)
        new = columns(history, end, gains, tf.where(is_new, parents - self.num_beams, 0))
        return Pool(write(pick(history, parents), index, new), log_probs, scores, lengths)

    def _live(
        self, live: Live, found: Candidates, index: tf.Tensor, done: tf.Tensor
    ) -> tuple[Live, tf.Tensor]:
        open_only = tf.where(tf.equal(found.tokens, self.end_id), NONE, found.log_probs)
        log_probs, best = tf.math.top_k(open_only, self.num_beams)
        parents, tokens, gains = pick((found.parents, found.tokens, found.gains), best)  # (B, K)
        over = tf.expand_dims(done, 1)
        parents = tf.where(over, tf.expand_dims(tf.range(self.num_beams), 0), parents)
        tokens, gains = tf.where(over, self.pad_id, tokens), tf.where(over, 0.0, gains)
        new = columns(live.history, tokens, gains, tf.where(over, 0, parents))
        history = write(pick(live.history, parents), index, new)
        log_probs = tf.where(over, live.log_probs, log_probs)
        return Live(history, log_probs, tokens, tf.where(done, live.lengths, index + 1)), parents

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
        return (live.lengths >= max_lengths) | hopeless | tf.equal(best, NONE)

    def _result(self, live: Live, pool: Pool, said: Extras) -> SearchResult:
        is_open = live.log_probs > NONE
        lengths = tf.where(is_open, tf.expand_dims(live.lengths, 1), 0)  # (B, K)
        is_real = tf.expand_dims(is_open, 2)
        blank = History(self.pad_id, 0.0, tf.nest.map_structure(lambda _: 0, live.history.speakers))
        open_history = tf.nest.map_structure(
            lambda x, nothing: tf.where(is_real, x, nothing), live.history, blank
        )
        open_scores = live.log_probs / length_penalty(lengths, self.alpha)
        ended = pool.history, pool.log_probs, pool.scores, pool.lengths
        still_open = open_history, live.log_probs, open_scores, lengths
        finished = pool.scores > NONE  # (B, K)
        count = tf.reduce_sum(tf.cast(finished, tf.int32), axis=1, keepdims=True)
        place = tf.expand_dims(tf.range(self.num_beams), 0)  # (1, K)
        take = tf.where(place < count, place, place - count + self.num_beams)
        both = tf.nest.map_structure(lambda *pair: tf.concat(pair, 1), ended, still_open)
        history, log_probs, scores, lengths = pick(both, take)
        said = follow_extras(said, history.speakers, lengths) if said else {}
        return SearchResult(
            history.token_ids, lengths, scores, log_probs, place < count, history.log_probs, said
        )

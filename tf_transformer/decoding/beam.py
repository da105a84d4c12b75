"""Beam search with a pool of finished hypotheses (section 6.1; GNMT, arXiv 1609.08144)."""

from typing import Any

import tensorflow as tf

from tf_transformer.decoding.arguments import check_whole
from tf_transformer.decoding.buffers import (
    empty_extras,
    follow_extras,
    pick,
    reorder,
    write,
    write_extras,
)
from tf_transformer.decoding.greedy import GreedySearch
from tf_transformer.decoding.hypotheses import (
    Candidates,
    History,
    Live,
    Pool,
    finished_then_open,
    start_hypotheses,
)
from tf_transformer.decoding.loop import search_loop
from tf_transformer.decoding.rules import NONE, is_something
from tf_transformer.decoding.search import Call, Extras, Search, SearchResult, State, call_step
from tf_transformer.decoding.top import top_k


class BeamSearch(Search):
    """Keeps the `num_beams` best open hypotheses, and those that ended in a pool of their own.

    Each step takes the 2K best continuations, so that K stay open even if K of them end. A row
    stops when no open hypothesis can still beat the pool's worst, or the worst of those that are
    wanted; with one beam it is greedy search. What has not ended at the limit comes after what
    has, normalised alike, unfinished. Open hypotheses are compared by log P, as the rules weigh it;
    finished ones by their score.

    Args:
        num_beams: K. A row that asks for fewer gets what a search built with as many finds.
        alpha: exponent of the length penalty (0.6 in section 6.1); either sign.
        options: keyword arguments of `Search`.
    """

    def __init__(self, num_beams: int = 4, alpha: float = 0.6, **options: Any) -> None:
        super().__init__(alpha, **options)
        check_whole("num_beams", num_beams, 1)
        self.num_beams = num_beams
        self._greedy = GreedySearch(alpha, **options)

    def search(self, call: Call, state: State) -> SearchResult:
        """See `Search`."""
        if self.num_beams == 1:
            return self._greedy.search(call, state)

        def going(index: tf.Tensor, live: Live, pool: Pool, done: tf.Tensor, *_: Any) -> tf.Tensor:
            return tf.logical_and(index < call.longest, tf.logical_not(tf.reduce_all(done)))

        def body(
            index: tf.Tensor, live: Live, pool: Pool, done: tf.Tensor, state: State, said: Extras
        ) -> Any:
            tokens = tf.reshape(live.tokens, [-1])
            logits, state, more = call_step(call.step, tokens, state, index)
            live = self._attend(live, more, done)
            found = self._candidates(call, live, logits, index, done)
            pool = self._pool(call, live, pool, found, index)
            live, parents = self._live(call, live, found, index, done)
            done = done | self._is_done(call, live, pool)
            state, said = reorder(state, parents), write_extras(said, index, more)
            return index + 1, live, pool, done, state, said

        said = empty_extras(call.extras, self.num_beams, call.longest)
        start = tf.constant(0), *self._start(call), call.max_lengths < 1, state, said
        _, live, pool, _, _, said = search_loop(going, body, start)
        return self._result(call, live, pool, said)

    def _start(self, call: Call) -> tuple[Live, Pool]:
        shape = [tf.shape(call.max_lengths)[0], self.num_beams, call.longest]
        speakers: Any = tf.zeros(shape, tf.int32) if call.extras else ()
        empty = History(tf.fill(shape, self.pad_id), tf.zeros(shape), speakers)
        attention: Any = ()
        if call.scoring.coverage_penalty:
            attention = self._by_row(tf.zeros_like(call.extras["attention"]))
        return start_hypotheses(empty, self.start_id, bool(call.rules), attention)

    def _attend(self, live: Live, said: Extras, done: tf.Tensor) -> Live:
        """With the attention to the source of the token that comes next."""
        if not tf.is_tensor(live.attention):
            return live
        new = self._by_row(said["attention"])
        over = tf.reshape(done, [-1, 1, 1])
        return live._replace(attention=live.attention + tf.where(over, 0.0, new))

    def _candidates(
        self, call: Call, live: Live, logits: tf.Tensor, index: tf.Tensor, done: tf.Tensor
    ) -> Candidates:
        beams, vocabulary_size = self.num_beams, logits.shape[-1]
        each = min(2 * beams, vocabulary_size)
        token_ids = tf.reshape(live.history.token_ids, [-1, call.longest])
        weights, appraise = self.weigh(call, logits, token_ids, index)
        best, tokens = top_k(weights, each)  # (R, C): the best of each hypothesis first
        gains, model_gains = appraise(best, tokens)
        # A row that is done has no candidates: it keeps what it has while its neighbours go on.
        before = tf.where(tf.expand_dims(done, 1), NONE, live.ranks)
        gains = tf.reshape(gains, [-1, beams, each])
        ranks = tf.reshape(tf.expand_dims(before, 2) + gains, [-1, beams * each])
        ranks, place = tf.math.top_k(ranks, min(2 * beams, beams * each))  # (B, M)
        if call.num_beams is not None:
            # Of a row with one beam only the best: it ends where greedy search ends.
            count = tf.where(tf.equal(call.num_beams, 1), 1, 2 * call.num_beams)
            ranks = tf.where(tf.expand_dims(tf.range(ranks.shape[1]), 0) < count, ranks, NONE)
        parents = place // each
        own = gains if model_gains is None else model_gains
        flat = tf.reshape(own, [-1, beams * each]), tf.reshape(tokens, [-1, beams * each])
        own, tokens = pick(flat, place)
        log_probs = pick(live.log_probs, parents) + own if call.rules else ()
        return Candidates(ranks, log_probs, own, parents, tokens)

    def _pool(
        self, call: Call, live: Live, pool: Pool, found: Candidates, index: tf.Tensor
    ) -> Pool:
        ended = tf.equal(found.tokens, self.end_id) & is_something(found.ranks)
        scores = call.scoring.score(tf.where(ended, found.ranks, NONE), index + 1)
        if tf.is_tensor(live.attention):
            scores += pick(call.scoring.cover(live.attention), found.parents)
        # Where a hypothesis of the pool, and the parent of a new one, stands in a row of 2K.
        places = tf.tile(tf.expand_dims(tf.range(self.num_beams), 0), [tf.shape(scores)[0], 1])
        lengths = tf.fill(tf.shape(scores), index + 1)
        old = pool.ranks, pool.log_probs, pool.lengths, places, tf.zeros_like(pool.scores)
        new = found.ranks, found.log_probs, lengths, found.parents + self.num_beams, found.gains
        scores, best = tf.math.top_k(tf.concat([pool.scores, scores], 1), self.num_beams)
        if call.num_beams is not None:
            scores = tf.where(places < call.num_beams, scores, NONE)
        both = tf.nest.map_structure(lambda *pair: tf.concat(pair, 1), old, new)
        ranks, log_probs, lengths, parents, gains = pick(both, best)
        history = tf.nest.map_structure(
            lambda *pair: tf.concat(pair, 1), pool.history, live.history
        )
        # What is not new has ended before: there is nothing at `index`, and nothing is written.
        is_new = best >= self.num_beams
        end, speakers = tf.where(is_new, self.end_id, self.pad_id), parents - self.num_beams
        column = history.column(end, gains, tf.where(is_new, speakers, 0))
        history = write(pick(history, parents), index, column)
        return Pool(history, ranks, log_probs, scores, lengths)

    def _live(
        self, call: Call, live: Live, found: Candidates, index: tf.Tensor, done: tf.Tensor
    ) -> tuple[Live, tf.Tensor]:
        open_only = tf.where(tf.equal(found.tokens, self.end_id), NONE, found.ranks)
        ranks, best = tf.math.top_k(open_only, self.num_beams)
        places, over = tf.expand_dims(tf.range(self.num_beams), 0), tf.expand_dims(done, 1)
        if call.num_beams is not None:
            ranks = tf.where(places < call.num_beams, ranks, NONE)
        log_probs, gains, parents, tokens = pick(found[1:], best)  # (B, K)
        parents = tf.where(over, places, parents)
        tokens, gains = tf.where(over, self.pad_id, tokens), tf.where(over, 0.0, gains)
        column = live.history.column(tokens, gains, tf.where(over, 0, parents))
        grown = Live(
            write(pick(live.history, parents), index, column),
            tf.where(over, live.ranks, ranks),
            tf.where(over, live.log_probs, log_probs) if call.rules else (),
            tokens,
            tf.where(done, live.lengths, index + 1),
            pick(live.attention, parents),
        )
        return grown, parents

    def _is_done(self, call: Call, live: Live, pool: Pool) -> tf.Tensor:
        """(B,) bool: the limit is reached, or nothing open can still beat what is wanted."""
        best, worst = live.ranks[:, :1], self._worst(call, pool)
        hopeless = worst >= call.scoring.best_possible(best, live.lengths, call.max_lengths)
        return (live.lengths >= call.max_lengths) | (hopeless | ~is_something(best))[:, 0]

    def _worst(self, call: Call, pool: Pool) -> tf.Tensor:
        """(B, 1), the score of the last place that is wanted."""
        if call.num_beams is None and call.wanted is None:
            return pool.scores[:, -1:]
        beams = self.num_beams if call.num_beams is None else call.num_beams
        wanted = self.num_beams if call.wanted is None else call.wanted
        last = tf.minimum(beams, wanted) - 1
        return pick(pool.scores, tf.zeros_like(pool.lengths[:, :1]) + last)

    def _result(self, call: Call, live: Live, pool: Pool, said: Extras) -> SearchResult:
        lengths = tf.expand_dims(live.lengths, 1) + tf.zeros_like(pool.lengths)
        scores = call.scoring.score(live.ranks, lengths)
        still_open = Pool(live.history, live.ranks, live.log_probs, scores, lengths)
        if tf.is_tensor(live.attention):
            scores += call.scoring.cover(live.attention)
            scores, order = tf.math.top_k(scores, self.num_beams)
            still_open = pick(still_open, order)._replace(scores=scores)
        found, finished = finished_then_open(pool, still_open, self.pad_id, call.num_beams)
        history = found.history
        said = follow_extras(said, history.speakers, found.lengths) if said else {}
        return SearchResult(
            history.token_ids,
            found.lengths,
            found.scores,
            found.log_probs if call.rules else found.ranks,
            finished,
            history.log_probs,
            said,
        )

    def _by_row(self, x: tf.Tensor) -> tf.Tensor:
        shape = tf.concat([[-1, self.num_beams], tf.shape(x)[1:]], 0)
        return tf.ensure_shape(tf.reshape(x, shape), [None, self.num_beams, *x.shape[1:]])

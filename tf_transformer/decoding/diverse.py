"""Diverse beam search: outputs that differ from each other (arXiv 1610.02424)."""

from typing import Any

import tensorflow as tf

from tf_transformer.decoding.arguments import check_number, check_whole
from tf_transformer.decoding.paths import Paths, PathSearch, best_first
from tf_transformer.decoding.rules import NONE
from tf_transformer.decoding.search import Call, SearchResult, State


class DiverseSearch(PathSearch):
    """`num_beams` greedy searches side by side, each kept off what those before it choose.

    Algorithm 1 of the paper with as many groups as beams, which it found best (section 5.1), and
    Hamming diversity: a token costs `diversity` for each earlier beam that chooses it at the same
    position. The first beam is greedy search. What it costs decides what is chosen and is no part
    of any score. An output that comes twice is given once; the best score comes first.

    Args:
        num_beams: K.
        alpha: exponent of the length penalty.
        diversity: lambda, at least 0; 0.2 to 0.8 in section 5.
        options: keyword arguments of `Search`.
    """

    def __init__(
        self, num_beams: int = 4, alpha: float = 0.6, *, diversity: float = 0.5, **options: Any
    ) -> None:
        super().__init__(alpha, **options)
        check_whole("num_beams", num_beams, 1)
        check_number("diversity", diversity, 0, 1e3)
        self.num_beams = num_beams
        self.diversity = float(diversity)

    def search(self, call: Call, state: State) -> SearchResult:
        """See `Search`."""
        return best_first(_without_repeats(super().search(call, state), self.pad_id))

    def choose(self, call: Call, weights: tf.Tensor, paths: Paths, index: tf.Tensor) -> tf.Tensor:
        """One beam after the other, the best that is left."""
        vocabulary_size = tf.shape(weights)[1]
        over = self._by_row(paths.done)
        weights, chosen = self._by_row(weights), []  # (B, K, V)
        cost = tf.zeros_like(weights[:, 0])
        for beam in range(self.num_beams):
            best = tf.argmax(weights[:, beam] - cost, axis=-1, output_type=tf.int32)
            chosen.append(best)
            price = tf.expand_dims(tf.where(over[:, beam], 0.0, self.diversity), 1)
            cost += price * tf.one_hot(best, vocabulary_size)
        return tf.reshape(tf.stack(chosen, axis=1), [-1])


def _without_repeats(found: SearchResult, pad_id: int) -> SearchResult:
    """Empty places for outputs that an earlier place has."""
    ids = found.token_ids
    pairs = tf.equal(tf.expand_dims(ids, 1), tf.expand_dims(ids, 2))  # (B, K, K, T)
    same = tf.cast(tf.reduce_all(pairs, axis=3), tf.int32)
    beams = tf.range(ids.shape[1])
    earlier = tf.cast(tf.expand_dims(beams, 0) < tf.expand_dims(beams, 1), tf.int32)
    is_new = tf.equal(tf.reduce_sum(same * earlier, axis=2), 0)  # (B, K)
    nothing = SearchResult(pad_id, 0, NONE, NONE, False, 0.0, dict.fromkeys(found.extras, 0))

    def or_else(x: tf.Tensor, blank: Any) -> tf.Tensor:
        shape = tf.concat([tf.shape(is_new), [1] * (x.shape.rank - 2)], 0)
        return tf.where(tf.reshape(is_new, shape), x, tf.cast(blank, x.dtype))

    return tf.nest.map_structure(or_else, found, nothing)

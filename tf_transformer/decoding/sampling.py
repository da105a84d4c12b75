"""Sampling: outputs drawn at random, as the model's probabilities say."""

from typing import Any

import tensorflow as tf

from tf_transformer.decoding.arguments import check_number, check_whole
from tf_transformer.decoding.noise import fold, mix, uniform
from tf_transformer.decoding.paths import Paths, PathSearch, best_first
from tf_transformer.decoding.rules import is_something
from tf_transformer.decoding.search import Call, SearchResult, State
from tf_transformer.decoding.top import top_k


class SamplingSearch(PathSearch):
    """Draws `num_beams` outputs of each row, independently; the best score comes first.

    Rules come first, then `temperature`, `top_k` and `top_p`, in this order; what they leave is
    drawn from as if it were all there is. Scores and log-probabilities are as in any search: those
    of what was drawn, not of the way it was drawn. The same output may come more than once.

    Draws are a function of `seed`, `rows.seeds`, the sample's number and the position: a row draws
    the same in any batch, and rows of different seeds draw independently.

    Args:
        num_beams: K, how many outputs.
        alpha: exponent of the length penalty.
        temperature: what log-probabilities are divided by, above 0; below 1 is bolder for the
            likely, above 1 for the unlikely.
        top_k: only the so many likeliest tokens; 0 for all.
        top_p: only the fewest likeliest tokens that have so much of the probability together
            (arXiv 1904.09751, section 3.1); 1 for all. Sorts the vocabulary at every step, unless
            `top_k` is given.
        seed: 0 to 2^31 - 1.
        options: keyword arguments of `Search`.
    """

    def __init__(
        self,
        num_beams: int = 1,
        alpha: float = 0.6,
        *,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 0,
        **options: Any,
    ) -> None:
        super().__init__(alpha, **options)
        check_whole("num_beams", num_beams, 1)
        check_whole("top_k", top_k, 0)
        check_whole("seed", seed, 0)
        check_number("temperature", temperature, 1e-3, 1e3)
        check_number("top_p", top_p, 1e-6, 1)
        self.num_beams = num_beams
        self.temperature = float(temperature)
        self.top_k = top_k
        self.top_p = float(top_p)
        self.seed = seed

    def search(self, call: Call, state: State) -> SearchResult:
        """See `Search`."""
        batch = tf.shape(call.max_lengths)[0]
        seeds = tf.zeros([batch], tf.int32) if call.seeds is None else call.seeds
        seeds = tf.reshape(tf.tile(tf.expand_dims(seeds, 1), [1, self.num_beams]), [-1])  # (R,)
        keys = mix(tf.fill(tf.shape(seeds), tf.constant(self.seed, tf.uint32)))
        keys = fold(fold(keys, seeds), tf.tile(tf.range(self.num_beams), [batch]))
        return best_first(super().search(call._replace(seeds=keys), state))

    def choose(self, call: Call, weights: tf.Tensor, paths: Paths, index: tf.Tensor) -> tf.Tensor:
        """A token at random, by its share."""
        values, ids = weights / self.temperature, None
        if self.top_k or self.top_p < 1:
            size = values.shape[1]
            values, ids = top_k(values, min(self.top_k or size, size))
        highest = tf.reduce_max(values, axis=1, keepdims=True)
        shares = tf.exp(values - tf.where(is_something(highest), highest, 0.0))
        if self.top_p < 1:
            above = tf.cumsum(shares, axis=1, exclusive=True)  # of the likelier ones
            total = tf.reduce_sum(shares, axis=1, keepdims=True)
            shares = tf.where(above < self.top_p * total, shares, 0.0)
        up_to = tf.cumsum(shares, axis=1)
        wanted = tf.expand_dims(uniform(fold(call.seeds, index)), 1) * up_to[:, -1:]
        # The first whose share contains the point; a share of nothing contains none.
        hit = tf.cast((up_to > wanted) & (shares > 0.0), tf.int32)
        place = tf.argmax(hit, axis=1, output_type=tf.int32)
        return place if ids is None else tf.gather(ids, place, batch_dims=1)

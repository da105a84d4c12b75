"""Greedy search: the best token, position by position."""

import tensorflow as tf

from tf_transformer.decoding.paths import Paths, PathSearch
from tf_transformer.decoding.search import Call


class GreedySearch(PathSearch):
    """Takes the most likely token until END; of equal ones the lowest id. K is 1.

    >>> table = tf.math.log([[0.1, 0.1, 0.1, 0.1, 0.6], [0, 0, 0, 1, 0]])
    >>> def step(token_ids, state, index):  # id 4, then END
    ...     return tf.gather(table, tf.where(token_ids == 4, 1, 0)), state
    >>> GreedySearch()(step, (), tf.constant([9])).token_ids.numpy()[0, 0, :3].tolist()
    [4, 3, 0]
    """

    num_beams = 1

    def choose(self, call: Call, weights: tf.Tensor, paths: Paths, index: tf.Tensor) -> tf.Tensor:
        """The highest."""
        return tf.argmax(weights, axis=-1, output_type=tf.int32)

"""Random numbers that depend on what is asked for alone, never on where a row stands in a batch.

TensorFlow's stateless operations take one seed for a whole tensor, so a row's numbers would change
with its neighbours; and LiteRT has none of them. A hash of seed, row, sample and step has neither
fault.
"""

import tensorflow as tf

_STEP = 0x9E3779B9  # 2^32 over the golden ratio: near seeds lie far apart
_OFFSET = 0x85EBCA6B  # `mix` leaves 0 at 0


def mix(x: tf.Tensor) -> tf.Tensor:
    """A permutation of uint32 of which every bit depends on every bit of `x` (N,).

    `lowbias32` of https://github.com/skeeto/hash-prospector.
    """
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B), (16, None)):
        by = tf.fill(tf.shape(x), tf.constant(shift, tf.uint32))
        x = tf.bitwise.bitwise_xor(x, tf.bitwise.right_shift(x, by))
        x = x if factor is None else x * tf.constant(factor, tf.uint32)
    return x


def fold(keys: tf.Tensor, numbers: tf.Tensor) -> tf.Tensor:
    """New keys (N,) uint32 of keys (N,) and the int32 numbers (N,) or () that go into them."""
    far = keys * tf.constant(_STEP, tf.uint32) + tf.constant(_OFFSET, tf.uint32)
    return mix(far + tf.cast(numbers, tf.uint32))


def uniform(keys: tf.Tensor) -> tf.Tensor:
    """Keys (N,) -> float32 (N,), the middles of 2^23 equal parts of 0 to 1."""
    by = tf.fill(tf.shape(keys), tf.constant(9, tf.uint32))
    return (tf.cast(tf.bitwise.right_shift(keys, by), tf.float32) + 0.5) * 2.0**-23


def fingerprints(token_ids: tf.Tensor, pad_id: int) -> tf.Tensor:
    """(B, S) int32 -> (B,) int32: equal for equal tokens, however many PADs follow them."""
    shape = tf.shape(token_ids)
    places = tf.tile(tf.expand_dims(tf.range(shape[1]), 0), [shape[0], 1])
    keys = tf.cast(tf.reshape(places, [-1]), tf.uint32)
    hashes = tf.reshape(tf.cast(fold(mix(keys), tf.reshape(token_ids, [-1])), tf.int32), shape)
    return tf.reduce_sum(tf.where(tf.equal(token_ids, pad_id), 0, hashes), axis=1)

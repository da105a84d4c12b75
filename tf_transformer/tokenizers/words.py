"""Words of texts, counted where ASCII blanks separate them, as every tool counts them."""

import tensorflow as tf

_BLANKS = (9, 10, 11, 12, 13, 32)


def words_of_bytes(texts: tf.Tensor) -> tf.Tensor:
    """The number of the word that each byte of texts (B,) is in: (B, L) int32, from 0.

    A blank belongs to the word behind it, at the end of a text to the last one.
    """
    width = tf.reduce_max(tf.concat([tf.strings.length(texts), [1]], 0))
    codes = tf.io.decode_raw(texts, tf.uint8, fixed_length=width)  # 0 behind the end
    is_behind = tf.range(width)[tf.newaxis] >= tf.strings.length(texts)[:, tf.newaxis]
    return words_of_letters(tf.where(is_behind, 32, tf.cast(codes, tf.int32)))


def words_of_letters(codes: tf.Tensor) -> tf.Tensor:
    """As `words_of_bytes`, of code points (B, L) int32 with blanks behind the end of a text."""
    blank = tf.reduce_any(tf.equal(codes[..., tf.newaxis], _BLANKS), axis=-1)
    before = tf.pad(blank[:, :-1], [[0, 0], [1, 0]], constant_values=True)
    begun = tf.cumsum(tf.cast(before & ~blank, tf.int32), axis=1)
    last = tf.maximum(tf.reduce_max(begun, axis=1, keepdims=True) - 1, 0)
    return tf.minimum(begun - 1 + tf.cast(blank, tf.int32), last)

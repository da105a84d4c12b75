"""Which source word each target word comes from, read off the attention over the source.

A word is what ASCII blanks separate, so that its number is the one every tool counts. All functions
are TensorFlow operations on dense tensors. Letters: B rows, K hypotheses, T target and S source
tokens; -1 stands where there is no word or no piece.
"""

import tensorflow as tf

from tf_transformer.config import END_ID, PAD_ID
from tf_transformer.tokenizers import Tokenizer


def is_piece(token_ids: tf.Tensor) -> tf.Tensor:
    """Of ids (...): True where a piece of text stands, neither PAD nor END."""
    return tf.not_equal(token_ids, PAD_ID) & tf.not_equal(token_ids, END_ID)


def pieces(tokenizer: Tokenizer, token_ids: tf.Tensor) -> tf.Tensor:
    """The pieces of ids (...), strings; END too, "" at PAD."""
    return tf.where(tf.equal(token_ids, PAD_ID), "", tokenizer.to_pieces(token_ids))


def align(
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    text: tf.Tensor,
    source_ids: tf.Tensor,
    target_ids: tf.Tensor,
    attention: tf.Tensor,
) -> dict[str, tf.Tensor]:
    """Texts (B,), their ids (B, S), outputs (B, K, T) and attention (B, K, T, S) -> alignments.

    Returns:
        `source_pieces` (B, S), and `piece_alignment` and `word_alignment` (B, K, T).
    """
    of_source = source_words(source_tokenizer, text, source_ids)
    of_target = target_words(target_tokenizer, target_ids)
    return {
        "source_pieces": pieces(source_tokenizer, source_ids),
        "piece_alignment": piece_alignment(attention, source_ids, target_ids),
        "word_alignment": word_alignment(attention, of_source, of_target),
    }


def piece_alignment(
    attention: tf.Tensor, source_ids: tf.Tensor, target_ids: tf.Tensor
) -> tf.Tensor:
    """For each target piece the source piece that it looks at most.

    Args:
        attention: (B, K, T, S) float32.
        source_ids: (B, S), END counts as no piece.
        target_ids: (B, K, T).

    Returns:
        (B, K, T) int32, -1 where no target piece is, or no source piece.
    """
    candidates = is_piece(source_ids)[:, tf.newaxis, tf.newaxis]  # (B, 1, 1, S)
    return _best(attention, candidates, is_piece(target_ids))


def word_alignment(
    attention: tf.Tensor, source_words: tf.Tensor, target_words: tf.Tensor
) -> tf.Tensor:
    """For each target word the source word that it looks at most.

    A source word is given what all its pieces are given; a target word gives the mean of what its
    pieces give. Summing before choosing lets the pieces of a word speak together, where links of
    single pieces would contradict each other.

    Args:
        attention: (B, K, T, S) float32.
        source_words: (B, S) int32, from `source_words`.
        target_words: (B, K, T) int32, from `target_words`.

    Returns:
        (B, K, T) int32: place w tells of target word w, -1 behind the last.
    """
    last = tf.reduce_max(tf.concat([[0], tf.reshape(source_words, [-1])], 0))
    of_source = tf.one_hot(source_words, last + 1)
    of_target = tf.one_hot(target_words, tf.shape(target_words)[2])  # (B, K, T, W), W = T
    mass = tf.einsum("bkts,bsv->bktv", attention, of_source)
    mass = tf.einsum("bktw,bktv->bkwv", of_target, mass)
    exists = tf.reduce_any(of_target > 0.0, axis=2)  # (B, K, W)
    candidates = tf.reduce_any(of_source > 0.0, axis=1)[:, tf.newaxis, tf.newaxis]
    return _best(mass, candidates, exists)


def source_words(tokenizer: Tokenizer, texts: tf.Tensor, token_ids: tf.Tensor) -> tf.Tensor:
    """The word that each token (B, S) of texts (B,) is a part of, int32; -1 at END and PAD."""
    longest = tf.shape(token_ids)[1]
    # A text of which the model reads only a part has more of them than there are ids.
    words = tokenizer.words(texts)[:, :longest].to_tensor(-1)
    words = tf.pad(words, [[0, 0], [0, longest - tf.shape(words)[1]]], constant_values=-1)
    return tf.where(is_piece(token_ids), words, -1)


def target_words(tokenizer: Tokenizer, token_ids: tf.Tensor) -> tf.Tensor:
    """The word of the detokenised text that each token (B, K, T) is a part of, int32.

    The text of the first t tokens has as many words as have begun by then: right for every
    tokenizer, at the price of T texts for one.
    """
    shape = tf.shape(token_ids)
    width = shape[2]
    rows = tf.reshape(token_ids, [shape[0] * shape[1], width])
    pieces = is_piece(rows)
    places = tf.where(pieces)  # (M, 2), row by row
    until = tf.cast(places[:, 1], tf.int32)
    read = tf.range(width)[tf.newaxis] <= until[:, tf.newaxis]  # (M, T)
    texts = tokenizer.detokenize(tf.where(read, tf.gather(rows, places[:, 0]), PAD_ID))
    count = tf.cast(tf.strings.split(texts).row_lengths(), tf.int32)
    # A token that adds no letter, such as a blank of its own, belongs to the word behind it.
    silent = tf.equal(texts, tf.concat([[""], texts[:-1]], 0)) & (until > 0)
    word = tf.maximum(count - 1, 0) + tf.cast(silent, tf.int32)
    counts = tf.scatter_nd(places, count, tf.shape(rows, tf.int64))
    words = tf.scatter_nd(places, word, tf.shape(rows, tf.int64))
    words = tf.minimum(words, tf.maximum(tf.reduce_max(counts, 1, keepdims=True) - 1, 0))
    return tf.reshape(tf.where(pieces, words, -1), shape)


def _best(mass: tf.Tensor, candidates: tf.Tensor, wanted: tf.Tensor) -> tf.Tensor:
    """The candidate (..., S) of most mass for each wanted (...), or -1 where there is none."""
    mass = tf.where(candidates, mass, -1.0)
    # An axis of no candidates at all has no highest place.
    mass = tf.pad(mass, [[0, 0], [0, 0], [0, 0], [0, 1]], constant_values=-1.0)
    best = tf.argmax(mass, axis=-1, output_type=tf.int32)
    return tf.where(wanted & (tf.reduce_max(mass, axis=-1) >= 0.0), best, -1)

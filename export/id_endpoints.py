"""Signatures that take ids or give them. What they promise is told in `signatures.py`."""

import tensorflow as tf

from tf_transformer.config import END_ID, PAD_ID

from .parts import (
    IDS,
    LENGTH,
    TEXT,
    Endpoint,
    Parts,
    Tensors,
    clean_source,
    finite,
    of_texts,
    rows_of_ids,
    widened,
)
from .session_model import Arrays


def generate_ids(parts: Parts) -> Endpoint:
    """`ids` (B, L), `length` (B,) -> `ids` (B, T), `length`, `score`, `truncated` (B,).

    What stands behind `length` or END is not read: TF Serving makes rows equally long with the
    first id of one, not with PAD. END may be missing; an id that no text has counts as UNK.
    Lengths count END, PAD fills up.
    """

    def answer(ids: tf.Tensor, length: tf.Tensor) -> Tensors:
        source = clean_source(parts, ids, length)
        found = parts.generate(source.token_ids, parts.max_lengths(source.lengths), wanted=1)
        is_blank = source.lengths <= 1
        best = tf.where(tf.expand_dims(is_blank, 1), PAD_ID, found.token_ids[:, 0])
        return {
            "ids": widened(best, parts.options.max_target_length, PAD_ID),
            "length": tf.where(is_blank, 0, found.lengths[:, 0]),
            "score": tf.where(is_blank, 0.0, finite(found.scores[:, 0])),
            "truncated": source.truncated,
        }

    def request(texts: list[str]) -> Arrays:
        rows = [[*ids, END_ID] for ids in parts.tokenizers.source.encode(texts)]
        return rows_of_ids(rows)

    return Endpoint([IDS, LENGTH], answer, request)


def tokenize(parts: Parts) -> Endpoint:
    """`text` (B,) -> `ids` (B, S) as `generate_ids` takes them, `length`, `truncated` (B,)."""

    def answer(text: tf.Tensor) -> Tensors:
        source = parts.encode_source(text)
        return {
            "ids": widened(source.token_ids, parts.options.max_source_length, PAD_ID),
            "length": source.lengths,
            "truncated": source.truncated,
        }

    return Endpoint([TEXT], answer, of_texts)


def detokenize(parts: Parts) -> Endpoint:
    """`ids` (B, L), `length` (B,), as `generate_ids` gives them -> `text` (B,)."""

    def answer(ids: tf.Tensor, length: tf.Tensor) -> Tensors:
        is_read = tf.sequence_mask(length, tf.shape(ids)[1])
        return {"text": parts.detokenize(tf.where(is_read, ids, PAD_ID))}

    def request(texts: list[str]) -> Arrays:
        rows = [[*ids, END_ID] for ids in parts.tokenizers.target.encode(texts)]
        return rows_of_ids(rows)

    return Endpoint([IDS, LENGTH], answer, request)


def source_length(parts: Parts) -> Endpoint:
    """`text` (B,) -> `length` (B,), all its tokens and END: over S it will be cut."""

    def answer(text: tf.Tensor) -> Tensors:
        return {"length": tf.cast(parts.source_length(text), tf.int32)}

    return Endpoint([TEXT], answer, of_texts)

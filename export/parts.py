"""What signatures are made of: a translator in functions of the graph, ids and texts in order."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tf_transformer.config import END_ID, PAD_ID, UNK_ID
from tf_transformer.decoding import SearchResult, for_any_device
from tf_transformer.scorer import Encoded
from tf_transformer.translator import Translator

from .session_model import Arrays

Tensors = dict[str, tf.Tensor]

TEXT = tf.TensorSpec([None], tf.string, name="text")
IDS = tf.TensorSpec([None, None], tf.int32, name="ids")
LENGTH = tf.TensorSpec([None], tf.int32, name="length")
SOURCE, TARGET, PREFIX = (
    tf.TensorSpec([None], tf.string, name=name) for name in ("source", "target", "prefix")
)
NUM_BEAMS, MAX_LENGTH = (
    tf.TensorSpec([None], tf.int32, name=name) for name in ("num_beams", "max_length")
)
ALPHA = tf.TensorSpec([None], tf.float32, name="alpha")
_WANTED = tf.TensorSpec([], tf.int32, name="wanted")


class Endpoint(NamedTuple):
    """A signature: its inputs, the function behind it, and how a request for texts looks."""

    inputs: list[tf.TensorSpec]
    answer: Callable[..., Tensors]
    request: Callable[[list[str]], Arrays]


class Parts(Translator):
    """The same translator with its parts as functions of the graph.

    A part is then in the file once, however many signatures use it: one more costs some 40 kB
    instead of a search (600 kB) and a tokenizer's model.
    """

    def __init__(self, translator: Translator) -> None:
        tokenizers = translator.tokenizers.source, translator.tokenizers.target
        super().__init__(translator.model, *tokenizers, translator.options)

    @tf.function(input_signature=[TEXT], autograph=False)
    def encode_source(self, text: tf.Tensor) -> Encoded:
        """See `Translator`."""
        return super().encode_source(text)

    def generate(
        self,
        encoder_token_ids: tf.Tensor,
        max_lengths: tf.Tensor,
        *,
        wanted: int | None = None,
        **wishes: Any,
    ) -> SearchResult:
        """See `Translator`; without other wishes one function for all who ask."""
        if wishes:
            with for_any_device():
                return super().generate(encoder_token_ids, max_lengths, wanted=wanted, **wishes)
        wanted = self.most_beams if wanted is None else wanted
        return self._generate(encoder_token_ids, max_lengths, tf.constant(wanted))

    @tf.function(input_signature=[IDS, LENGTH, _WANTED], autograph=False)
    def _generate(
        self, encoder_token_ids: tf.Tensor, max_lengths: tf.Tensor, wanted: tf.Tensor
    ) -> SearchResult:
        with for_any_device():
            return super().generate(encoder_token_ids, max_lengths, wanted=wanted)

    def generate_with_attention(self, *ids: tf.Tensor, **wishes: Any) -> SearchResult:
        """See `Translator`."""
        with for_any_device():
            return super().generate_with_attention(*ids, **wishes)

    @property
    def most_beams(self) -> int:
        """K, of the export and of any row of it."""
        return self._search.num_beams

    @tf.function(input_signature=[IDS], autograph=False)
    def detokenize(self, token_ids: tf.Tensor) -> tf.Tensor:
        """See `Translator`."""
        return super().detokenize(token_ids)


def clean_source(parts: Parts, ids: tf.Tensor, length: tf.Tensor) -> Encoded:
    """Any ids (B, L) as the encoder reads them: cut, END behind each row, PAD behind END."""
    is_end = tf.cast(tf.equal(ids, END_ID), tf.int32)
    is_read = tf.sequence_mask(length, _width(ids)) & tf.equal(tf.cumsum(is_end, axis=1), 0)
    full_lengths = tf.reduce_sum(tf.cast(is_read, tf.int32), axis=1) + 1
    lengths = tf.minimum(full_lengths, parts.options.max_source_length)
    is_text = (ids > END_ID) & (ids < parts.tokenizers.source.vocabulary_size)
    ids = tf.pad(tf.where(is_text, ids, UNK_ID), [[0, 0], [0, 1]])
    ids = ids[:, : tf.reduce_max(tf.concat([lengths, [1]], 0))]
    place = tf.expand_dims(tf.range(_width(ids)), 0)
    last = tf.expand_dims(lengths - 1, 1)
    ids = tf.where(place < last, ids, tf.where(tf.equal(place, last), END_ID, PAD_ID))
    return Encoded(ids, lengths, full_lengths > lengths)


def widened(values: tf.Tensor, width: int, fill: Any) -> tf.Tensor:
    """(B, L) with `fill` up to the fixed `width`."""
    missing = tf.fill([tf.shape(values)[0], width - _width(values)], tf.cast(fill, values.dtype))
    return tf.reshape(tf.concat([values, missing], axis=1), [-1, width])


def pharaoh(alignment: tf.Tensor) -> tf.Tensor:
    """The source word of each target word (B, W), -1 for none -> lines (B,) such as "0-0 1-2"."""
    place = tf.zeros_like(alignment) + tf.range(_width(alignment))
    pairs = tf.strings.join([tf.strings.as_string(x) for x in (alignment, place)], "-")
    return tf.strings.reduce_join(
        tf.ragged.boolean_mask(pairs, alignment >= 0), axis=1, separator=" "
    )


def finite(scores: tf.Tensor) -> tf.Tensor:
    """A place without a hypothesis scores minus infinity, for which JSON has no word."""
    return tf.maximum(scores, tf.float32.min)


def of_texts(texts: list[str]) -> Arrays:
    """A request for texts."""
    return {"text": strings(texts)}


def strings(texts: list[str]) -> np.ndarray:
    """Texts as a session takes them."""
    return np.array([text.encode() for text in texts], object)


def rows_of_ids(rows: list[list[int]]) -> Arrays:
    """A request for ids, made equally long with PAD."""
    lengths = [len(row) for row in rows]
    ids = np.full([len(rows), max(lengths, default=0)], PAD_ID, "int32")
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row
    return {"ids": ids, "length": np.array(lengths, "int32")}


def _width(tensor: tf.Tensor) -> tf.Tensor:
    return tf.shape(tensor)[-1]

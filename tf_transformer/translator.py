"""Translator: text in, text out, with the tokenizers and the search in one TensorFlow graph."""

import dataclasses
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from tf_transformer.bulk import Column, stream
from tf_transformer.config import END_ID, TransformerConfig
from tf_transformer.decoding import SearchResult
from tf_transformer.errors import InputError
from tf_transformer.layers import padding_mask
from tf_transformer.model import embeddings_of
from tf_transformer.options import DecodingOptions
from tf_transformer.run_files import build_in_float32, load_weights, read_run, write_run
from tf_transformer.tokenizers import Tokenizer


class Translator(tf.Module):
    """A trained model with its tokenizers and a search.

    In Python it maps a list of strings to a list of strings; `translate` is the same as a
    TensorFlow function, which is what export takes.

    Args:
        model: from `build_transformer` or a `.keras` file of one.
        source_tokenizer: of the text that comes in.
        target_tokenizer: of the text that goes out; the same object where they share.
        options: how to search.

    Raises:
        InputError: a tokenizer's vocabulary is not the model's.
    """

    def __init__(
        self,
        model: keras.Model,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        options: DecodingOptions | None = None,
    ) -> None:
        super().__init__(name="translator")
        self.model = model
        self.tokenizers = tf.Module(name="tokenizers")  # what an export has to track
        self.tokenizers.source = source_tokenizer
        self.tokenizers.target = target_tokenizer
        self.options = options or DecodingOptions()
        self._encoder_embedding, self._decoder_embedding = embeddings_of(model)
        for side, tokenizer, embedding in (
            ("source", source_tokenizer, self._encoder_embedding),
            ("target", target_tokenizer, self._decoder_embedding),
        ):
            if tokenizer.vocabulary_size != embedding.vocabulary_size:
                raise InputError(
                    f"The {side} tokenizer and the model are of different vocabularies: "
                    f"{tokenizer.vocabulary_size} and {embedding.vocabulary_size} ids."
                )
        self._search = self.options.make()

    def with_options(self, **changes: Any) -> "Translator":
        """A translator over the same weights that searches another way."""
        options = dataclasses.replace(self.options, **changes)
        return Translator(self.model, self.tokenizers.source, self.tokenizers.target, options)

    def __call__(self, texts: Iterable[str]) -> list[str]:
        """Translates any number of texts, in batches of like length; the order stays."""
        return [found["text"] for found in self.stream(texts)]

    def stream(self, texts: Iterable[str], **options: Any) -> Iterator[dict[str, Any]]:
        """What `translate` gives for each text, in order, as they are read; see `bulk.stream`."""
        column = Column("source", self.source_length, self.options.max_source_length)
        return stream(self.translate, texts, (column,), **options)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")], autograph=False)
    def translate(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Strings (B,) -> `text` (B,) valid UTF-8 and `score` (B,) float32.

        The score is log P / ((5 + n) / 6)^alpha of the best hypothesis. A text without a single
        token gives an empty text and score 0. Each row is as if it were alone.
        """
        token_ids, lengths = self.source_ids(text)
        is_empty = lengths <= 1
        found = self.generate(token_ids, tf.where(is_empty, 1, lengths + self.options.extra_length))
        best = self.tokenizers.target.detokenize(found.token_ids[:, 0])
        return {
            "text": tf.where(is_empty, "", best),
            "score": tf.where(is_empty, 0.0, found.scores[:, 0]),
        }

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")], autograph=False)
    def source_length(self, text: tf.Tensor) -> tf.Tensor:
        """Strings (B,) -> all their tokens and END, (B,) int64; `translate` may read fewer."""
        return self.tokenizers.source.tokenize(text).row_lengths() + 1

    def source_ids(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Strings (B,) -> ids with END (B, S) and lengths with END (B,)."""
        token_ids = self.tokenizers.source.tokenize(text)[:, : self.options.max_source_length - 1]
        end = tf.fill([token_ids.nrows(tf.int32), 1], END_ID)
        token_ids = tf.concat([token_ids, tf.RaggedTensor.from_tensor(end)], axis=1)
        return token_ids.to_tensor(), tf.cast(token_ids.row_lengths(), tf.int32)

    def generate(self, encoder_token_ids: tf.Tensor, max_lengths: tf.Tensor) -> SearchResult:
        """Ids with END (B, S) and most output tokens (B,) -> what the search found."""
        beams = self._search.num_beams
        embedding, decoder = self._decoder_embedding, self.model.get_layer("decoder")
        mask = padding_mask(encoder_token_ids)
        encoder_output = self.model.get_layer("encoder")(
            self._encoder_embedding.embed(encoder_token_ids), padding_mask=mask, training=False
        )
        source = decoder.start(encoder_output, mask)
        kernel = embedding.output_kernel()

        def step(token_ids: tf.Tensor, cache: Any, index: tf.Tensor) -> tuple[tf.Tensor, Any]:
            x = embedding.embed(tf.reshape(token_ids, [-1, beams]))  # (B, K, D)
            x, cache, _ = decoder.step(x, cache, index, source)
            logits = embedding.logits(tf.reshape(x, [-1, x.shape[-1]]), kernel)  # (R, V)
            return logits, cache

        rows = tf.shape(encoder_token_ids)[0] * beams
        return self._search(step, decoder.empty_cache(rows), max_lengths)

    def save(self, directory: str | os.PathLike[str], config: TransformerConfig) -> None:
        """Writes all that `load` reads; each file is written beside and renamed."""
        sides = {"source": self.tokenizers.source, "target": self.tokenizers.target}
        write_run(Path(directory), config, self.model, sides, self.options)

    @classmethod
    def load(cls, directory: str | os.PathLike[str], **changes: Any) -> "Translator":
        """A translator from a run directory, in float32.

        Args:
            directory: what `save` or training wrote.
            changes: fields of `DecodingOptions` to replace, such as `num_beams=1`.

        Raises:
            InputError: not a run directory, not finished, or its parts do not fit together.
        """
        config, source, target, decoding = read_run(Path(directory))
        options = DecodingOptions(**{**decoding, **changes})
        translator = cls(build_in_float32(config), source, target, options)
        load_weights(translator.model, directory)
        return translator

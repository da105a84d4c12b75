"""Translator: text in, text out, with the tokenizers and the search in one TensorFlow graph."""

import dataclasses
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from tf_transformer.alignments import align, pieces
from tf_transformer.bulk import Answer, Column, stream
from tf_transformer.config import PAD_ID, TransformerConfig
from tf_transformer.decoding import SearchResult
from tf_transformer.generate import generate
from tf_transformer.options import DecodingOptions
from tf_transformer.run_files import build_in_float32, load_weights, read_run, write_run
from tf_transformer.scorer import Encoded, Scorer
from tf_transformer.tokenizers import Tokenizer

_TEXT = tf.TensorSpec([None], tf.string, name="text")


class Translator(Scorer):
    """A trained model with its tokenizers and a search.

    In Python it maps a list of strings to a list of strings; `translate` and its sisters are
    TensorFlow functions, which is what export takes. What it inherits tells how likely a given
    translation is.

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
        super().__init__(model, source_tokenizer, target_tokenizer, options, name="translator")
        self._search = self.options.make()

    def with_options(self, **changes: Any) -> "Translator":
        """A translator over the same weights that searches another way."""
        options = dataclasses.replace(self.options, **changes)
        return Translator(self.model, self.tokenizers.source, self.tokenizers.target, options)

    def with_beams(self, least: int, name: str = "translate_n_best") -> "Translator":
        """The same with at least so many hypotheses; greedy search becomes beam search.

        Args:
            least: so many.
            name: of the function that gives them; here every one can.
        """
        if self._search.num_beams >= least:
            return self
        search = "beam" if self.options.search == "greedy" else self.options.search
        return self.with_options(search=search, num_beams=least)

    def __call__(self, texts: Iterable[str]) -> list[str]:
        """Translates any number of texts, in batches of like length; the order stays."""
        return [found["text"] for found in self.stream(texts)]

    def stream(
        self, texts: Iterable[str], answer: Answer | None = None, **options: Any
    ) -> Iterator[dict[str, Any]]:
        """What `answer` gives for each text, in order, as they are read; see `bulk.stream`.

        Args:
            texts: any number of them.
            answer: `translate` (default), `translate_n_best` or `translate_with_alignments`.
            options: `batching` and `watch` of `bulk.stream`.
        """
        column = Column("source", self.source_length, self.options.max_source_length)
        # A generator of our own: a `tf.function` of a method does not keep its object alive.
        yield from stream(answer or self.translate, texts, (column,), **options)

    @tf.function(input_signature=[_TEXT], autograph=False)
    def translate(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Strings (B,) -> `text` (B,) valid UTF-8, `score` (B,) float32, `truncated` (B,) bool.

        The score is log P over the length penalty, of the best hypothesis. A text without a single
        token gives an empty text and score 0. What a source has beyond `max_source_length` tokens
        is not read, and `truncated` says so. Each row is as if it were alone.
        """
        source = self.encode_source(text)
        limits = self.max_lengths(source.lengths)
        found = self.generate(source.token_ids, limits, wanted=1)
        best = self.detokenize(found.token_ids[:, 0])
        is_blank = source.lengths <= 1
        return {
            "text": tf.where(is_blank, "", best),
            "score": tf.where(is_blank, 0.0, found.scores[:, 0]),
            "truncated": source.truncated,
        }

    @tf.function(input_signature=[_TEXT], autograph=False)
    def translate_n_best(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Strings (B,) -> the K hypotheses of each, best first.

        A place that no hypothesis filled has an empty text, length 0 and score minus infinity. A
        blank text has one hypothesis: blank, of no token, finished, with score 0.

        Returns:
            `texts` (B, K) valid UTF-8; `scores` (B, K) float32, normalised by length; `log_probs`
            (B, K), not so; `lengths` (B, K) int32, END counts; `finished` (B, K) bool, False where
            the limit came before END; `token_log_probs` (B, K, T) float32, 0 behind the last;
            `pieces` (B, K, T), "" behind the last; `truncated` (B,) as `translate` has it.
        """
        source = self.encode_source(text)
        found = self.generate(source.token_ids, self.max_lengths(source.lengths))
        return self._n_best(source, found)

    @tf.function(input_signature=[_TEXT], autograph=False)
    def translate_with_alignments(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """As `translate_n_best`, with where each hypothesis looked while it was written.

        Returns:
            Moreover `source_pieces` (B, S); `piece_alignment` and `word_alignment` (B, K, T)
            int32, the source piece (word) of each target piece (word), -1 behind the last;
            `attention` (B, T, S) float32 of the best hypothesis, the mean of the heads of
            `alignment_layer`.
        """
        source = self.encode_source(text)
        limits = self.max_lengths(source.lengths)
        found = self.generate_with_attention(source.token_ids, limits)
        described = self._n_best(source, found)
        sides = self.tokenizers.source, self.tokenizers.target
        attention = found.extras["attention"]
        is_blank = tf.reshape(source.lengths <= 1, [-1, 1, 1])
        target_ids = tf.where(is_blank, PAD_ID, found.token_ids)
        aligned = align(*sides, text, source.token_ids, target_ids, attention)
        return {**described, **aligned, "attention": attention[:, 0]}

    def max_lengths(self, source_lengths: tf.Tensor) -> tf.Tensor:
        """Tokens that each output (B,) may have; one where the source is only END."""
        return tf.where(source_lengths <= 1, 1, self.options.max_lengths(source_lengths))

    def detokenize(self, token_ids: tf.Tensor) -> tf.Tensor:
        """Target ids (B, T) -> strings (B,) up to END, valid UTF-8."""
        return self.tokenizers.target.detokenize(token_ids)

    def generate(
        self, encoder_token_ids: tf.Tensor, max_lengths: tf.Tensor, **wishes: Any
    ) -> SearchResult:
        """Ids with END (B, S) and most output tokens (B,) -> what the search found.

        Args:
            encoder_token_ids: int32, PAD behind END.
            max_lengths: int32, END counted.
            wishes: `rows`, `rules` and `wanted` of `generate.generate`: what single rows ask for,
                what this call adds to the rules of the options, such as a `ForcedPrefix`, and how
                many of the best are read.
        """
        layer = self.alignment_layer if self.options.coverage_penalty else None
        ids = encoder_token_ids, max_lengths
        return generate(self.model, self._search, *ids, alignment_layer=layer, **wishes)

    def generate_with_attention(
        self, encoder_token_ids: tf.Tensor, max_lengths: tf.Tensor, **wishes: Any
    ) -> SearchResult:
        """As `generate`, with `extras["attention"]` (B, K, T, S), of `alignment_layer`."""
        ids, layer = (encoder_token_ids, max_lengths), self.alignment_layer
        return generate(self.model, self._search, *ids, alignment_layer=layer, **wishes)

    def _n_best(self, source: Encoded, found: SearchResult) -> dict[str, tf.Tensor]:
        shape = tf.shape(found.token_ids)
        texts = self.detokenize(tf.reshape(found.token_ids, [shape[0] * shape[1], shape[2]]))
        is_blank = (source.lengths <= 1)[:, tf.newaxis]
        is_first = tf.equal(tf.range(shape[1]), 0)[tf.newaxis]
        of_blank = tf.where(is_first, 0.0, -float("inf"))
        token_ids = tf.where(is_blank[:, tf.newaxis], PAD_ID, found.token_ids)
        return {
            "texts": tf.where(is_blank, "", tf.reshape(texts, shape[:2])),
            "scores": tf.where(is_blank, of_blank, found.scores),
            "log_probs": tf.where(is_blank, of_blank, found.log_probs),
            "lengths": tf.where(is_blank, 0, found.lengths),
            "finished": tf.where(is_blank, is_first, found.finished),
            "token_log_probs": tf.where(is_blank[:, tf.newaxis], 0.0, found.token_log_probs),
            "pieces": pieces(self.tokenizers.target, token_ids),
            "truncated": source.truncated,
        }

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

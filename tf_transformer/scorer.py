"""A trained model with its tokenizers: how likely it holds given translations for."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from tf_transformer.alignments import align, pieces
from tf_transformer.bulk import Answer, Column, stream
from tf_transformer.config import END_ID, PAD_ID
from tf_transformer.decoding import length_penalty
from tf_transformer.errors import InputError
from tf_transformer.forced import force
from tf_transformer.model import embeddings_of
from tf_transformer.options import DecodingOptions
from tf_transformer.tokenizers import Tokenizer

_TEXT = tf.TensorSpec([None], tf.string, name="text")
_PAIR = [tf.TensorSpec([None], tf.string, name=name) for name in ("source", "target")]
_IDS = [tf.TensorSpec([None, None], tf.int32, name=f"{name}_ids") for name in ("source", "target")]


class Encoded(NamedTuple):
    """Texts as the model reads them."""

    token_ids: tf.Tensor  # (B, S) int32 with END, PAD behind
    lengths: tf.Tensor  # (B,) int32, END counts; 1 where the text has no token
    truncated: tf.Tensor  # (B,) bool, the text had more tokens


class Scorer(tf.Module):
    """A trained model with its tokenizers, asked what it thinks of given translations.

    Args:
        model: from `build_transformer` or a `.keras` file of one, in float32.
        source_tokenizer: of the text that comes in.
        target_tokenizer: of the text that goes out; the same object where they share.
        options: how long a text may be, how scores are normalised, which layer aligns.

    Raises:
        InputError: a tokenizer's vocabulary is not the model's.
    """

    def __init__(
        self,
        model: keras.Model,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        options: DecodingOptions | None = None,
        name: str = "scorer",
    ) -> None:
        super().__init__(name=name)
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

    def score(
        self, pairs: Iterable[tuple[str, str]], answer: Answer | None = None, **options: Any
    ) -> Iterator[dict[str, Any]]:
        """What `answer` gives for each (source, target), in order, as they are read.

        Args:
            pairs: any number of texts and translations.
            answer: `score_pairs` (default) or `align_pairs`.
            options: `batching` and `watch` of `bulk.stream`.
        """
        columns = (
            Column("source", self.source_length, self.options.max_source_length),
            Column("target", self.target_length, self.options.max_target_length),
        )
        # A generator of our own: a `tf.function` of a method does not keep its object alive.
        yield from stream(answer or self.score_pairs, pairs, columns, **options)

    def function(self, name: str) -> Answer:
        """The TensorFlow function of that name, as `SavedTranslator.function` gives a signature."""
        return getattr(self, name)

    @tf.function(input_signature=_PAIR, autograph=False)
    def score_pairs(self, source: tf.Tensor, target: tf.Tensor) -> dict[str, tf.Tensor]:
        """Texts (B,) and their translations (B,) -> how likely the model holds them for.

        A translation ends with END, which counts: a blank one is END alone. A blank source has the
        blank translation by definition; that pair has no token and score 0. What is longer than
        `max_source_length` or `max_target_length` is cut; of a cut translation END is not asked,
        and `finished` is False.

        Returns:
            `log_prob` (B,) float32, the sum over tokens; `score` (B,), the same over the length
            penalty, as a search reports it; `length` (B,) int32 tokens; `finished` (B,) bool;
            `token_log_probs` (B, T), 0 behind the last; `pieces` (B, T), "" behind the last.
        """
        return self._judge(self.encode_source(source), self.encode_target(target))[0]

    @tf.function(input_signature=_PAIR, autograph=False)
    def align_pairs(self, source: tf.Tensor, target: tf.Tensor) -> dict[str, tf.Tensor]:
        """As `score_pairs`, with the alignment of each pair, from the attention over the source.

        Returns:
            Moreover `source_pieces` (B, S); `attention` (B, T, S) float32, where each target token
            looks; `piece_alignment` and `word_alignment` (B, T) int32, the source piece (word) of
            each target piece (word), -1 behind the last.
        """
        read = self.encode_source(source)
        found, labels, attention = self._judge(read, self.encode_target(target))
        sides = self.tokenizers.source, self.tokenizers.target
        ids = read.token_ids, labels[:, tf.newaxis]
        aligned = align(*sides, source, *ids, attention[:, tf.newaxis])
        for name in ("piece_alignment", "word_alignment"):
            aligned[name] = aligned[name][:, 0]
        return {**found, **aligned, "attention": attention}

    @tf.function(input_signature=_IDS, autograph=False)
    def score_ids(self, source_ids: tf.Tensor, target_ids: tf.Tensor) -> dict[str, tf.Tensor]:
        """Ids with END, PAD behind, (B, S) and (B, T) -> as `score_pairs`, of these very tokens.

        A text may be cut into pieces in more ways than one; this scores the pieces that a search
        has found. Without END the output is scored as far as it goes.
        """
        sides = [
            Encoded(ids, tf.reduce_sum(tf.cast(ids != PAD_ID, tf.int32), 1), _lacks_end(ids))
            for ids in (source_ids, target_ids)
        ]
        return self._judge(*sides)[0]

    @tf.function(input_signature=[_TEXT], autograph=False)
    def source_length(self, text: tf.Tensor) -> tf.Tensor:
        """Strings (B,) -> all their tokens and END, (B,) int64; the model may read fewer."""
        return self.tokenizers.source.tokenize(text).row_lengths() + 1

    @tf.function(input_signature=[_TEXT], autograph=False)
    def target_length(self, text: tf.Tensor) -> tf.Tensor:
        """Strings (B,) -> all their tokens and END, (B,) int64."""
        return self.tokenizers.target.tokenize(text).row_lengths() + 1

    def encode_source(self, text: tf.Tensor) -> Encoded:
        """Strings (B,) -> ids of at most `max_source_length` tokens, the last of them END."""
        limit = self.options.max_source_length
        token_ids = self.tokenizers.source.tokenize(text)
        return _encoded(token_ids[:, : limit - 1], limit, token_ids.row_lengths() >= limit)

    def encode_target(self, text: tf.Tensor) -> Encoded:
        """Strings (B,) -> ids of at most `max_target_length` tokens; of a cut text without END."""
        limit = self.options.max_target_length
        token_ids = self.tokenizers.target.tokenize(text)
        return _encoded(token_ids, limit, token_ids.row_lengths() >= limit)

    @property
    def alignment_layer(self) -> int:
        """Which decoder layer's attention aligns, from 0."""
        layers = self.model.get_layer("decoder").num_layers
        return range(layers)[max(self.options.alignment_layer, -layers)]

    def _judge(
        self, source: Encoded, target: Encoded
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor]:
        """What `score_pairs` gives, the target's ids, and the attention (B, T, S)."""
        blank = (source.lengths <= 1) & (target.lengths <= 1)
        labels = tf.where(blank[:, tf.newaxis], PAD_ID, target.token_ids)
        forced = force(self.model, source.token_ids, labels, self.alignment_layer)
        log_prob = tf.reduce_sum(forced.token_log_probs, axis=1)
        how = self.options.alpha, self.options.length_penalty
        found = {
            "log_prob": log_prob,
            "score": log_prob / length_penalty(target.lengths, *how),
            "length": tf.where(blank, 0, target.lengths),
            "finished": ~target.truncated,
            "token_log_probs": forced.token_log_probs,
            "pieces": pieces(self.tokenizers.target, labels),
        }
        return found, labels, forced.attention


def _encoded(token_ids: tf.RaggedTensor, limit: int, truncated: tf.Tensor) -> Encoded:
    """With END behind each row, and then cut at `limit` tokens."""
    end = tf.fill([token_ids.nrows(tf.int32), 1], END_ID)
    token_ids = tf.concat([token_ids, tf.RaggedTensor.from_tensor(end)], axis=1)[:, :limit]
    return Encoded(token_ids.to_tensor(), tf.cast(token_ids.row_lengths(), tf.int32), truncated)


def _lacks_end(token_ids: tf.Tensor) -> tf.Tensor:
    return ~tf.reduce_any(tf.equal(token_ids, END_ID), axis=1)

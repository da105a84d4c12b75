"""SentencePiece (Kudo and Richardson 2018, arXiv 1808.06226): unigram or BPE pieces."""

import hashlib
import logging
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import sentencepiece
import tensorflow as tf
import tensorflow_text as tf_text

from tf_transformer.config import END_ID, PAD_ID, START_ID, UNK_ID
from tf_transformer.errors import InputError
from tf_transformer.tokenizers.learn_pieces import learn
from tf_transformer.tokenizers.tokenizer import Tokenizer

_log = logging.getLogger(__name__)


class SentencePieceTokenizer(Tokenizer):
    """A trained SentencePiece model, the same ids in the graph and in Python.

    What is not reversible: the `nmt_nfkc` rule normalises (ligatures, full-width letters, runs of
    blanks); a letter outside the vocabulary comes back as " ⁇ " unless the model has byte pieces.

    Args:
        model: the bytes of a `.model` file whose pad, unk, start and end ids are 0, 1, 2, 3.

    Raises:
        InputError: the bytes are no such model.
    """

    suffix = ".model"

    def __init__(self, model: bytes) -> None:
        digest = hashlib.sha256(model).hexdigest()[:16]
        super().__init__(name=f"sentencepiece_{digest}")
        self.model = model
        try:
            if not model:  # the library would take it for "no model yet"
                raise RuntimeError("no bytes")
            self._python = sentencepiece.SentencePieceProcessor(model_proto=model)
        except RuntimeError as error:
            raise InputError("These bytes are no SentencePiece model.") from error
        ids = tuple(getattr(self._python, f"{name}_id")() for name in ("pad", "unk", "bos", "eos"))
        if ids != (PAD_ID, UNK_ID, START_ID, END_ID):
            raise InputError(
                "A SentencePiece model must have pad, unk, start and end at 0, 1, 2, 3. "
                f"Received: {', '.join(map(str, ids))}"
            )
        self._tokenize_eagerly = tf.function(
            self.tokenize, input_signature=[tf.TensorSpec([None], tf.string)], autograph=False
        )
        self._detokenize_eagerly = tf.function(
            self.detokenize,
            input_signature=[tf.TensorSpec([None, None], tf.int32)],
            autograph=False,
        )

    @property
    def vocabulary_size(self) -> int:
        """V, the number of pieces."""
        return self._python.vocab_size()

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Strings (B,) -> int32 ids (B, None)."""
        if tf.executing_eagerly():
            return self._tokenize_eagerly(texts)
        return self._ops().tokenize(_valid_utf8(texts))

    def detokenize(self, token_ids: tf.Tensor) -> tf.Tensor:
        """int32 ids (B, T) -> strings (B,), up to END, valid UTF-8."""
        if tf.executing_eagerly():
            return self._detokenize_eagerly(token_ids)
        is_end = tf.cast(tf.equal(token_ids, END_ID), tf.int32)
        before_end = tf.equal(tf.cumsum(is_end, axis=1), 0)
        in_range = tf.logical_and(token_ids >= 0, token_ids < self.vocabulary_size)
        special = tf.logical_or(tf.equal(token_ids, PAD_ID), tf.equal(token_ids, START_ID))
        keep = before_end & in_range & ~special
        texts = self._ops().detokenize(tf.ragged.boolean_mask(token_ids, keep))
        return tf.strings.strip(_valid_utf8(texts))  # UNK comes back with blanks around it

    def _ops(self) -> tf_text.SentencepieceTokenizer:
        # The op that holds the model is a node of each graph that uses it. An eager one, captured,
        # dies with TensorFlow's kernel cache, which `tf.random.set_seed` clears, and has to be
        # tracked for export. Unnamed nodes share one resource after reload and swap silently
        # (tensorflow/text #1304): the name is the content's. START and END are never asked for
        # here: add_bos and add_eos are state of the shared processor, and threads race for it.
        # Kept in the graph: in a dictionary here it would keep the graph alive.
        graph = tf.compat.v1.get_default_graph()
        made = getattr(graph, "_tokenizers", {})
        if self.name not in made:
            made[self.name] = tf_text.SentencepieceTokenizer(
                self.model, out_type=tf.int32, name=self.name
            )
            graph._tokenizers = made
        return made[self.name]

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of `tokenize`, in plain Python."""
        return self._python.encode(list(texts))

    def pieces(self, text: str) -> list[str]:
        """The pieces of one text."""
        return self._python.encode(text, out_type=str)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the `.model` file, beside and renamed."""
        beside = Path(f"{os.fspath(path)}.writing")
        beside.write_bytes(self.model)
        os.replace(beside, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "SentencePieceTokenizer":
        """Reads a `.model` file; InputError when it is missing or no such model."""
        try:
            return cls(Path(path).read_bytes())
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}") from error
        except InputError as error:
            raise InputError(f"{path}: {error}") from error

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        vocabulary_size: int,
        *,
        model_type: str = "unigram",
        character_coverage: float = 1.0,
        byte_fallback: bool = False,
        normalization: str = "nmt_nfkc",
        **options: Any,
    ) -> "SentencePieceTokenizer":
        """Learns pieces in memory; the vocabulary comes out smaller where the text has no more.

        Args:
            texts: sentences.
            vocabulary_size: V at most, the four special ids included.
            model_type: `"unigram"` or `"bpe"`.
            character_coverage: share of all letters that become pieces.
            byte_fallback: letters outside the vocabulary become bytes, not UNK.
            normalization: `"nmt_nfkc"`, `"nfkc"`, these with `"_cf"` for lower case, or
                `"identity"` for text as it is.
            options: further arguments of `sentencepiece.SentencePieceTrainer.train`.

        Raises:
            InputError: no text, fewer ids than the text has letters, or a wrong argument.
        """
        tokenizer = cls(
            learn(
                texts,
                vocabulary_size,
                model_type=model_type,
                character_coverage=character_coverage,
                byte_fallback=byte_fallback,
                normalization_rule_name=normalization,
                **options,
            )
        )
        if tokenizer.vocabulary_size < vocabulary_size:
            _log.warning(
                "The text has pieces for a vocabulary of %d only, asked for were %d.",
                tokenizer.vocabulary_size,
                vocabulary_size,
            )
        return tokenizer


def _valid_utf8(texts: tf.Tensor) -> tf.Tensor:
    return tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")

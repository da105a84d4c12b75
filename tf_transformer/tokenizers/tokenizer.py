"""What every tokenizer does: text to ids and back, as TensorFlow ops and in plain Python."""

import abc
import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import tensorflow as tf

from tf_transformer.config import END_ID, PAD_ID, START_ID
from tf_transformer.errors import InputError

SPECIALS = ("[PAD]", "[UNK]", "[START]", "[END]")  # names of the first ids, for people and files

T = TypeVar("T", bound="Tokenizer")


class Tokenizer(tf.Module, abc.ABC):
    """Ids 0 to 3 are PAD, UNK, START and END in every tokenizer; text never becomes one of 0, 2, 3.

    START and END are added by whoever needs them, never by the tokenizer. A subclass gives the ops
    for graphs (`_to_ids`, `_to_texts`) and the same in Python (`encode`); a new one is one file
    here and one line of `TOKENIZERS`.

    Args:
        kind: first part of `name`; the second is a digest of `content`, so that two tokenizers
            have one name when and only when they are equal.
        content: the bytes of the tokenizer's file.

    Attributes:
        content: all that it knows, as `save` writes it.
    """

    suffix: str

    def __init__(self, kind: str, content: bytes) -> None:
        super().__init__(name=f"{kind}_{hashlib.sha256(content).hexdigest()[:16]}")
        self.content = content
        self._tokenize_eagerly = tf.function(
            self._to_ids, input_signature=[tf.TensorSpec([None], tf.string)], autograph=False
        )
        self._detokenize_eagerly = tf.function(
            self.detokenize,
            input_signature=[tf.TensorSpec([None, None], tf.int32)],
            autograph=False,
        )

    @property
    @abc.abstractmethod
    def vocabulary_size(self) -> int:
        """V, the ids are 0 to V - 1."""

    @property
    @abc.abstractmethod
    def description(self) -> str:
        """The kind of tokenizer and what was chosen in its making, in a few words for people."""

    @property
    @abc.abstractmethod
    def litert_obstacle(self) -> str:
        """Why no op of LiteRT gives its ids; empty when one does."""

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Strings (B,) -> int32 ids (B, None), in the graph.

        Bytes that are not UTF-8 count as U+FFFD each, unless the tokenizer is one of bytes.
        """
        return self._tokenize_eagerly(texts) if tf.executing_eagerly() else self._to_ids(texts)

    def detokenize(self, token_ids: tf.Tensor) -> tf.Tensor:
        """int32 ids (B, T) -> strings (B,), valid UTF-8, in the graph.

        Reads up to the first END and skips PAD, START and ids outside the vocabulary.
        """
        if tf.executing_eagerly():
            return self._detokenize_eagerly(token_ids)
        return valid_utf8(self._to_texts(self._readable(token_ids)))

    @abc.abstractmethod
    def words(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Strings (B,) -> which word each token of `tokenize` is a part of, int32 (B, None).

        From 0; words are what ASCII blanks separate. A token that stands for blanks alone belongs
        to the word behind them. Only while a graph is made.
        """

    def to_pieces(self, token_ids: tf.Tensor) -> tf.Tensor:
        """int32 ids of any shape, all in the vocabulary -> their pieces, as `vocabulary` has them.

        Only while a graph is made.
        """
        return tf.gather(tf.constant(self.vocabulary()), token_ids)

    @abc.abstractmethod
    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of `tokenize`, in plain Python (fast on one CPU, for training)."""

    @abc.abstractmethod
    def pieces(self, text: str) -> list[str]:
        """The pieces of one text, for people: one for each id, none with a blank in it."""

    @abc.abstractmethod
    def vocabulary(self) -> list[str]:
        """The piece of every id, by id; the special ids' names are the tokenizer's own."""

    @abc.abstractmethod
    def piece_ids(self, pieces: Sequence[str]) -> list[int]:
        """The ids of what `pieces` gives; UNK for what is no piece."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes one file, beside and renamed; InputError where none can be written."""
        beside = Path(f"{os.fspath(path)}.writing")
        try:
            beside.write_bytes(self.content)
            os.replace(beside, path)
        except OSError as error:
            raise InputError(f"{path} can't be written: {error.strerror}.") from error

    @classmethod
    def load(cls: type[T], path: str | os.PathLike[str]) -> T:
        """Reads what `save` wrote; InputError when the file is missing or broken."""
        return _read(path, cls.from_content)

    @classmethod
    def adopt(cls: type[T], path: str | os.PathLike[str]) -> T:
        """Reads a file that another program made, and changes its ids where ours must be others.

        Raises:
            InputError: the file is missing or broken, or no such file can be used.
        """
        return _read(path, cls.from_foreign)

    @classmethod
    @abc.abstractmethod
    def from_content(cls: type[T], content: bytes) -> T:
        """A tokenizer from the bytes that `save` wrote."""

    @classmethod
    def from_foreign(cls: type[T], content: bytes) -> T:
        """A tokenizer from the bytes of another program's file."""
        return cls.from_content(content)

    @classmethod
    @abc.abstractmethod
    def train(cls: type[T], texts: Iterable[str], vocabulary_size: int, **options: Any) -> T:
        """Learns a vocabulary of at most `vocabulary_size` ids; it may come out smaller."""

    @abc.abstractmethod
    def _to_ids(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """`tokenize`, while a graph is made."""

    @abc.abstractmethod
    def _to_texts(self, token_ids: tf.RaggedTensor) -> tf.Tensor:
        """int32 ids (B, None), none of them PAD, START or END or above V - 1 -> strings (B,)."""

    def _readable(self, token_ids: tf.Tensor) -> tf.RaggedTensor:
        is_end = tf.cast(tf.equal(token_ids, END_ID), tf.int32)
        before_end = tf.equal(tf.cumsum(is_end, axis=1), 0)
        # The ops fail on ids outside the vocabulary, FastWordpiece's even crashes.
        in_range = tf.logical_and(token_ids >= 0, token_ids < self.vocabulary_size)
        special = tf.logical_or(tf.equal(token_ids, PAD_ID), tf.equal(token_ids, START_ID))
        return tf.ragged.boolean_mask(token_ids, before_end & in_range & ~special)


def valid_utf8(texts: tf.Tensor) -> tf.Tensor:
    """Strings of any shape with each byte that is not UTF-8 as U+FFFD."""
    return tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")


def _read(path: str | os.PathLike[str], make: Any) -> Any:
    try:
        return make(Path(path).read_bytes())
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except InputError as error:
        raise InputError(f"{path}: {error}") from error

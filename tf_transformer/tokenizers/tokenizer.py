"""What every tokenizer does: text to ids and back, as TensorFlow ops and in plain Python."""

import abc
import os
from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf


class Tokenizer(tf.Module, abc.ABC):
    """Ids 0 to 3 are PAD, UNK, START and END in every tokenizer; text never becomes one of 0, 2, 3.

    START and END are added by whoever needs them, never by the tokenizer.
    """

    suffix: str

    @property
    @abc.abstractmethod
    def vocabulary_size(self) -> int:
        """V, the ids are 0 to V - 1."""

    @abc.abstractmethod
    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Strings (B,) -> int32 ids (B, None), in the graph.

        Bytes that are not UTF-8 count as U+FFFD each.
        """

    @abc.abstractmethod
    def detokenize(self, token_ids: tf.Tensor) -> tf.Tensor:
        """int32 ids (B, T) -> strings (B,), valid UTF-8, in the graph.

        Reads up to the first END and skips PAD, START and ids outside the vocabulary.
        """

    @abc.abstractmethod
    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of `tokenize`, in plain Python (fast on one CPU, for training)."""

    @abc.abstractmethod
    def pieces(self, text: str) -> list[str]:
        """The pieces of one text, for people."""

    @abc.abstractmethod
    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes one file, beside and renamed."""

    @classmethod
    @abc.abstractmethod
    def load(cls, path: str | os.PathLike[str]) -> "Tokenizer":
        """Reads what `save` wrote; InputError when the file is missing or broken."""

    @classmethod
    @abc.abstractmethod
    def train(cls, texts: Iterable[str], vocabulary_size: int, **options: Any) -> "Tokenizer":
        """Learns a vocabulary of at most `vocabulary_size` ids; it may come out smaller."""

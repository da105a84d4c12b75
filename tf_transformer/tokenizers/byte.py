"""Bytes as tokens (ByT5: Xue et al. 2022, arXiv 2105.13626): nothing to learn, nothing unknown."""

from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

from tf_transformer.config import UNK_ID
from tf_transformer.errors import InputError
from tf_transformer.tokenizers.tokenizer import SPECIALS, Tokenizer
from tf_transformer.tokenizers.words import words_of_bytes

_FIRST = 4  # the id of byte 0
_SIZE = _FIRST + 256
_CONTENT = b"tf_transformer bytes 1\n"


class ByteTokenizer(Tokenizer):
    """Every byte of the UTF-8 text is one token: byte b has the id 4 + b, V is 260.

    Every text comes back as it was, blanks at the ends and NUL too. What a model emits and is no
    UTF-8 becomes U+FFFD where ids become text, once a broken letter; `to_bytes` gives it raw. It
    takes core TensorFlow alone. Sentences are some five times as long as with subwords (twice that
    in scripts beyond the Latin one), so give `max_length` and `max_source_length` room.
    """

    suffix = ".bytes"

    def __init__(self) -> None:
        super().__init__("bytes", _CONTENT)

    @property
    def vocabulary_size(self) -> int:
        """V, 260: four special ids and the bytes."""
        return _SIZE

    @property
    def description(self) -> str:
        """There is only one."""
        return "Bytes"

    @property
    def litert_obstacle(self) -> str:
        """LiteRT has no op that cuts a string into bytes."""
        return "its tokenizer is one of bytes"

    def words(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Strings (B,) -> the word of each token, int32 (B, None)."""
        return tf.RaggedTensor.from_tensor(words_of_bytes(texts), tf.strings.length(texts))

    def encode(self, texts: Sequence[str | bytes]) -> list[list[int]]:
        """The ids of `tokenize`, in plain Python; takes bytes as well."""
        raw = (text if isinstance(text, bytes) else text.encode() for text in texts)
        return [[byte + _FIRST for byte in text] for text in raw]

    def pieces(self, text: str) -> list[str]:
        """ASCII signs as they are, the blank as "▁", every other byte as `<0xC3>`."""
        return [_piece(byte) for byte in text.encode()]

    def vocabulary(self) -> list[str]:
        """The piece of every id, by id."""
        return [*SPECIALS, *map(_piece, range(256))]

    def piece_ids(self, pieces: Sequence[str]) -> list[int]:
        """The ids of what `pieces` gives; UNK for what is no piece."""
        ids = {_piece(byte): byte + _FIRST for byte in range(256)}
        return [ids.get(piece, UNK_ID) for piece in pieces]

    def to_bytes(self, token_ids: tf.Tensor) -> tf.Tensor:
        """int32 ids (B, T) -> strings (B,): as `detokenize`, but no byte is replaced."""
        return self._to_texts(self._readable(token_ids))

    @classmethod
    def from_content(cls, content: bytes) -> "ByteTokenizer":
        """The tokenizer, if these are the bytes that `save` writes."""
        if content != _CONTENT:
            raise InputError("This is not the file of a tokenizer of bytes.")
        return cls()

    @classmethod
    def train(
        cls, texts: Iterable[str], vocabulary_size: int = _SIZE, **options: Any
    ) -> "ByteTokenizer":
        """The tokenizer: there is nothing to learn.

        Args:
            texts: not looked at.
            vocabulary_size: 260 or more.
            options: none.

        Raises:
            InputError: fewer ids than there are bytes, or an option.
        """
        if options:
            raise InputError(f"A tokenizer of bytes has no option `{next(iter(options))}`.")
        if vocabulary_size < _SIZE:
            raise InputError(
                f"The vocabulary of bytes has {_SIZE} ids. Received: {vocabulary_size}"
            )
        return cls()

    def _to_ids(self, texts: tf.Tensor) -> tf.RaggedTensor:
        split = tf.strings.bytes_split(texts)  # (B, None), one byte each
        values = tf.reshape(tf.io.decode_raw(split.flat_values, tf.uint8), [-1])
        return split.with_flat_values(tf.cast(values, tf.int32) + _FIRST)

    def _to_texts(self, token_ids: tf.RaggedTensor) -> tf.Tensor:
        special = [b"", "\ufffd".encode(), b"", b""]  # a model's UNK is a letter that is broken
        table = tf.constant([*special, *(bytes([byte]) for byte in range(256))])
        return tf.strings.reduce_join(
            token_ids.with_flat_values(tf.gather(table, token_ids.flat_values)), axis=-1
        )


def _piece(byte: int) -> str:
    if byte == ord(" "):
        return "▁"
    return chr(byte) if 0x20 < byte < 0x7F else f"<0x{byte:02X}>"

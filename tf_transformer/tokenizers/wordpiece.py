"""WordPiece (Wu et al. 2016, arXiv 1609.08144, section 4.1): the longest known pieces of words."""

import functools
import logging
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text
from tensorflow_text.core.pybinds.pywrap_fast_wordpiece_tokenizer_model_builder import (
    build_fast_wordpiece_model,
)

from tf_transformer.config import UNK_ID
from tf_transformer.errors import InputError
from tf_transformer.tokenizers.learn_word_pieces import learn
from tf_transformer.tokenizers.tokenizer import Tokenizer
from tf_transformer.tokenizers.word_pieces import (
    BLANKS,
    INSIDE,
    WordPieces,
    adopt_lines,
    read_lines_of,
)
from tf_transformer.tokenizers.words import words_of_letters

# In the graph: what continues a word, and an unknown letter. No text has them, as control
# characters are blanks. With "##" itself a word "##s" would be taken for the piece.
_INSIDE, _UNKNOWN = "\x01", "\x02"
_KNOWN_LETTER, _BLANK = 1, 2
_PAGE = 256

_log = logging.getLogger(__name__)


class WordPieceTokenizer(Tokenizer):
    """Words between blanks, each in its longest known pieces; "##" continues a word.

    Punctuation is a part of the word it touches, not a word (as it is in BERT), so that text comes
    back with its blanks where they were. What is not reversible: runs of blanks become one, those
    at the ends go, and a letter outside the vocabulary comes back as " ⁇ ". It does not normalise
    and does not change case.

    Args:
        vocabulary: the lines of its file, see `WordPieces`.

    Raises:
        InputError: they are no such vocabulary.
    """

    suffix = ".vocab.txt"

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._python = WordPieces(vocabulary)
        super().__init__("wordpiece", "".join(f"{line}\n" for line in vocabulary).encode())

    @property
    def vocabulary_size(self) -> int:
        """V, the number of lines."""
        return len(self._python.lines)

    @property
    def description(self) -> str:
        """There is only one kind."""
        return "WordPiece"

    @property
    def litert_obstacle(self) -> str:
        """LiteRT lacks the ops that look at letters one by one."""
        return "its tokenizer is WordPiece"

    def words(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Strings (B,) -> the word of each token, int32 (B, None)."""
        codes = tf.strings.unicode_decode(texts, "UTF-8", errors="replace")
        kept = tf.not_equal(codes.with_flat_values(self._read(codes)).to_tensor(ord(" ")), ord(" "))
        begins = kept & ~tf.pad(kept[:, :-1], [[0, 0], [1, 0]])  # a word of ours, as Unicode has it
        words = tf.ragged.boolean_mask(words_of_letters(codes.to_tensor(ord(" "))), begins)
        pieces = self._pieces_of_words(codes)  # (B, words, None)
        return pieces.with_values(
            pieces.values.with_values(tf.gather(words.flat_values, pieces.values.value_rowids()))
        ).merge_dims(1, 2)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of `tokenize`, in plain Python."""
        return [self._python.encode(text) for text in texts]

    def pieces(self, text: str) -> list[str]:
        """The pieces of one text; an unknown letter stands for itself."""
        return self._python.pieces(text)

    def vocabulary(self) -> list[str]:
        """The piece of every id, by id."""
        return list(self._python.lines)

    def piece_ids(self, pieces: Sequence[str]) -> list[int]:
        """The ids of what `pieces` gives; UNK for what is no piece."""
        return [self._python.id_of(piece) for piece in pieces]

    @classmethod
    def from_content(cls, content: bytes) -> "WordPieceTokenizer":
        """A tokenizer from the bytes of a vocabulary file of ours, whatever its line ends."""
        return cls(read_lines_of(content))

    @classmethod
    def from_foreign(cls, content: bytes) -> "WordPieceTokenizer":
        """From a `vocab.txt` as BERT has it: [CLS] and [SEP] become START and END."""
        return cls(adopt_lines(read_lines_of(content)))

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        vocabulary_size: int,
        *,
        character_coverage: float = 1.0,
        **options: Any,
    ) -> "WordPieceTokenizer":
        """Learns pieces; the vocabulary comes out smaller where the text has no more.

        Args:
            texts: sentences.
            vocabulary_size: V at most, the four special ids included; each letter takes two.
            character_coverage: share of all letters that become pieces, from 0.98 to 1.
            options: no more.

        Raises:
            InputError: no text, fewer ids than the text's letters need, or a wrong argument.
        """
        if options:
            raise InputError(f"A WordPiece tokenizer has no option `{next(iter(options))}`.")
        tokenizer = cls(learn(texts, vocabulary_size, character_coverage))
        if tokenizer.vocabulary_size < vocabulary_size:
            _log.warning(
                "The text has pieces for a vocabulary of %d only, asked for were %d.",
                tokenizer.vocabulary_size,
                vocabulary_size,
            )
        return tokenizer

    def _to_ids(self, texts: tf.Tensor) -> tf.RaggedTensor:
        codes = tf.strings.unicode_decode(texts, "UTF-8", errors="replace")  # (B, None)
        ids = self._pieces_of_words(codes).merge_dims(1, 2)
        # The last is an unknown letter inside a word.
        return ids.with_flat_values(
            tf.where(ids.flat_values < self.vocabulary_size, ids.flat_values, UNK_ID)
        )

    def _pieces_of_words(self, codes: tf.RaggedTensor) -> tf.RaggedTensor:
        """Code points (B, None) -> ids (B, words, None); V is an unknown letter inside a word."""
        letters = tf.strings.unicode_encode(codes.with_flat_values(self._read(codes)), "UTF-8")
        words = tf.strings.split(letters)  # (B, None)
        op = tf_text.FastWordpieceTokenizer(
            model_buffer=tf.constant(self._graph_model), token_out_type=tf.int32
        )
        return op.tokenize(words)

    def _read(self, codes: tf.RaggedTensor) -> tf.Tensor:
        """Code points with unknown letters and blanks replaced."""
        page_of, kinds = _kinds(self._python.letters)
        values = codes.flat_values
        places = tf.gather(tf.constant(page_of), values // _PAGE) * _PAGE + values % _PAGE
        kind = tf.gather(tf.constant(kinds), places)
        unknown = tf.where(tf.equal(kind, _BLANK), ord(" "), ord(_UNKNOWN))
        return tf.where(tf.equal(kind, _KNOWN_LETTER), values, unknown)

    @functools.cached_property
    def _graph_model(self) -> np.ndarray:
        """FastWordpiece's model, uint8, with what no text can have for "##" and special ids.

        Made by its builder: the op makes a list of the bytes, which takes seconds in each graph.
        """
        special = [" pad", _UNKNOWN, " start", " end"]
        pieces = map(_in_graph, self._python.lines[4:])
        any_length = np.iinfo(np.int32).max  # in bytes: single words are what it gets
        model = build_fast_wordpiece_model(
            *([*special, *pieces, _INSIDE + _UNKNOWN], any_length, _INSIDE, _UNKNOWN),
            *(True, False),  # no_pretokenization, support_detokenization
        )
        return np.frombuffer(model, np.uint8)

    def _to_texts(self, token_ids: tf.RaggedTensor) -> tf.Tensor:
        # By core ops: FastWordpiece would show "##" in front of a text that begins inside a word.
        special = ["", " ⁇", "", ""]
        table = tf.constant([*special, *(f" {_in_graph(x)}" for x in self._python.lines[4:])])
        pieces = token_ids.with_flat_values(tf.gather(table, token_ids.flat_values))
        joined = tf.strings.reduce_join(pieces, axis=-1)
        return tf.strings.strip(tf.strings.regex_replace(joined, f" {_INSIDE}", ""))


def _in_graph(line: str) -> str:
    return _INSIDE + line.removeprefix(INSIDE) if line.startswith(INSIDE) else line


def _kinds(letters: frozenset[str]) -> tuple[np.ndarray, np.ndarray]:
    """What each code point is: the page of each 256 of them, int32, and pages of kinds, int8."""
    codes = np.array([*map(ord, letters), *BLANKS])
    used = np.unique(codes // _PAGE)
    page_of = np.zeros(0x110000 // _PAGE, np.int32)  # page 0: nothing but unknown letters
    page_of[used] = np.arange(1, len(used) + 1)
    kinds = np.zeros((len(used) + 1) * _PAGE, np.int8)
    kinds[page_of[codes // _PAGE] * _PAGE + codes % _PAGE] = _KNOWN_LETTER
    blanks = np.array(BLANKS)
    kinds[page_of[blanks // _PAGE] * _PAGE + blanks % _PAGE] = _BLANK
    return page_of, kinds

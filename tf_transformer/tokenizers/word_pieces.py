"""The vocabulary of WordPiece: its file, its rules, and words to pieces in plain Python."""

import logging
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from tf_transformer.config import UNK_ID
from tf_transformer.errors import InputError
from tf_transformer.tokenizers.tokenizer import SPECIALS

INSIDE = "##"  # begins a piece that continues a word
# What separates words: Unicode's blanks, and the control characters and separators that the
# reading of corpora makes blanks of.
BLANKS = (
    *(0x20, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000),
    *(*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, 0xFEFF),
)
_SPLIT = re.compile("[" + "".join(map(re.escape, map(chr, BLANKS))) + "]+")
# What other programs call our four, the first that is there counts.
_FOREIGN = (
    ("[PAD]", "<pad>"),
    ("[UNK]", "<unk>"),
    ("[START]", "[CLS]", "<s>"),
    ("[END]", "[SEP]", "</s>"),
)
_UNUSED = re.compile(r"\[unused\d+\]")
_CACHED_WORDS, _CACHED_LETTERS = 1 << 17, 64

_log = logging.getLogger(__name__)


def split_words(text: str) -> list[str]:
    """What stands between blanks."""
    return [word for word in _SPLIT.split(text) if word]


def both_forms(letters: Iterable[str]) -> Iterator[str]:
    """Each letter as it begins a word and as it continues one."""
    for letter in letters:
        yield from (letter, INSIDE + letter)


class WordPieces:
    """Pieces by id, and the greedy cut of a word: the longest piece first (Wu et al. 2016).

    Args:
        lines: SPECIALS, then pieces; one that continues a word begins with "##". Every letter
            stands there in both forms, so that a word is unknown in no more than its unknown
            letters.

    Raises:
        InputError: the lines are no such vocabulary.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = tuple(lines)
        if self.lines[:4] != SPECIALS:
            raise InputError(f"A WordPiece vocabulary begins with {', '.join(SPECIALS)}.")
        self._starts: dict[str, int] = {}
        self._insides: dict[str, int] = {}
        for token, line in enumerate(self.lines[4:], 4):
            piece = line.removeprefix(INSIDE)
            pieces = self._insides if line.startswith(INSIDE) else self._starts
            if not piece or _SPLIT.search(piece) or line in SPECIALS or piece in pieces:
                raise InputError(
                    "A WordPiece vocabulary holds different pieces without blanks. "
                    f"Received: {line!r} in line {token + 1}"
                )
            pieces[piece] = token
        used = {letter for pieces in (self._starts, self._insides) for p in pieces for letter in p}
        self.letters = frozenset(used)
        for letter in sorted(used):
            if letter not in self._starts or letter not in self._insides:
                raise InputError(
                    "A WordPiece vocabulary has every letter alone, with and without ##. "
                    f"One is missing of: {letter!r}"
                )
        self._longest = max(map(len, (*self._starts, *self._insides)), default=0)
        self._cache: dict[str, list[int]] = {}

    def encode(self, text: str) -> list[int]:
        """The ids of one text."""
        ids: list[int] = []
        for word in split_words(text):
            found = self._cache.get(word)
            if found is None:
                found = [token for token, _ in self._cut(word)]
                if len(word) <= _CACHED_LETTERS:
                    if len(self._cache) >= _CACHED_WORDS:
                        self._cache.clear()
                    self._cache[word] = found
            ids += found
        return ids

    def pieces(self, text: str) -> list[str]:
        """The pieces of one text; an unknown letter as it is."""
        return [piece for word in split_words(text) for _, piece in self._cut(word)]

    def id_of(self, piece: str) -> int:
        """The id of what `pieces` gives; UNK for what is no piece."""
        pieces = self._insides if piece.startswith(INSIDE) else self._starts
        return pieces.get(piece.removeprefix(INSIDE), UNK_ID)

    def _cut(self, word: str) -> Iterator[tuple[int, str]]:
        start = 0
        while start < len(word):
            pieces, mark = (self._insides, INSIDE) if start else (self._starts, "")
            for end in range(min(len(word), start + self._longest), start, -1):
                if (token := pieces.get(word[start:end])) is not None:
                    yield token, mark + word[start:end]
                    break
            else:
                end = start + 1
                yield UNK_ID, mark + word[start:end]
            start = end


def read_lines_of(content: bytes) -> list[str]:
    """The lines of a vocabulary file, whatever editor wrote it.

    Raises:
        InputError: it is not UTF-8.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("A WordPiece vocabulary is a text file in UTF-8.") from error
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]


def adopt_lines(lines: Sequence[str]) -> list[str]:
    """A vocabulary as BERT has it, with our four in front and every letter in both forms.

    The pieces stay in their order. Lines that no text can have (`[unused12]`, blanks, repetitions)
    are left out.

    Raises:
        InputError: it has no line for the unknown, so it is no vocabulary.
    """
    if not set(_FOREIGN[UNK_ID]) & set(lines):
        raise InputError("A WordPiece vocabulary has a line [UNK].")
    taken = {next((name for name in names if name in lines), "") for names in _FOREIGN}
    kept = [
        line
        for line in dict.fromkeys(lines)
        if line.removeprefix(INSIDE) and not _SPLIT.search(line) and not _UNUSED.fullmatch(line)
        if line not in taken and line not in SPECIALS
    ]
    letters = sorted({letter for line in kept for letter in line.removeprefix(INSIDE)})
    added = sorted(set(both_forms(letters)) - set(kept))
    adopted = [*SPECIALS, *kept, *added]
    if adopted != lines:
        _log.info(
            "Of %d lines %d are pieces; %d letters were added that had one form only.",
            *(len(lines), len(kept), len(added)),
        )
        categories = {unicodedata.category(letter) for letter in letters}
        if "Ll" in categories and "Lu" not in categories:
            _log.warning("The vocabulary has no capital letter: those of a text will be unknown.")
    return adopted

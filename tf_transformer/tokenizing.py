"""What a tokenizer makes of text, shown to people and to other programs."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import tensorflow as tf
from rich.console import Console
from rich.text import Text

from tf_transformer.errors import InputError
from tf_transformer.run_files import TRANSLATOR_FILE, read_manifest
from tf_transformer.saved import METADATA_FILE, find_saved_model, read_metadata
from tf_transformer.tokenizer_files import find_tokenizers, read_tokenizer, read_tokenizers
from tf_transformer.tokenizers import Tokenizer

_COLOURS = ("black on bright_cyan", "black on bright_yellow", "black on bright_green")
_MOST_ID = 2**31 - 1


def open_tokenizers(path: Path) -> tuple[Tokenizer, Tokenizer]:
    """Source and target tokenizer of a run, an export or a tokenizer's file.

    Raises:
        InputError: there is none, or a file is broken.
    """
    if path.is_file():
        tokenizer = read_tokenizer(path)
        return tokenizer, tokenizer
    if (path / TRANSLATOR_FILE).is_file():
        return read_tokenizers(path, read_manifest(path)["tokenizers"])
    if (saved := find_saved_model(path)) is not None:
        entries = read_metadata(saved).get("tokenizers", {})
        if not all("file" in entry for entry in entries.values()) or not entries:
            raise InputError(f"{saved} has no files of its tokenizers: export the run again.")
        return read_tokenizers((saved / METADATA_FILE).parent, entries)
    if (found := find_tokenizers(path)) is not None:
        return found
    raise InputError(f"{path} is no run, no SavedModel and no tokenizer's file.")


def as_lines(tokenizer: Tokenizer, texts: Iterable[str], ids: bool = False) -> Iterator[str]:
    """The pieces of each text with blanks between them, or their ids."""
    for text in texts:
        yield " ".join(map(str, tokenizer.encode([text])[0]) if ids else tokenizer.pieces(text))


def back_to_texts(
    tokenizer: Tokenizer, lines: Iterable[str], ids: bool = False, window: int = 512
) -> Iterator[str]:
    """The texts that lines of `as_lines` stand for.

    Args:
        tokenizer: that made them.
        lines: pieces, or ids, with blanks between them.
        ids: whether they are ids; those outside the vocabulary are skipped.
        window: lines read before the first of them is answered.

    Raises:
        InputError: a line holds what is no id.
    """
    numbered = enumerate(lines, 1)
    while some := list(islice(numbered, window)):
        rows = [
            _read_ids(line, number) if ids else tokenizer.piece_ids(_split(line))
            for number, line in some
        ]
        yield from _texts_of(tokenizer, rows)


def show(tokenizer: Tokenizer, texts: Iterable[str], console: Console) -> None:
    """Prints pieces in colours, their ids, and the text that comes back, for each text."""
    for text in texts:
        pieces, (ids,) = tokenizer.pieces(text), tokenizer.encode([text])
        shown = Text()
        for number, piece in enumerate(pieces):
            shown.append(piece, _COLOURS[number % len(_COLOURS)]).append(" ")
        console.print(shown, soft_wrap=True)
        console.print(Text(" ".join(map(str, ids)), "dim"), soft_wrap=True)
        (back,) = _texts_of(tokenizer, [ids])
        same = back == text
        console.print(Text(f"= {back}" if same else f"≠ {back}", "" if same else "bold red"))


def _texts_of(tokenizer: Tokenizer, rows: list[list[int]]) -> list[str]:
    padded = tf.ragged.constant(rows, tf.int32, ragged_rank=1).to_tensor()
    return [text.decode("utf-8") for text in tokenizer.detokenize(padded).numpy()]


def _split(line: str) -> list[str]:
    return [piece for piece in line.split(" ") if piece]  # other blanks may be part of a piece


def _read_ids(line: str, number: int) -> list[int]:
    found = []
    for word in _split(line):
        if not (word.removeprefix("-").isdecimal() and abs(int(word)) <= _MOST_ID):
            raise InputError(f"Line {number} must be ids with blanks between them, not {word!r}.")
        found.append(int(word))
    return found

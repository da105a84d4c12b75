"""The files of tokenizers: beside a run or an export, or one by itself, of ours or of others."""

from collections.abc import Mapping
from pathlib import Path

from tf_transformer.errors import InputError
from tf_transformer.tokenizers import (
    TOKENIZERS,
    ByteTokenizer,
    SentencePieceTokenizer,
    Tokenizer,
    WordPieceTokenizer,
)

Entries = dict[str, dict[str, str]]  # by side: "type" in TOKENIZERS and "file" in the directory

# The end of a file's name tells what it is; others call theirs vocab.txt.
_READERS: dict[str, type[Tokenizer]] = {
    ".model": SentencePieceTokenizer,
    ".txt": WordPieceTokenizer,
    ".bytes": ByteTokenizer,
}


def write_tokenizers(directory: Path, source: Tokenizer, target: Tokenizer) -> Entries:
    """Writes one file a side, one for both where they are one object, and returns what they are."""
    names = {cls: name for name, cls in TOKENIZERS.items()}
    sides = {"source": source} if source is target else {"source": source, "target": target}
    entries = {}
    for side, tokenizer in sides.items():
        file = side + tokenizer.suffix
        tokenizer.save(directory / file)
        entries[side] = {"type": names[type(tokenizer)], "file": file}
    return entries


def read_tokenizers(
    directory: Path, entries: Mapping[str, Mapping[str, str]]
) -> tuple[Tokenizer, Tokenizer]:
    """Source and target as `write_tokenizers` left them, one object where they share.

    Raises:
        InputError: a file is missing or broken.
    """
    found = {
        side: TOKENIZERS[entry["type"]].load(directory / entry["file"])
        for side, entry in entries.items()
    }
    return found["source"], found.get("target", found["source"])


def find_tokenizers(directory: Path) -> tuple[Tokenizer, Tokenizer] | None:
    """Those of a run that is not finished, by the names of their files; None without any."""
    entries = {
        side: {"type": name, "file": side + cls.suffix}
        for name, cls in TOKENIZERS.items()
        for side in ("source", "target")
        if (directory / (side + cls.suffix)).is_file()
    }
    return read_tokenizers(directory, entries) if "source" in entries else None


def read_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer in a file of ours or of another program, with ids as ours are.

    Raises:
        InputError: the file is missing or broken, or its name does not tell what it is.
    """
    reader = _READERS.get(path.suffix)
    if reader is None:
        raise InputError(
            f"{path} must be a tokenizer's file, whose name ends in {', '.join(_READERS)}."
        )
    return reader.adopt(path)

"""A vocabulary by itself: learnt from files, written to a file, and measured on its text."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pydantic

from tf_transformer.config import UNK_ID
from tf_transformer.errors import InputError
from tf_transformer.lines import Errors, clean_line, iter_lines
from tf_transformer.tokenizers import TOKENIZERS, Tokenizer

from ..settings.tokenizer import TokenizerSettings

_MEASURED_LINES = 10_000


def learn_vocabulary(
    files: Sequence[Path], output: Path, encoding_errors: Errors = "strict", **keys: Any
) -> str:
    """Learns from all lines of all files, and writes one file, beside and renamed.

    Args:
        files: text, one sentence a line.
        output: where to, with a name as the type has it: `.model` or `.txt`.
        encoding_errors: see `tf_transformer.lines.iter_lines`.
        keys: of a recipe's [tokenizer]; `shared` and `model` have no use here.

    Returns:
        A sentence for people: kind, ids, tokens a word, share of unknown tokens.

    Raises:
        InputError: a file can't be read or written, a key breaks its rule, or the text gives no
            such vocabulary; the message names the files.
    """
    if encoding_errors not in ("strict", "replace"):
        raise InputError(
            f"`encoding_errors` must be strict or replace. Received: {encoding_errors!r}"
        )
    settings = _settings(keys)
    kind = TOKENIZERS[settings.type]
    ending = f".{kind.suffix.rpartition('.')[-1]}"
    if settings.type == "byte":
        raise InputError('There is nothing to learn for type = "byte": every byte is a token.')
    if output.suffix != ending:
        raise InputError(f"{output} must end in {ending}, as its type has it.")
    lines = _Lines(files, encoding_errors)
    try:
        tokenizer = kind.train(lines, **settings.options())
    except InputError as error:
        if lines.is_read:  # else the message is about a file already
            names = " + ".join(map(str, files))
            raise InputError(f"{names}: {error}") from error
        raise
    tokenizer.save(output)
    return (
        f"{tokenizer.description}, {tokenizer.vocabulary_size:,} ids; {_measure(tokenizer, lines)}"
    )


class _Lines:
    """The lines of files, opened at once, so that a missing one is found before any work."""

    def __init__(self, files: Sequence[Path], errors: Errors) -> None:
        self._files, self._errors = files, errors
        self.is_read = False
        for lines in [iter_lines(file, errors=errors) for file in files]:
            del lines

    def __iter__(self) -> Iterator[str]:
        for file in self._files:
            yield from self._of(file)
        self.is_read = True

    def sample(self) -> list[str]:
        """The first lines of each file."""
        return [text for file in self._files for text in islice(self._of(file), _MEASURED_LINES)]

    def _of(self, file: Path) -> Iterator[str]:
        return map(clean_line, iter_lines(file, errors=self._errors))


def _settings(keys: dict[str, Any]) -> TokenizerSettings:
    try:
        return TokenizerSettings.model_validate(keys)
    except pydantic.ValidationError as error:
        details = error.errors(include_url=False)[0]
        rule = details["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
        name = f"`{details['loc'][0]}` " if details["loc"] else ""
        received = f". Received: {details['input']!r}" if name else "."
        raise InputError(f"{name}{rule}{received}") from None


def _measure(tokenizer: Tokenizer, lines: _Lines) -> str:
    texts = lines.sample()
    ids = [token for row in tokenizer.encode(texts) for token in row]
    words = sum(len(text.split()) for text in texts)
    unknown = ids.count(UNK_ID) / max(len(ids), 1)
    return f"{len(ids) / max(words, 1):.2f} tokens a word, {unknown:.2%} of them unknown"

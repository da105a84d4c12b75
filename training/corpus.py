"""Parallel text: line-aligned pairs of files or tab-separated pairs, cleaned and counted."""

import dataclasses
import logging
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from tf_transformer.errors import InputError
from tf_transformer.lines import CONTROLS, Errors, clean_line, iter_lines, read_aligned

PathLike = str | os.PathLike[str]

BLANK_SIDE = "blank on one side"
NOT_TWO_FIELDS = "not two fields"
HAD_CONTROLS = "control characters"
HAD_OUTER_BLANKS = "outer blanks"

_LINES_NAMED = 5  # in the log, of lines that a reader skips

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Sentence pairs: `source[n]` is translated by `target[n]`; neither is blank.

    Args:
        source: source sentences, without control characters and outer blanks.
        target: target sentences, as many.
        dropped: number of pairs left out, by reason.
        repaired: number of sentences of the pairs kept that were changed, by reason.
        name: the files it was read from, for messages.
    """

    source: list[str]
    target: list[str]
    dropped: dict[str, int] = dataclasses.field(default_factory=dict)
    repaired: dict[str, int] = dataclasses.field(default_factory=dict)
    name: str = "corpus"

    def __post_init__(self) -> None:
        if len(self.source) != len(self.target):
            raise InputError(
                f"{self.name}: `source` and `target` must be equally long. "
                f"Received: {len(self.source)} and {len(self.target)} sentences"
            )

    def __len__(self) -> int:
        return len(self.source)


def read_split(
    data_dir: PathLike,
    split: str = "train",
    files: Sequence[str] | None = None,
    errors: Errors = "strict",
) -> Corpus:
    """The pairs of one split of a data folder.

    Args:
        data_dir: the folder.
        split: name of the split, "train" for `train.src` and `train.tgt`; see `find_split`.
        files: names to read instead, relative to `data_dir`: a source and a target file, or one
            file of tab-separated pairs.
        errors: what to do with bytes that are not UTF-8; see `tf_transformer.lines.iter_lines`.
    """
    if files is None:
        paths = find_split(data_dir, split)
    elif len(files) in (1, 2):
        paths = tuple(Path(data_dir, name) for name in files)
    else:
        raise InputError(f"`files` must be a source and a target, or one TSV. Received: {files}")
    if len(paths) == 1:
        return read_tsv(paths[0], errors)
    return read_pairs(paths[0], paths[1], errors)


def find_split(data_dir: PathLike, split: str) -> tuple[Path, ...]:
    """The files of one split: `(split.src, split.tgt)` or `(split.tsv,)`, each plain or `.gz`.

    Raises:
        InputError: the folder or a file of the split is missing, or a file is there twice, so
            that it is not clear which one is meant.
    """
    folder = Path(data_dir)
    if not folder.is_dir():
        raise InputError(f"There is no data folder {folder}.")
    ends = ("src", "tgt", "tsv")
    names = [f"{split}.{end}{gz}" for end in ends for gz in ("", ".gz")]
    names = [name for name in names if (folder / name).exists()]
    found = [name.removesuffix(".gz").rpartition(".")[-1] for name in names]
    if found in (["src", "tgt"], ["tsv"]):
        return tuple(folder / name for name in names)
    if not found:
        raise InputError(
            f"{folder} must hold {split}.src and {split}.tgt, or {split}.tsv (plain or .gz), but "
            "has none of them."
        )
    if found in (["src"], ["tgt"]):
        missing = "tgt" if found == ["src"] else "src"
        raise InputError(f"{folder} has {names[0]}, but no {split}.{missing} (plain or .gz).")
    raise InputError(
        f"{folder} holds {', '.join(names)}, and which of them to read is not clear: leave one "
        "pair of files or one TSV, or name the files in the recipe."
    )


def read_pairs(source: PathLike, target: PathLike, errors: Errors = "strict") -> Corpus:
    """The pairs of two files: line n of `source` belongs to line n of `target`.

    Pairs with a blank side are dropped and counted. Control characters and the Unicode line
    separators become blanks, outer blanks are cut, so that no later stage can split a sentence.

    Raises:
        InputError: different numbers of lines (the message has both), nothing left, or a file
            that can't be read; see `tf_transformer.lines.iter_lines`.
    """
    pairs = zip(*read_aligned(source, target, errors=errors), strict=True)
    return _clean(pairs, f"{os.fspath(source)} + {os.fspath(target)}", Counter())


def read_tsv(path: PathLike, errors: Errors = "strict") -> Corpus:
    """The pairs of a file with a source, one tab and a target on each line.

    There is no quoting: quotation marks are part of the text. A line with one field or more than
    two is skipped, counted, and named in the log; the rest is as in `read_pairs`.
    """
    name = os.fspath(path)
    pairs: list[tuple[str, str]] = []
    skipped: list[tuple[int, int]] = []
    for number, line in enumerate(iter_lines(path, errors=errors), start=1):
        fields = line.split("\t")
        if len(fields) == 2:
            pairs.append((fields[0], fields[1]))
        elif not line.strip():
            pairs.append(("", ""))
        else:
            skipped.append((number, len(fields)))
    if skipped:
        named = ", ".join(f"line {number} has {count}" for number, count in skipped[:_LINES_NAMED])
        logger.warning(
            f"{name}: skipped {len(skipped)} line(s) that are not two fields with one tab between "
            f"them: {named}{', ...' if len(skipped) > _LINES_NAMED else ''}."
        )
    return _clean(pairs, name, Counter({NOT_TWO_FIELDS: len(skipped)} if skipped else {}))


def _clean(pairs: Iterable[tuple[str, str]], name: str, dropped: Counter[str]) -> Corpus:
    repaired: Counter[str] = Counter()
    source: list[str] = []
    target: list[str] = []
    for pair in pairs:
        cleaned = (clean_line(pair[0]), clean_line(pair[1]))
        if not all(cleaned):
            dropped[BLANK_SIDE] += 1
            continue
        if cleaned != pair:
            repaired.update(
                HAD_CONTROLS if CONTROLS.search(before) else HAD_OUTER_BLANKS
                for before, after in zip(pair, cleaned, strict=True)
                if before != after
            )
        source.append(cleaned[0])
        target.append(cleaned[1])
    if not source:
        why = f"no pair is left: {_counts(dropped)}" if dropped else "the corpus is empty"
        raise InputError(f"{name}: {why}.")
    _report(name, len(source), dropped, repaired)
    return Corpus(source, target, dict(dropped), dict(repaired), name)


def _report(name: str, kept: int, dropped: Counter[str], repaired: Counter[str]) -> None:
    message = f"{name}: {kept} pairs"
    if dropped:
        message += f"; pairs dropped: {_counts(dropped)}"
    if repaired:
        message += f"; sentences repaired: {_counts(repaired)}"
    logger.log(logging.WARNING if dropped else logging.INFO, message)


def _counts(reasons: Counter[str]) -> str:
    return ", ".join(f"{count} ({reason})" for reason, count in reasons.items())

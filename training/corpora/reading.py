"""Parallel text from files: line-aligned pairs, tab-separated pairs, TensorFlow Datasets."""

import logging
import os
from collections.abc import Sequence
from pathlib import Path

from tf_transformer.errors import InputError
from tf_transformer.lines import Errors, iter_lines, read_aligned

from .corpus import Corpus, clean
from .tfds import TFDS, read_tfds

PathLike = str | os.PathLike[str]

NOT_TWO_FIELDS = "not two fields"

_LINES_NAMED = 5  # in the log, of lines that a reader skips

logger = logging.getLogger(__name__)


def read_split(
    data_dir: PathLike | None,
    split: str = "train",
    files: Sequence[str] | None = None,
    errors: Errors = "strict",
) -> Corpus:
    """The pairs of one split of a data folder.

    Args:
        data_dir: the folder; not needed for "tfds:...".
        split: name of the split, "train" for `train.src` and `train.tgt`; see `find_split`.
        files: names to read instead, relative to `data_dir`: a source and a target file, one file
            of tab-separated pairs, or "tfds:..." alone; see `read_tfds`.
        errors: what to do with bytes that are not UTF-8; see `tf_transformer.lines.iter_lines`.
    """
    if files is not None and len(files) == 1 and files[0].startswith(TFDS):
        return read_tfds(files[0])
    if data_dir is None:
        raise InputError(f"The {split} split is in files: name their folder with --data.")
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

    See `clean` for what becomes of them.

    Raises:
        InputError: different numbers of lines (the message has both), nothing left, or a file
            that can't be read; see `tf_transformer.lines.iter_lines`.
    """
    pairs = zip(*read_aligned(source, target, errors=errors), strict=True)
    return clean(pairs, f"{os.fspath(source)} + {os.fspath(target)}")


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
    return clean(pairs, name, {NOT_TWO_FIELDS: len(skipped)} if skipped else None)

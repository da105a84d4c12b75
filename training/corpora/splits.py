"""The corpora of a run: what its recipe names, or what Python gives instead."""

from collections.abc import Iterable, Mapping
from typing import Any

from tf_transformer.errors import InputError

from ..settings.data import DataSettings
from .corpus import Corpus, mix, without_duplicates
from .pairs import corpus_of
from .reading import PathLike, read_split

Given = Mapping[str, "Corpus | Iterable[Any]"]

SPLITS = ("train", "valid")


def read_splits(
    settings: DataSettings, data_dir: PathLike | None, given: Given | None = None
) -> dict[str, Corpus]:
    """The corpora for "train" and "valid".

    Args:
        settings: [data] of the recipe.
        data_dir: the folder of the files that it names.
        given: by split what to take instead of files; see `corpus_of`.

    Raises:
        InputError: a split that is not one of these, or a corpus that can't be read.
    """
    given = given or {}
    for split in given:
        if split not in SPLITS:
            raise InputError(f"`corpora` may hold {' and '.join(SPLITS)}. Received: {split!r}")
    corpora = {
        split: corpus_of(given[split], f"the {split} split")
        if split in given
        else _read(settings, data_dir, split)
        for split in SPLITS
    }
    if settings.drop_duplicates:
        corpora["train"] = without_duplicates(corpora["train"])
    return corpora


def _read(settings: DataSettings, data_dir: PathLike | None, split: str) -> Corpus:
    errors = settings.encoding_errors
    if split == "train" and settings.corpora is not None:
        return mix(
            [
                (read_split(data_dir, split, corpus.files, errors), corpus.weight)
                for corpus in settings.corpora
            ]
        )
    return read_split(data_dir, split, getattr(settings, split), errors)

"""Arrays and facts in one file that knows when it is damaged: a zip, as np.savez writes."""

import json
import os
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tf_transformer.errors import InputError

_FACTS = "facts.json"


def write_state(path: Path, arrays: Iterable[np.ndarray], facts: dict[str, Any]) -> None:
    """Writes them beside and renamed; holds one array at a time.

    Args:
        path: the file; `np.load` opens it as well.
        arrays: of any shapes and of NumPy's own dtypes.
        facts: what JSON can tell.

    Raises:
        InputError: a float array has a NaN or an infinity; nothing is written.
    """
    beside = path.with_name(f"{path.name}.writing")
    with zipfile.ZipFile(beside, "w") as archive:
        for number, array in enumerate(arrays):
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise InputError(f"{path} is not written: a weight is NaN or infinite.")
            with archive.open(f"{number:05}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
        archive.writestr(_FACTS, json.dumps(facts))
    os.replace(beside, path)


def damage(path: Path) -> str | None:
    """What is wrong with the file, None when it is whole: all that it holds has checksums."""
    try:
        with zipfile.ZipFile(path) as archive:
            broken = archive.testzip()
            return f"{broken} in it is damaged" if broken else None
    except (OSError, EOFError, zipfile.BadZipFile) as error:
        return str(error)


def read_facts(path: Path) -> dict[str, Any]:
    """The facts of a file that is whole."""
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read(_FACTS))


def read_arrays(path: Path) -> Iterator[np.ndarray]:
    """The arrays of a file that is whole, one at a time."""
    with zipfile.ZipFile(path) as archive:
        for name in sorted(name for name in archive.namelist() if name != _FACTS):
            with archive.open(name) as member:
                yield np.lib.format.read_array(member, allow_pickle=False)

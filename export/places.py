"""Version folders: a new one put in place, old ones taken away."""

import errno
import shutil
import tempfile
from pathlib import Path

from tf_transformer.errors import InputError
from tf_transformer.saved import versions


def place(written: Path, directory: Path, version: int | None) -> Path:
    """Renames a finished folder to `directory`/`version`, by default the next free number.

    Raises:
        InputError: the version exists.
    """
    while True:
        taken = versions(directory)
        number = max(taken, default=0) + 1 if version is None else version
        if number in taken:
            raise InputError(exists(directory, number))
        target = directory / str(number)
        try:
            # At once, and refused where another export has just put its own.
            return written.rename(target)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise


def remove_older(placed: Path, keep: int) -> list[Path]:
    """Deletes versions lower than the one just placed, of which with it `keep` stay.

    A version loses its number before its files: a server never sees half of one.

    Returns:
        The folders that were there.
    """
    older = [path for number, path in versions(placed.parent).items() if number < int(placed.name)]
    removed = older[: max(0, len(older) + 1 - keep)]
    for path in removed:
        with tempfile.TemporaryDirectory(prefix="deleting_", dir=placed.parent) as beside:
            shutil.rmtree(path.rename(Path(beside) / path.name))
    return removed


def exists(directory: Path, version: int | None) -> str:
    """What is said of a version that is there already."""
    return f"Version {version} exists in {directory} and is never overwritten; choose another."

"""Files of which line n belongs to line n, of any length: a line of each at a time."""

import os
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from tf_transformer.lines import Errors, count_lines, iter_lines, uneven


def iter_aligned(
    *paths: str | os.PathLike[str], errors: Errors = "strict"
) -> Iterator[tuple[str, ...]]:
    """As `read_aligned`, without keeping any file in memory; lines are counted beforehand.

    Raises:
        InputError: as `read_aligned`; where one is a pipe, only when the shorter one has ended.
    """
    files = [iter_lines(path, errors=errors) for path in paths]
    counts = [count for count in map(count_lines, paths) if count is not None]
    if len(counts) == len(paths) and len(set(counts)) > 1:
        raise uneven(paths, counts)
    return _together(paths, files)


def _together(
    paths: Sequence[str | os.PathLike[str]], files: list[Iterator[str]]
) -> Iterator[tuple[str, ...]]:
    for number, lines in enumerate(zip_longest(*files), 1):
        if None in lines:
            raise uneven(paths, [number - (line is None) for line in lines])
        yield lines

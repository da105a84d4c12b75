"""Text out of archives, without writing anything that an archive names."""

import gzip
import html
import re
import tarfile
import zipfile
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path
from typing import BinaryIO, cast

from tf_transformer.errors import InputError
from tf_transformer.lines import iter_lines

_SEGMENT = re.compile(r"<seg[^>]*>(.*?)</seg>", re.DOTALL | re.IGNORECASE)


def members(path: Path, names: Collection[str]) -> Iterator[tuple[str, Iterator[str]]]:
    """Each of these members of an archive, in the archive's order, as its lines.

    Args:
        path: a .tgz, .tar.gz, .zip or .gz file, or plain text; the last two are one member, "".
        names: of the members. Of an .sgm file (NIST's format of test sets) the segments are lines.

    Raises:
        InputError: the archive is broken or lacks one of them.
    """
    left = set(names)
    try:
        for name, stream in _streams(path, left):
            left.discard(name)
            yield name, _lines(stream, f"{path.name}: {name or 'its text'}", name)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError) as error:
        raise InputError(f"{path} can't be unpacked: {error}.") from error
    if left:
        raise InputError(f"{path} has no {' and no '.join(sorted(left))} inside.")


def _streams(path: Path, names: Collection[str]) -> Iterator[tuple[str, BinaryIO]]:
    if path.name.endswith((".tgz", ".tar.gz")):
        with tarfile.open(path, "r|gz") as archive:  # a stream: seeking in gzip is slow
            for member in archive:
                name = member.name.removeprefix("./")
                if name in names and (stream := archive.extractfile(member)) is not None:
                    yield name, cast(BinaryIO, stream)
    elif path.name.endswith(".zip"):
        with zipfile.ZipFile(path) as folder:
            for name in folder.namelist():
                if name in names:
                    with folder.open(name) as stream:
                        yield name, cast(BinaryIO, stream)
    else:
        opened = gzip.open(path) if path.name.endswith(".gz") else open(path, "rb")
        with closing(opened):
            yield "", cast(BinaryIO, opened)


def _lines(stream: BinaryIO, label: str, name: str) -> Iterator[str]:
    lines = iter_lines(stream, name=label)
    if not name.endswith(".sgm"):
        return lines
    found = _SEGMENT.findall("\n".join(lines))
    return (" ".join(html.unescape(segment).split()) for segment in found)

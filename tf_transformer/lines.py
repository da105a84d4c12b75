"""Text files of one sentence a line: how every command reads and writes them.

A line ends at "\\n" and nowhere else. `str.splitlines` would also break at U+2028 and eight more
signs that occur inside sentences of real corpora; all pairs after such a break are wrong.
"""

import gzip
import logging
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import BinaryIO, Literal, cast

from tf_transformer.errors import InputError

Source = str | os.PathLike[str] | BinaryIO
Errors = Literal["strict", "replace"]

MAX_LINE_BYTES = 1 << 24  # a binary file without "\n" must not fill the memory

# C0 and C1 (NUL, tab, VT, FF, CR, FS, GS, RS, U+0085, ...), the Unicode line and paragraph
# separators, and byte-order marks that joining files left inside.
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]+")

logger = logging.getLogger(__name__)


def clean_line(line: str) -> str:
    """`line` with each run of control characters and separators as one blank, outer blanks cut.

    After it no program, whatever it takes for a line break, can split the sentence.

    >>> clean_line("a\\u2028b\\tc\\x00 ")
    'a b c'
    """
    return CONTROLS.sub(" ", line).strip()


def iter_lines(
    source: Source, *, name: str | None = None, errors: Errors = "strict"
) -> Iterator[str]:
    """The lines of a file or binary stream, one at a time, without their line ends.

    Opens the file at once, so that a missing one is reported before any work. A byte-order mark
    at the start is dropped, so is the CR of a CRLF; a missing last "\\n" makes no difference. No
    line is dropped or joined: line n of the file is item n.

    Args:
        source: a path, read as gzip when its name ends in ".gz", or a stream of bytes such as
            `sys.stdin.buffer`, which stays open.
        name: what messages call the source; default its path or name.
        errors: what to do with bytes that are not UTF-8: `"strict"` raises, `"replace"` reads
            them as U+FFFD, as `tf.strings.unicode_transcode` does in a served model, and logs
            the number of such lines.

    Raises:
        InputError: the source can't be read, is UTF-16, is not sound gzip, holds a line above
            16 MiB or, under `"strict"`, bytes that are not UTF-8.
    """
    if errors not in ("strict", "replace"):
        raise ValueError(f'`errors` must be "strict" or "replace". Received: errors={errors!r}')
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        lines = _decode(_open(path), name or path, errors, owned=True)
    else:
        name = name or str(getattr(source, "name", "the input"))
        lines = _decode(source, name, errors, owned=False)
    next(lines)  # from here on, dropping the iterator closes the file
    return lines


def read_lines(source: Source, *, name: str | None = None, errors: Errors = "strict") -> list[str]:
    """All lines of a file or binary stream; see `iter_lines`."""
    return list(iter_lines(source, name=name, errors=errors))


def count_lines(path: str | os.PathLike[str]) -> int | None:
    """Lines of a file, as many as `iter_lines` gives; None for a pipe, which is read only once."""
    if not os.path.isfile(path):
        return None
    name = os.fspath(path)
    with _open(name) as stream:
        return sum(1 for _ in _split(stream, name))


def read_aligned(*paths: str | os.PathLike[str], errors: Errors = "strict") -> list[list[str]]:
    """The lines of files of which line n belongs to line n: source, target, references.

    Raises:
        InputError: the files differ in their number of lines (the message has all names and
            counts), or one can't be read.
    """
    # All are opened before the first is read: a missing file is found in no time.
    files = [list(lines) for lines in [iter_lines(path, errors=errors) for path in paths]]
    if len({len(lines) for lines in files}) > 1:
        raise uneven(paths, [len(lines) for lines in files])
    return files


def uneven(paths: Sequence[str | os.PathLike[str]], counts: Sequence[int]) -> InputError:
    """The error for files that should have as many lines as each other and have these."""
    said = [f"{os.fspath(path)} has {n}" for path, n in zip(paths, counts, strict=True)]
    return InputError(
        f"Line n of one file must belong to line n of the other, but {' and '.join(said)}."
    )


def write_lines(target: Source, lines: Iterable[str]) -> int:
    """Writes each line with "\\n" after it, in UTF-8, and returns how many there were.

    A file is written beside its name and renamed when it is whole; a name in ".gz" is compressed.
    A stream, pipe or device gets each line at once.

    Raises:
        ValueError: a line holds "\\n".
        InputError: the file can't be written there.
    """
    if not isinstance(target, (str, os.PathLike)):
        return _write(target, lines, flush=True)
    name = os.fspath(target)
    path = Path(os.path.realpath(name))  # renaming onto a link would replace the link
    if path.is_dir():
        raise InputError(f"{name} must be a file, but it is a folder.")
    if path.exists() and not path.is_file():  # /dev/stdout, a named pipe: nothing to rename
        with open(path, "wb") as stream:
            return _write(stream, lines, flush=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.writing")
    try:
        with open(beside, "wb") as file, _compressed(file, name) as stream:
            count = _write(stream, lines)
        os.replace(beside, path)
    except OSError as error:
        raise InputError(f"{name} can't be written: {error.strerror or error}.") from error
    finally:
        with suppress(OSError):  # renamed when all went well
            beside.unlink()
    return count


def _open(path: str) -> BinaryIO:
    if os.path.isdir(path):
        raise InputError(f"{path} must be a text file, but it is a folder.")
    try:
        return cast(BinaryIO, gzip.open(path)) if path.endswith(".gz") else open(path, "rb")
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.") from None
    except OSError as error:
        raise InputError(f"{path} can't be read: {error.strerror or error}.") from error


def _decode(stream: BinaryIO, name: str, errors: Errors, owned: bool) -> Iterator[str]:
    bad_lines = first_bad = 0
    with stream if owned else nullcontext():
        yield ""  # taken by `iter_lines`
        for number, raw in enumerate(_split(stream, name), start=1):
            try:
                line = raw.decode()
            except UnicodeDecodeError as error:
                if errors == "strict":
                    raise InputError(
                        f"{name} must be UTF-8, but line {number} has the byte "
                        f"0x{raw[error.start]:02X} at its byte {error.start + 1}."
                    ) from None
                line = raw.decode(errors="replace")
                bad_lines, first_bad = bad_lines + 1, first_bad or number
            yield line
    if bad_lines:
        logger.warning(
            f"{name}: {bad_lines} line(s) have bytes that are not UTF-8, the first is line "
            f"{first_bad}; they were read as U+FFFD."
        )


def _split(stream: BinaryIO, name: str) -> Iterator[bytes]:
    number = 1
    try:
        raw = stream.readline(MAX_LINE_BYTES)
        if raw.startswith(b"\x1f\x8b"):
            raise InputError(f"{name} is gzip, so its name must end in .gz.")
        # Without a NUL in the line these may just be two damaged bytes.
        if raw.startswith((b"\xff\xfe", b"\xfe\xff")) and b"\0" in raw:
            raise InputError(f"{name} must be UTF-8, but it starts with the mark of UTF-16.")
        raw = raw.removeprefix(b"\xef\xbb\xbf")
        while raw:
            if len(raw) >= MAX_LINE_BYTES and not raw.endswith(b"\n"):
                raise InputError(f"{name} must be lines of text, but line {number} is too long.")
            yield raw.removesuffix(b"\n").removesuffix(b"\r")
            raw = stream.readline(MAX_LINE_BYTES)
            number += 1
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{name} is not sound gzip: {error}.") from error
    except OSError as error:
        raise InputError(f"{name} can't be read: {error.strerror or error}.") from error


def _write(stream: BinaryIO, lines: Iterable[str], flush: bool = False) -> int:
    count = 0
    for count, line in enumerate(lines, start=1):  # noqa: B007
        if "\n" in line:
            raise ValueError(f"A line can't hold a line break. Received: line {count}, {line!r}")
        stream.write(line.encode("utf-8") + b"\n")
        if flush:  # whoever reads the other end sees each answer when it is there
            stream.flush()
    return count


def _compressed(file: BinaryIO, name: str) -> AbstractContextManager[BinaryIO]:
    """`file` itself, or a gzip writer on it without name and time: same lines, same bytes."""
    if name.endswith(".gz"):
        return cast(BinaryIO, gzip.GzipFile("", "wb", fileobj=file, mtime=0))
    return nullcontext(file)

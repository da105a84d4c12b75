"""Files from the network: gone on with after a stop, refused when they are not what they were."""

import contextlib
import errno
import gzip
import hashlib
import http.client
import os
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tf_transformer.errors import InputError

Report = Callable[[int, int | None], None]

_ATTEMPTS = 4
_WAIT = 1.0  # seconds before the second attempt, then twice as long each time
_TIMEOUT = 60.0
_CHUNK = 1 << 17


def download(
    url: str,
    path: Path,
    *,
    sha256: str | None = None,
    text_sha256: str | None = None,
    report: Report | None = None,
) -> None:
    """Fetches a file; `path` is there when it is whole and right, and not before.

    What has come stays in `path.part` when the line breaks or the process is stopped, and the next
    call goes on from there, where the server can (HTTP ranges).

    Args:
        url: http, https or file.
        path: where to; its folder exists.
        sha256: of the file.
        text_sha256: of the text inside a gzip file.
        report: called with the bytes that are there and how many there will be, or None.

    Raises:
        InputError: there is no such file, the line breaks again and again, the disk is full, or the
            checksum is another: then nothing of it is kept.
    """
    part = path.with_name(f"{path.name}.part")
    try:
        _fetch_all(url, part, report or (lambda done, total: None))
        _check(url, part, sha256, text_sha256)
        os.replace(part, path)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise InputError(
                f"The disk is full: {url} can't be kept in {path.parent}. Make room; the same "
                "command goes on."
            ) from error
        raise InputError(f"{part} can't be written: {error.strerror or error}.") from error


def _fetch_all(url: str, part: Path, report: Report) -> None:
    trouble = ""
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(_WAIT * 2 ** (attempt - 1))
        try:
            done, total = _fetch(url, part, report)
            if total is None or done == total:
                return
            trouble = f"it broke off after {done:,} of {total:,} bytes"
        except urllib.error.HTTPError as error:
            trouble = f"the server says {error.code} {error.reason}"
            if error.code == 416:  # it has changed, or `part` is all of it and was not renamed
                part.unlink(missing_ok=True)
            elif error.code < 500:
                break
        except urllib.error.URLError as error:
            trouble = str(getattr(error.reason, "strerror", None) or error.reason)
            if isinstance(error.reason, FileNotFoundError):
                break
        except (http.client.HTTPException, TimeoutError, ConnectionError) as error:
            trouble = str(error) or type(error).__name__
        except ValueError:
            trouble = "it is no URL"
            break
    kept = " What has come is kept: the same command goes on." if part.exists() else ""
    raise InputError(f"{url} can't be fetched: {trouble}.{kept}")


def _fetch(url: str, part: Path, report: Report) -> tuple[int, int | None]:
    """One attempt: bytes that are there after it, and bytes that there are."""
    done = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": "tf-transformer"}
    if done:
        headers["Range"] = f"bytes={done}-"
    request = urllib.request.Request(url, headers=headers)
    with contextlib.closing(urllib.request.urlopen(request, timeout=_TIMEOUT)) as answer:
        goes_on = getattr(answer, "status", None) == http.client.PARTIAL_CONTENT
        done = done if goes_on else 0
        length = answer.headers.get("Content-Length")
        total = None if length is None else done + int(length)
        with open(part, "ab" if goes_on else "wb") as file:
            while chunk := answer.read(_CHUNK):
                file.write(chunk)
                done += len(chunk)
                report(done, total)
    return done, total


def _check(url: str, part: Path, sha256: str | None, text_sha256: str | None) -> None:
    expected = sha256 or text_sha256
    try:
        found = sha256_of(part, inside=sha256 is None and text_sha256 is not None)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        found = "none: it is no sound gzip"
    if expected is not None and found != expected:
        part.unlink()
        raise InputError(
            f"{url} is not the file that it was: its sha256 is {found}, and must be {expected}. "
            "Nothing of it was kept."
        )


def sha256_of(path: Path, inside: bool = False) -> str:
    """The digest of a file, or of what is inside a gzip file."""
    digest = hashlib.sha256()
    opened: Any = gzip.open(path) if inside else open(path, "rb")
    with opened as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()

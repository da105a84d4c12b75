"""`tf-transformer data`: a corpus of the catalogue as a folder that a recipe can be trained on."""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.table import Table

from tf_transformer.errors import InputError

from .catalogue import Entry, RemoteFile, read_catalogue
from .download import download, sha256_of
from .holding_out import hold_out
from .unpacking import members

ABOUT = "ABOUT.txt"  # of the folder; is written last
_DOWNLOADS = "downloads"


def fetch_corpus(
    entry: Entry, folder: Path, console: Console, mirror: str | None = None, keep: bool = False
) -> None:
    """Fetches a corpus, checks it, and writes its splits as .src and .tgt.

    After a stop or an error the same call goes on; a folder that is complete is left alone.

    Args:
        entry: see `catalogue.find`.
        folder: where to.
        console: for progress.
        mirror: a URL, http, https or file, of a folder that has the files instead.
        keep: keep the downloaded archives, in `folder/downloads`.

    Raises:
        InputError: a file can't be fetched or is another than it was, the disk is full, or the
            folder holds other text. No split is there, or all are.
    """
    if (folder / ABOUT).exists():
        console.print(f"{folder} is complete: see {ABOUT}.")
        return
    if there := [name for name in entry.results if (folder / name).exists()]:
        raise InputError(f"{folder} holds {there[0]} already: name another folder.")
    downloads = folder / _DOWNLOADS
    try:
        downloads.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} can't be made: {error.strerror}.") from error
    _check_room(entry, folder)
    try:
        with _bar(console) as bar:
            for file in entry.files:
                url = file.url if mirror is None else f"{mirror.rstrip('/')}/{file.name}"
                if not (downloads / file.name).exists():  # else it was checked before
                    checks = {"sha256": file.sha256, "text_sha256": file.text_sha256}
                    download(url, downloads / file.name, **checks, report=bar(file.name))
        with console.status("Unpacking ..."):
            counts = _write(entry, folder, downloads)
    except KeyboardInterrupt:
        console.print("Stopped: the same command goes on with what has come.")
        raise
    if not keep:
        shutil.rmtree(downloads)
    for split, lines in counts.items():
        console.print(f"{folder / split}.src and .tgt: {lines:,} lines")


def show_catalogue(console: Console) -> None:
    """Prints a table of the corpora."""
    table = Table("name", "corpus", "recipe", "download", title="tf-transformer data NAME")
    for entry in read_catalogue().values():
        sizes = [file.bytes for file in entry.files]
        size = f"{sum(filter(None, sizes)) / 1e6:,.0f} MB" if all(sizes) else "small"
        table.add_row(entry.name, entry.title, entry.recipe, size)
    console.print(table)


def _check_room(entry: Entry, folder: Path) -> None:
    there = sum(path.stat().st_size for path in (folder / _DOWNLOADS).iterdir())
    needed = sum(file.bytes or 0 for file in entry.files) - there
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise InputError(
            f"The disk of {folder} has {free / 1e6:,.0f} MB free, but {entry.name} needs "
            f"{needed / 1e6:,.0f} MB for its archives alone."
        )


def _write(entry: Entry, folder: Path, downloads: Path) -> dict[str, int]:
    """All splits beside, then renamed; lines of each."""
    beside = {name: folder / f"{name}.writing" for name in entry.results}
    try:
        with contextlib.ExitStack() as stack:
            streams = {name: stack.enter_context(open(path, "wb")) for name, path in beside.items()}
            lines = dict.fromkeys(beside, 0)
            for file in entry.files:
                for name, line in _texts(file, downloads / file.name):
                    streams[name].write(line.encode() + b"\n")
                    lines[name] += 1
        counts = _counts(entry, lines)
        digests = {name: sha256_of(path) for name, path in beside.items()}
        for name, path in beside.items():
            os.replace(path, folder / name)
        about = folder / f"{ABOUT}.writing"
        about.write_text(_about(entry, lines, digests), encoding="utf-8")
        os.replace(about, folder / ABOUT)
        return counts
    except OSError as error:
        raise InputError(f"{folder} can't be written: {error.strerror or error}.") from error
    finally:
        for path in beside.values():
            path.unlink(missing_ok=True)


def _texts(file: RemoteFile, path: Path) -> Iterator[tuple[str, str]]:
    """Each line, and the name of the file that it belongs to."""
    if file.pairs is None:
        for member, lines in members(path, file.to):
            for line in lines:
                yield file.to[member], line
        return
    for _, lines in members(path, [file.pairs]):
        pairs = [tuple(line.split("\t")[:2]) for line in lines if line.count("\t") >= 1]
        for split, held in hold_out([(pair[0], pair[1]) for pair in pairs]).items():
            for source, target in held:
                yield f"{split}.src", source
                yield f"{split}.tgt", target


def _counts(entry: Entry, lines: dict[str, int]) -> dict[str, int]:
    counts = {}
    for name in lines:
        split, _, side = name.rpartition(".")
        other = lines[f"{split}.{'tgt' if side == 'src' else 'src'}"]
        if lines[name] != other or not other:
            raise InputError(
                f"{entry.name}: {split} has {lines[f'{split}.src']} source and "
                f"{lines[f'{split}.tgt']} target lines."
            )
        counts[split] = other
    return counts


def _about(entry: Entry, lines: dict[str, int], digests: dict[str, str]) -> str:
    made = "".join(f"{digests[name]}  {name}  {lines[name]} lines\n" for name in digests)
    urls = "".join(f"{file.url}\n" for file in entry.files)
    return (
        f"{entry.title}\n{entry.about}\n\nLicence\n{entry.licence.strip()}\n\n"
        f"Fetched from\n{urls}\nsha256 of what was made of it\n{made}"
    )


@contextlib.contextmanager
def _bar(console: Console) -> Iterator[Callable[[str], Callable[[int, int | None], None]]]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:

        def begin(name: str) -> Callable[[int, int | None], None]:
            task = bar.add_task(name, total=None)
            return lambda done, total: bar.update(task, completed=done, total=total)

        yield begin

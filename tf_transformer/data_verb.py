"""`tf-transformer data`: what is asked of a person before a corpus is fetched."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from tf_transformer.errors import InputError
from tf_transformer.rooms import need

_Yes = Annotated[bool, typer.Option("--yes", help="Accept the licence without a question.")]


def data(
    name: Annotated[str | None, typer.Argument(help="A corpus; without it all are listed.")] = None,
    to: Annotated[Path | None, typer.Option(help="Folder; default data/NAME.")] = None,
    mirror: Annotated[
        str | None, typer.Option(metavar="URL", help="A folder that has the files, also file://.")
    ] = None,
    yes: _Yes = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the archives.")] = False,
) -> None:
    """Fetch a corpus: licence, checksums, train, valid and test as .src and .tgt.

    What breaks off or is stopped goes on by the same command.
    """
    fetching, console = need("training.fetching.fetch_corpus"), Console()
    if name is None:
        fetching.show_catalogue(console)
        return
    entry = need("training.fetching.catalogue").find(name)
    console.print(
        f"[bold]{escape(entry.title)}[/bold]\n{escape(entry.about)}\n\n"
        f"[bold]Licence:[/bold] {escape(' '.join(entry.licence.split()))}\n"
    )
    if not yes and not _somebody_is_here():
        raise InputError("Nobody is here to accept the licence: --yes says that you do.")
    if yes or typer.confirm("Fetch it on these terms?"):
        fetching.fetch_corpus(entry, to or Path("data") / name, console, mirror, keep)


def _somebody_is_here() -> bool:
    return sys.stdin.isatty()

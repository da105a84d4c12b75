"""The verbs for models that leave the house: `export` and `check`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from tf_transformer.cli_options import Alpha, Beam, decoding_changes
from tf_transformer.errors import InputError
from tf_transformer.quiet import load_tensorflow
from tf_transformer.rooms import need


def export(
    run: Annotated[Path, typer.Argument(help="A run directory with a trained model.")],
    output: Annotated[Path, typer.Option(help="Folder of versions, as TensorFlow Serving reads.")],
    version: Annotated[
        int | None, typer.Option(help="Number of the version; default the next free one.")
    ] = None,
    keep: Annotated[
        int | None,
        typer.Option(metavar="N", help="Delete older versions but the newest N; default none."),
    ] = None,
    signatures: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="What it can be asked; default all, see README."),
    ] = None,
    kit: Annotated[
        bool, typer.Option(help="Write OUTPUT/serving: configs, compose, Kubernetes, README.")
    ] = True,
    name: Annotated[
        str | None, typer.Option(help="What clients call the model; default OUTPUT's name.")
    ] = None,
    beam: Beam = None,
    alpha: Alpha = None,
) -> None:
    """Write a SavedModel: text in, text out, tokenizer and search inside the graph.

    It is checked as a server would load it, and only then renamed into place. Beside it is written
    what TensorFlow Serving needs; files that are there stay as they are.
    """
    load_tensorflow()
    from tf_transformer.translator import Translator

    translator = Translator.load(run, **decoding_changes(beam, alpha))
    console = Console()
    with need("export.report").Report(
        "Checks before the export gets its number", console
    ) as report:
        path = need("export").EXPORTERS["saved_model"](
            translator,
            output,
            version=version,
            signatures=None if signatures is None else _names(signatures),
            kit=kit,
            name=name,
            keep=keep,
            report=report,
        )
    console.print(f"Exported and checked: [bold]{escape(str(path))}[/bold]")
    if kit:
        console.print(f"To serve it: {escape(str(output / 'serving' / 'README.md'))}")


def check(
    saved_model: Annotated[
        Path, typer.Argument(help="Any SavedModel, or a folder of versions: the highest.")
    ],
    server: Annotated[
        list[str] | None,
        typer.Option(help="TensorFlow Serving that has to run it, such as 2.19; default all."),
    ] = None,
) -> None:
    """Check any SavedModel, of ours or not, in every way a server could fail on it.

    Its operations against what stock servers link, its signatures, sizes and strings; then its
    answers by every loader, TensorFlow's C library without Python among them, and the warm-up. The
    exit status is 1 if a check fails.
    """
    load_tensorflow()
    title = f"Checks of {saved_model}"
    with need("export.report").Report(title, Console()) as report:
        results = need("export").run_checks(saved_model, report=report, servers=server)
    if not all(result.ok for result in results):
        raise typer.Exit(1)


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise InputError(f"`--signatures` must be names with commas between. Received: {text!r}")
    return names

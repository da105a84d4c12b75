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

Output = Annotated[
    Path,
    typer.Option(help="Folder of versions, as TensorFlow Serving reads; else what is to be made."),
]
Target = Annotated[
    str, typer.Option(help="saved_model, litert (one file), or ctranslate2 (a folder).")
]
Quantize = Annotated[
    str | None, typer.Option(help="litert: float16, int8. ctranslate2: int8, int16, float16, ...")
]
Number = Annotated[
    int | None, typer.Option(help="Number of the version; default the next free one.")
]
Keep = Annotated[
    int | None,
    typer.Option(metavar="N", help="Delete older versions but the newest N; default none."),
]
Signatures = Annotated[
    str | None,
    typer.Option(metavar="A,B,...", help="What it can be asked; default all, see README."),
]
Kit = Annotated[
    bool, typer.Option(help="Write OUTPUT/serving: configs, compose, Kubernetes, README.")
]
Penalty = Annotated[
    str | None, typer.Option(metavar="NAME", help="Length penalty: gnmt, power or none.")
]
Name = Annotated[
    str | None, typer.Option(help="What clients call the model; default OUTPUT's name.")
]


def export(
    run: Annotated[Path, typer.Argument(help="A run directory with a trained model.")],
    output: Output,
    target: Target = "saved_model",
    quantize: Quantize = None,
    version: Number = None,
    keep: Keep = None,
    signatures: Signatures = None,
    kit: Kit = True,
    name: Name = None,
    beam: Beam = None,
    alpha: Alpha = None,
    length_penalty: Penalty = None,
) -> None:
    """Write a SavedModel: text in, text out, tokenizer and search inside the graph.

    It is checked as a server would load it, and only then renamed into place. Beside it is written
    what TensorFlow Serving needs; files that are there stay as they are. Other targets are LiteRT,
    for phones, and CTranslate2.
    """
    served = {"--version": version, "--keep": keep, "--signatures": signatures, "--name": name}
    _refuse_unheard(target, quantize, [key for key, value in served.items() if value is not None])
    load_tensorflow()
    from tf_transformer.translator import Translator

    changes = decoding_changes(beam, alpha, length_penalty=length_penalty)
    translator = Translator.load(run, **changes)
    exporter, console = need("export").EXPORTERS[target], Console()
    if target != "saved_model":
        path = exporter(translator, output, quantize)
        console.print(f"Exported: [bold]{escape(str(path))}[/bold]")
        return
    chosen = None if signatures is None else _names(signatures)
    title = "Checks before the export gets its number"
    with need("export.report").Report(title, console) as report:
        options = {"version": version, "keep": keep, "name": name, "signatures": chosen}
        path = exporter(translator, output, kit=kit, report=report, **options)
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


def _refuse_unheard(target: str, quantize: str | None, served: list[str]) -> None:
    """An option that would have no effect is refused, as is a target that there is not."""
    if target not in (targets := need("export").EXPORTERS):
        raise InputError(
            f"`--target` must be one of {', '.join(targets)}. Received: --target {target}"
        )
    if target == "saved_model" and quantize is not None:
        raise InputError(
            "`--quantize` is for the targets litert and ctranslate2; a SavedModel is in float32. "
            f"Received: --quantize {quantize}"
        )
    if target != "saved_model" and served:
        raise InputError(
            f"`{served[0]}` is for the target saved_model. Received: --target {target}"
        )


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise InputError(f"`--signatures` must be names with commas between. Received: {text!r}")
    return names

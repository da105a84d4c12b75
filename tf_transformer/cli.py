"""The command `tf-transformer`. Verbs import what they need when they run: `--help` is instant."""

import logging
import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.logging import RichHandler
from rich.markup import escape

from tf_transformer.answer_verbs import score, translate
from tf_transformer.cli_options import Alpha, Beam, Model, decoding_changes, open_model
from tf_transformer.data_verb import data
from tf_transformer.errors import InputError
from tf_transformer.export_verbs import check, export
from tf_transformer.rooms import need
from tf_transformer.serving_verbs import request, serve
from tf_transformer.tokenizer_verbs import tokenize, vocabulary
from tf_transformer.train_verbs import find_batch_size, train

app = typer.Typer(
    name="tf-transformer",
    help="Translation with the Transformer of “Attention Is All You Need”, "
    "from parallel text to a SavedModel that answers.",
    epilog="Start with: tf-transformer demo",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


@app.callback()
def _start(
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only warnings and errors.")] = False,
) -> None:
    logging.basicConfig(
        level=logging.WARNING if quiet else logging.INFO,
        format="%(message)s",
        handlers=[RichHandler(console=Console(stderr=True), show_time=False, show_path=False)],
    )


@app.command()
def demo(
    run: Annotated[Path, typer.Option(help="Where to train; a new directory.")] = Path("runs/demo"),
) -> None:
    """Learn French to English from scratch, export, and answer from the export. Minutes.

    The sentences come of a small grammar of our own: not real language, but a real training.
    """
    _tensorflow()
    need("training.first_run").walk(run, need("export"), Console())


app.command()(data)


app.command()(train)
app.command()(find_batch_size)


@app.command()
def average(
    run: Annotated[Path, typer.Argument(help="A run directory, finished or not.")],
    weights: Annotated[
        list[Path] | None,
        typer.Argument(help="Weight files, or runs of the same model, instead of its checkpoints."),
    ] = None,
    last: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Its last N checkpoints; default 5.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="A new run directory, or a new file: NAME.weights.h5.")
    ] = None,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Write over the run's final weights.")
    ] = False,
) -> None:
    """Average checkpoints: the mean often translates better than the last (section 6.1).

    A new run directory translates, evaluates and exports like the one it comes from.
    """
    if (out is None) != in_place:
        raise InputError("Give --out with a new place, or --in-place.")
    _tensorflow()
    place = None if in_place else out
    need("training.keeping.averaging").average_run(run, weights or [], last, place, Console())


app.command()(translate)
app.command()(score)
app.command()(tokenize)
app.command()(vocabulary)


@app.command()
def evaluate(
    model: Model,
    source: Annotated[Path, typer.Option(help="Text to translate, one sentence a line.")],
    reference: Annotated[Path, typer.Option(help="Its translations, line by line.")],
    beam: Beam = None,
    alpha: Alpha = None,
) -> None:
    """Translate a file and score it: sacreBLEU and chrF with signatures, and exact matches."""
    from tf_transformer.lines import clean_line, read_aligned

    evaluation = need("training.evaluate")
    sources, references = (
        [clean_line(line) for line in lines] for lines in read_aligned(source, reference)
    )
    if not sources:
        raise InputError(f"{source} holds no line to translate.")
    evaluation.check_installed()
    translator = open_model(model, **decoding_changes(beam, alpha))
    scores = evaluation.score(translator(sources), references)
    Console().print(evaluation.as_table(scores))


app.command()(export)
app.command()(check)
app.command()(serve)
app.command()(request)


@app.command()
def report(
    run: Annotated[Path, typer.Argument(help="A run directory, finished or not.")],
    export: Annotated[
        Path | None, typer.Option(help="An export of it, whose signatures are told as well.")
    ] = None,
) -> None:
    """Write RUN/report.html: curves, samples, text, model, machine and recipe in one file.

    Training writes it too. It opens without a network, so it can be sent as it is.
    """
    _tensorflow()
    path = need("training.reporting.report").write_report(run, export)
    Console().print(f"Written: [bold]{escape(str(path))}[/bold]")


@app.command()
def info(
    path: Annotated[Path, typer.Argument(help="A run, an export, a recipe, or a preset: base.")],
) -> None:
    """Say what a run directory, a SavedModel, a recipe or a preset is."""
    from tf_transformer.info import show

    show(path, Console())


def _tensorflow() -> None:
    from tf_transformer.quiet import load_tensorflow

    load_tensorflow()


def main() -> None:
    """Runs the command line; exit status 2 for wrong input, 130 after Ctrl-C."""
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    try:
        app(prog_name="tf-transformer")
    except InputError as error:
        Console(stderr=True, soft_wrap=True, emoji=False).print(
            f"[bold red]error:[/bold red] {escape(str(error))}"
        )
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)

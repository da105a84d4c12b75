"""Options that verbs of the command share, and how they open a model."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

Beam = Annotated[int | None, typer.Option("--beam", metavar="K", help="Beams; 1 is greedy search.")]
Alpha = Annotated[
    float | None, typer.Option(metavar="A", help="Exponent of the length penalty (paper: 0.6).")
]
Model = Annotated[
    Path, typer.Argument(metavar="RUN_OR_SAVEDMODEL", help="A run directory or an export.")
]
Input = Annotated[Path | None, typer.Option(help="Text file; default standard input.")]
Output = Annotated[Path | None, typer.Option(help="Default standard output.")]
NBest = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="The N best of each line; as many beams at least."),
]
Scores = Annotated[bool, typer.Option("--scores", help="Columns: score, log P, tokens.")]
Alignments = Annotated[
    bool, typer.Option("--alignments", help="Column: aligned words, source-target, 0-0 1-2.")
]
Pieces = Annotated[
    bool, typer.Option("--pieces", help="Columns: the pieces of both sides, and these aligned.")
]
Layer = Annotated[
    int | None,
    typer.Option(metavar="L", help="Decoder layer that aligns: 0 the first, -1 the last."),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object a line, with all of it.")]
BatchTokens = Annotated[
    int | None, typer.Option(metavar="N", help="Most tokens of a batch, pads counted.")
]
Threads = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Processor cores to use; default all.")
]


def decoding_changes(beam: int | None, alpha: float | None, **others: Any) -> dict[str, Any]:
    """The fields of `DecodingOptions` that a person asked to be other than the run's."""
    changes = {name: value for name, value in others.items() if value is not None}
    if beam is not None:
        changes.update(search="beam", num_beams=beam)
    if alpha is not None:
        changes["alpha"] = alpha
    return changes


def open_model(path: Path, *, op_threads: int | None = None, **changes: Any) -> Any:
    """The translator at `path`, with TensorFlow loaded quietly before."""
    from tf_transformer.quiet import load_tensorflow

    load_tensorflow(op_threads)
    from tf_transformer.saved import open_translator

    return open_translator(path, **changes)


def cores() -> int:
    """Processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

"""Options that verbs of the command share, and how they open a model."""

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


def decoding_changes(beam: int | None, alpha: float | None) -> dict[str, Any]:
    """The fields of `DecodingOptions` that a person asked to be other than the run's."""
    changes: dict[str, Any] = {}
    if beam is not None:
        changes.update(search="beam", num_beams=beam)
    if alpha is not None:
        changes["alpha"] = alpha
    return changes


def open_model(path: Path, **changes: Any) -> Any:
    """The translator at `path`, with TensorFlow loaded quietly before."""
    from tf_transformer.quiet import load_tensorflow

    load_tensorflow()
    from tf_transformer.saved import open_translator

    return open_translator(path, **changes)

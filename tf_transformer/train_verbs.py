"""`tf-transformer train` and `find-batch-size`."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from tf_transformer.errors import InputError
from tf_transformer.quiet import load_tensorflow
from tf_transformer.rooms import need

RecipeName = Annotated[
    str, typer.Argument(metavar="RECIPE", help="A TOML file, or the name of a bundled recipe.")
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Wins over the recipe; repeat for more."),
]
Strategy = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="none, mirrored (all GPUs here) or multi_worker (those of TF_CONFIG).",
    ),
]


def train(
    recipe: RecipeName,
    run: Annotated[Path, typer.Option(help="Run directory: new, or one to go on with.")],
    data: Annotated[
        Path | None, typer.Option(help="Folder with train.src, train.tgt, valid.*, ...")
    ] = None,
    set_: Set = None,
    strategy: Strategy = None,
) -> None:
    """Train a model; the same command goes on where it stopped.

    The bundled recipes are commented, each is the manual of its keys.
    """
    chosen = _recipe(recipe, set_, strategy)
    # Devices are divided, and workers joined, before TensorFlow begins to work.
    load_tensorflow(start=chosen.training.strategy == "none")
    need("training.train").train(chosen, data, run, Console())


def find_batch_size(
    recipe: RecipeName,
    set_: Set = None,
    strategy: Strategy = None,
    memory: Annotated[
        float | None,
        typer.Option(min=0.5, metavar="GiB", help="Most memory, without a GPU; default: what is."),
    ] = None,
) -> None:
    """Find the largest batch_tokens that fits, by real updates of the worst batch.

    Each size is tried in a process of its own, so that nothing is lost when one dies.
    """
    chosen = _recipe(recipe, set_, strategy)
    if chosen.training.strategy == "multi_worker":
        raise InputError("Batch sizes are tried on one machine: --strategy none or mirrored.")
    limit = None if memory is None else int(memory * 2**30)
    need("training.devices.batch_size").find_batch_size(chosen, Console(), limit)


def _recipe(name: str, set_: list[str] | None, strategy: str | None) -> Any:
    settings = [*(set_ or []), *([] if strategy is None else [f"training.strategy={strategy}"])]
    return need("training.recipe").load_recipe(name, settings)

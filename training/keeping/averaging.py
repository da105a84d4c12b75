"""The mean of checkpoints (section 6.1 of the paper)."""

from collections.abc import Sequence
from pathlib import Path

import keras
import numpy as np
from rich.console import Console
from rich.markup import escape

from tf_transformer.errors import InputError
from tf_transformer.run_files import (
    TRANSLATOR_FILE,
    build_in_float32,
    load_weights,
    save_weights,
    without_optimizer,
    write_run,
)

from .provenance import record_average
from .trained import DROPOUTS, Trained, check_sizes

_WEIGHTS_SUFFIX = ".weights.h5"


def average(model: keras.Model, files: Sequence[Path]) -> None:
    """Puts the mean of weight files into `model`, summed in float64.

    Dtypes stay; what is no float stays as the model has it. Optimizer and counters are not in
    these files.

    Raises:
        InputError: no file, or one that does not fit the model.
    """
    if not files:
        raise InputError("`files` must name at least one weight file. Received: none")
    model = without_optimizer(model)
    kept = model.get_weights()
    total = [np.zeros(weight.shape) for weight in kept]
    for path in files:
        load_weights(model, path.parent, path.name)
        for place, weight in enumerate(model.weights):
            if keras.backend.is_float_dtype(weight.dtype):
                total[place] += np.asarray(weight, np.float64)
                kept[place] = total[place] / len(files)
    model.set_weights(kept)


def average_run(
    run: Path, weights: Sequence[Path], last: int | None, out: Path | None, console: Console
) -> None:
    """`tf-transformer average`: writes the mean of checkpoints of a run, or of files of others.

    Args:
        run: gives model and tokenizers, finished or not.
        weights: weight files, or runs, each for its final weights; none takes checkpoints of `run`.
        last: how many of its checkpoints, by step number; default 5, as the paper's base model.
        out: a new run directory, or a `.weights.h5` file; None writes over the final weights.
        console: where it is told.

    Raises:
        InputError: nothing to average, another model or vocabulary, or `out` is not free; nothing
            is written.
    """
    ours = Trained.read(run)
    if weights and last is not None:
        raise InputError("--last is of a run's own checkpoints: leave it out, or the files.")
    _check_place(run, out)
    files = [_file(ours, path) for path in weights] or _last(ours, last or 5, console)
    model = build_in_float32(ours.config)
    average(model, files)
    if out is None:
        save_weights(model, run)
        record_average(run, files)
    elif out.name.endswith(_WEIGHTS_SUFFIX):
        out.parent.mkdir(parents=True, exist_ok=True)
        save_weights(model, out.parent, out.name)
    else:
        sides = {"source": ours.source, "target": ours.target}
        write_run(out, ours.config, model, sides, ours.options)
    names = ", ".join(escape(str(path)) for path in files)
    console.print(f"The mean of {names} is in [bold]{escape(str(out or run))}[/bold].")


def _check_place(run: Path, out: Path | None) -> None:
    if out is None:
        if not (run / TRANSLATOR_FILE).is_file():
            raise InputError(f"{run} is not finished, so it has no final weights to write over.")
    elif out.name.endswith(_WEIGHTS_SUFFIX):
        if out.exists():
            raise InputError(f"{out} exists: name another file.")
    elif out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} exists and is no empty directory: name another.")


def _last(run: Trained, number: int, console: Console) -> list[Path]:
    files = run.checkpoints()
    if not files:
        raise InputError(f"{run.path} holds no checkpoints to average.")
    if len(files) < number:
        console.print(f"There are {len(files)} checkpoints only, asked for were {number}.")
    return files[-number:]


def _file(ours: Trained, path: Path) -> Path:
    """The weight file that is meant; refused by name when its run is of another kind."""
    theirs = Trained.read(path) if path.is_dir() else Trained.of_file(path)
    if theirs is not None and theirs.path.resolve() != ours.path.resolve():
        check_sizes(ours.config, theirs.config, str(path), free=DROPOUTS)
        ours.check_vocabulary(theirs)
    return theirs.weights() if theirs is not None and path.is_dir() else path

"""What a run keeps of itself: weights at the ends of epochs, and the state to go on from.

`checkpoints/step-N.weights.h5` are for averaging and inspection; `checkpoints/state/step-N.npz`
holds weights, optimizer with moving averages, random generators, counters and history.
"""

import dataclasses
import logging
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np

from tf_transformer.errors import InputError
from tf_transformer.run_files import TRANSLATOR_FILE, save_weights

from ..optimizers.ema import averaged_weights
from .run_state import RunState
from .state_file import damage, read_arrays, read_facts, write_state

_log = logging.getLogger(__name__)
_STATES = 2  # the one before stays, should the disk spoil the last


class Checkpoints:
    """The checkpoints of one run.

    Args:
        run: the run directory.
        model: a compiled model; its optimizer is saved with it.
        writes: False for a process that must not, as another one does.

    Attributes:
        state: counters and history, of now.
    """

    def __init__(self, run: Path, model: keras.Model, writes: bool = True) -> None:
        self.folder = run / "checkpoints"  # made when there is something to keep
        self.run = run
        self.model = model
        self.writes = writes
        self.state = RunState()
        self._saved: tuple[int, int] | None = None
        # An unbuilt optimizer has no place for its moments: it must be built before they are read.
        if not model.optimizer.built:  # Keras's loss scale would be made twice
            model.optimizer.build(model.trainable_variables)

    @property
    def step(self) -> int:
        """Updates made so far."""
        return self.state.step

    @property
    def is_saved(self) -> bool:
        """Whether a state on disk is of this update and this history."""
        return self._saved == (self.state.step, len(self.state.history))

    def restore(self) -> int:
        """Puts the latest state that is whole into model and optimizer; its step, 0 without any.

        Raises:
            InputError: no state is whole, it is of another model, or it is missing where weights
                are: going on would begin again and write over them.
        """
        files = _numbered(self.folder / "state", ".npz")
        if not files and (self.weights() or (self.run / TRANSLATOR_FILE).exists()):
            raise InputError(
                f"{self.folder / 'state'} holds no state to go on from, but weights were "
                "trained before: name another directory."
            )
        problem = ""
        for path in reversed(files):
            wrong = damage(path)
            if wrong is None:
                if problem:
                    _log.warning(f"{problem} Going on from {path.name} instead.")
                self._read(path)
                return self.step
            problem = problem or f"{path} cannot be restored: {wrong}."
        if problem:
            raise InputError(problem)
        return 0

    def has_state(self) -> bool:
        """Whether there is a state to go on from, be it of before the first update."""
        return bool(_numbered(self.folder / "state", ".npz"))

    def save_state(self) -> None:
        """Writes the state; the last but one before is deleted after it.

        Raises:
            InputError: a weight is NaN or infinite; the states before stay.
        """
        if self.writes:
            folder = self.folder / "state"
            folder.mkdir(parents=True, exist_ok=True)
            facts = dataclasses.asdict(self.state)
            write_state(folder / f"step-{self.step}.npz", map(_to_numpy, self.variables()), facts)
            for old in _numbered(folder, ".npz")[:-_STATES]:
                old.unlink()
        self._saved = (self.state.step, len(self.state.history))

    def save_weights(self) -> None:
        """Writes this step's weights, beside and renamed; their average where one is kept."""
        if not self.writes:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        with averaged_weights(self.model):
            save_weights(self.model, self.folder, f"step-{self.step}.weights.h5")

    def weights(self, steps: Collection[int] | None = None) -> list[Path]:
        """The weight files, by step number; of those steps only, or all."""
        files = weight_files(self.folder)
        return [path for path in files if steps is None or _number(path) in steps]

    def keep(self, steps: Collection[int]) -> None:
        """Deletes the weights of all other steps."""
        for path in self.weights():
            if _number(path) not in steps:
                path.unlink()

    def clean(self) -> None:
        """Deletes what a killed process left: half-written files, and what is after the state."""
        for folder in (self.run, self.folder, self.folder / "state"):
            for pattern in ("*.writing", "writing.*"):
                for path in folder.glob(pattern):
                    path.unlink()
        later = [*self.weights(), *_numbered(self.folder / "state", ".npz")]
        for path in later:
            if _number(path) > self.step:
                path.unlink()

    def variables(self) -> Iterator[Any]:
        """All that a state holds of model and optimizer, in the order of its file."""
        # `variables` has the random generators of dropout, `weights` has not.
        yield from self.model.variables
        yield from self.model.optimizer.variables

    def _read(self, path: Path) -> None:
        try:
            for variable, array in zip(self.variables(), read_arrays(path), strict=True):
                variable.assign(array.astype(variable.dtype, casting="equiv"))
            self.state = RunState(**read_facts(path))
            self._saved = (self.state.step, len(self.state.history))
        except (ValueError, TypeError, KeyError) as error:  # of another model or program
            reason = (str(error).strip() or repr(error)).splitlines()[0]
            raise InputError(f"{path} cannot be restored: {reason}") from error


def weight_files(folder: Path) -> list[Path]:
    """The checkpoints that a folder holds, by step number: 999 is before 1000."""
    return _numbered(folder, ".weights.h5")


def _to_numpy(variable: Any) -> np.ndarray:
    return np.asarray(keras.ops.convert_to_numpy(variable.value))


def _number(path: Path) -> int:
    return int(re.findall(r"\d+", path.name)[0])


def _numbered(folder: Path, suffix: str) -> list[Path]:
    """The files step-N of a folder, by N; not those that are half-written."""
    if not folder.is_dir():
        return []
    name = re.compile(rf"step-\d+{re.escape(suffix)}")
    return sorted((path for path in folder.iterdir() if name.fullmatch(path.name)), key=_number)

"""What a run keeps of itself: weights of each epoch, and the state to go on from.

`checkpoints/step-N.weights.h5` are for averaging and inspection; `checkpoints/state` (a
tf.train.Checkpoint) holds weights, optimizer and random generators.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tf_transformer.errors import InputError
from tf_transformer.run_files import (
    TRANSLATOR_FILE,
    load_weights,
    save_weights,
    without_optimizer,
)

_NAME = re.compile(r"step-(\d+)\.weights\.h5")


class Checkpoints:
    """The checkpoints of one run.

    Args:
        run: the run directory.
        model: a compiled model; its optimizer is saved with it.
        keep: weight files to keep, the latest.
    """

    def __init__(self, run: Path, model: keras.Model, keep: int = 5) -> None:
        self.folder = run / "checkpoints"  # made when there is something to keep
        self._finished = run / TRANSLATOR_FILE
        self.model = model
        self.keep = keep
        # Unbuilt optimizers restore nothing, without a word: their slots must exist first.
        model.optimizer.build(model.trainable_variables)
        # By hand: a model's own tracking leaves out the random generators, and dropout would
        # begin again. `variables` has them, `weights` has not.
        self._state = tf.train.Checkpoint(
            model=[variable.value for variable in model.variables],
            optimizer=[variable.value for variable in model.optimizer.variables],
        )
        self._manager = tf.train.CheckpointManager(
            self._state, str(self.folder / "state"), max_to_keep=1, checkpoint_name="step"
        )

    @property
    def step(self) -> int:
        """Optimizer updates made so far."""
        return int(keras.ops.convert_to_numpy(self.model.optimizer.iterations))

    def restore(self) -> int:
        """Puts the latest state into model and optimizer; its step, 0 where there is none.

        Raises:
            InputError: the state is broken, or missing where weights are: going on would begin
                again and write over them.
        """
        latest = self._manager.latest_checkpoint
        if latest is None:
            if self.weights() or self._finished.exists():
                raise InputError(
                    f"{self.folder / 'state'} holds no state to go on from, but weights were "
                    "trained before: name another directory."
                )
            return 0
        try:
            self._state.restore(latest).assert_existing_objects_matched()
        except (tf.errors.OpError, ValueError, IndexError, AssertionError) as error:
            reason = str(error).strip().splitlines()[0]
            raise InputError(f"{latest} cannot be restored: {reason}") from error
        return self.step

    def save_state(self) -> None:
        """Writes the state; the one before is deleted after it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._manager.save(checkpoint_number=self.step)

    def save_weights(self) -> None:
        """Writes this step's weights, beside and renamed, and deletes what is beyond `keep`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        save_weights(self.model, self.folder, self._weights_file().name)
        for old in self.weights()[: -self.keep]:
            old.unlink()

    def has_weights(self) -> bool:
        """Whether this step's weights are written."""
        return self._weights_file().exists()

    def _weights_file(self) -> Path:
        return self.folder / f"step-{self.step}.weights.h5"

    def weights(self) -> list[Path]:
        """All weight files, by step number."""
        if not self.folder.is_dir():
            return []
        found = [(_NAME.fullmatch(path.name), path) for path in self.folder.iterdir()]
        return [path for _, path in sorted((int(match[1]), path) for match, path in found if match)]


def average(model: keras.Model, files: Sequence[Path]) -> None:
    """Puts the mean of weight files into `model` (section 6.1), summed in float64.

    The dtype stays; optimizer and counters are not in these files.

    Raises:
        InputError: no file, or one that does not fit the model.
    """
    if not files:
        raise InputError("`files` must name at least one weight file. Received: none")
    total: list[Any] = []
    model = without_optimizer(model)
    for path in files:
        load_weights(model, path.parent, path.name)
        weights = [np.asarray(weight, np.float64) for weight in model.get_weights()]
        total = weights if not total else [a + b for a, b in zip(total, weights, strict=True)]
    model.set_weights([weight / len(files) for weight in total])

"""Keeps a run on disk: a line of history where one is due, and the state every few minutes."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import keras

from ..keeping.checkpoints import Checkpoints
from ..recipe import Recipe
from .finite_loss import FiniteLoss
from .updates import Updates
from .validation import Validation

Line = dict[str, Any]


class Keeper(keras.callbacks.Callback):
    """Writes weights and a line of history after each epoch, each evaluation and the last update.

    The state is saved as well when `save_every_minutes` have gone by. A line counts from the moment
    its state is written: a process that is killed before then has not begun it, and the next one
    writes it whole, with the same numbers.

    Args:
        recipe: when to evaluate, what to keep, when to stop early.
        checkpoints: of the model.
        updates: runs before this callback.
        finite: runs before this callback; what it refuses is not kept.
        validation: measures the model.
        readers: are given each line before it is kept: progress, logs.
        report: is called when a line is kept.
    """

    def __init__(
        self,
        recipe: Recipe,
        checkpoints: Checkpoints,
        updates: Updates,
        finite: FiniteLoss,
        validation: Validation,
        readers: Sequence[Callable[[Line], None]] = (),
        report: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__()
        self.training = recipe.training
        self.evaluation = recipe.evaluation
        self.checkpoints = checkpoints
        self.updates = updates
        self.finite = finite
        self.validation = validation
        self.readers = readers
        self.report = report
        self._saved = time.monotonic()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Keeps what is due."""
        if self.line_is_due(at_the_end=self.model.stop_training):
            self.write_line(at_the_end=self.model.stop_training)
            self.model.stop_training |= self.stops_early()
        elif time.monotonic() - self._saved > 60 * self.training.save_every_minutes:
            self.finite.check()
            self.updates.record()
            self.checkpoints.save_state()
        else:
            return
        self._saved = time.monotonic()

    def tidy(self) -> None:
        """Does what a process that was killed after a line's state did not come to."""
        if self.checkpoints.state.history:
            self.checkpoints.keep(self._kept())
            self.checkpoints.state.write_history(self.checkpoints.run)
            self.report()

    def line_is_due(self, at_the_end: bool = False) -> bool:
        """Whether the update just made has to be told and is not yet."""
        due = at_the_end or self.updates.at_epoch_end or self._evaluation_is_due()
        return due and self.checkpoints.step > 0 and not self.checkpoints.state.has_line()

    def write_line(self, at_the_end: bool = False) -> None:
        """Evaluates if that is due, tells the readers, keeps weights, state and history."""
        self.finite.check()
        self.updates.record()
        state = self.checkpoints.state
        line: Line = {
            "epoch": round(self.updates.passes, 3),
            "step": state.step,
            **state.logs,
            "learning_rate": self.updates.learning_rate,
            "tokens_per_second": round(state.speed, 1),
        }
        if at_the_end or self._evaluation_is_due():
            self.checkpoints.save_state()  # it may take minutes
            with self.updates.aside():
                line |= self.validation()
            self.updates.record()
        line["seconds"] = round(state.seconds, 1)
        for read in self.readers:
            read(line)
        self.checkpoints.save_weights()
        state.history.append(line)
        self.checkpoints.save_state()
        self.tidy()

    def stops_early(self) -> bool:
        """Whether `patience` evaluations have brought no better one."""
        patience = self.training.patience
        since = self.checkpoints.state.since_best(self.evaluation.metric)
        return patience is not None and since >= patience

    def _evaluation_is_due(self) -> bool:
        settings = self.evaluation
        if settings.every_steps and self.checkpoints.step % settings.every_steps == 0:
            return True
        return self.updates.at_epoch_end and self.updates.passes % settings.every_epochs == 0

    def _kept(self) -> list[int]:
        history, number = self.checkpoints.state.history, self.training.keep_checkpoints
        if self.training.final_weights == "last":
            return [line["step"] for line in history[-number:]]
        return [
            *self.checkpoints.state.ranked(self.evaluation.metric)[:number],
            history[-1]["step"],
        ]

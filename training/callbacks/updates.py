"""Counts the updates of `model.fit`, so that a run can be saved after any of them."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import keras

from ..batches.feed import Feed
from ..keeping.run_state import RunState
from .stop_signals import StopSignals


class Updates(keras.callbacks.Callback):
    """Keeps `state.step` at the update just made. The first callback: the others read it.

    Args:
        state: of the run.
        batches: of the training, which know their tokens.
        signals: held while an update is made.
    """

    def __init__(self, state: RunState, batches: Feed, signals: StopSignals) -> None:
        super().__init__()
        self.state = state
        self.batches = batches
        self.signals = signals
        self.first_step = state.step
        self._recorded = state.step
        self._logs: dict[str, Any] = state.logs
        self._tokens = 0
        self._began = self._opened = time.perf_counter()
        self._carried = state.seconds

    @property
    def at_epoch_end(self) -> bool:
        """Whether the update just made is the last of an epoch, or none was made."""
        return self.state.step % len(self.batches) == 0

    @property
    def passes(self) -> float:
        """Over the corpus; a whole number at the end of an epoch."""
        return self.state.step / len(self.batches)

    @property
    def speed(self) -> float:
        """Target tokens a second, of what this process has trained of the epoch."""
        return self._tokens / max(time.perf_counter() - self._began, 1e-9)

    @property
    def learning_rate(self) -> float:
        """Of the update just made."""
        optimizer = getattr(self.model.optimizer, "inner_optimizer", self.model.optimizer)
        schedule = getattr(optimizer, "_learning_rate", None)
        if isinstance(schedule, keras.optimizers.schedules.LearningRateSchedule):
            # `optimizer.learning_rate` is that of the update to come.
            return float(schedule(keras.ops.maximum(optimizer.iterations - 1, 0)))
        return float(optimizer.learning_rate)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Goes on with the means of an epoch that another process began."""
        self._counts = self.batches.token_counts(epoch)
        self._tokens, self._began = 0, time.perf_counter()
        if not self.at_epoch_end:
            write_metrics(self.model, self.state.metrics)

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Holds signals."""
        self.signals.hold()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Counts. Here a signal may stop the run."""
        self._tokens += self._counts[self.state.step % len(self._counts)]
        self._logs = logs or {}
        self.state.step += 1
        self.signals.release()

    def record(self) -> None:
        """Puts logs, metrics and time into `state`; once a step, as evaluation spoils metrics."""
        if self._recorded != self.state.step:
            self.state.logs = {name: float(value) for name, value in self._logs.items()}
            self.state.metrics = read_metrics(self.model)
            self.state.speed = self.speed
            self._recorded = self.state.step
        self.state.seconds = self._carried + time.perf_counter() - self._opened

    @contextmanager
    def aside(self) -> Iterator[None]:
        """For an evaluation: it counts for no speed, and the epoch's means stay what they are."""
        self.record()
        began = time.perf_counter()
        try:
            yield
        finally:
            self._began += time.perf_counter() - began
            write_metrics(self.model, self.state.metrics)


def read_metrics(model: keras.Model) -> list[Any]:
    """The values of all variables of the metrics, as JSON has them."""
    return [keras.ops.convert_to_numpy(x).tolist() for x in model.metrics_variables]


def write_metrics(model: keras.Model, values: list[Any]) -> None:
    """Puts them back."""
    for variable, value in zip(model.metrics_variables, values, strict=True):
        variable.assign(value)

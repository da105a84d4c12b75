"""What a person sees of a training: a bar with loss, accuracy, tokens/s and time left."""

import time
from typing import Any

import keras
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from .batching import Batches

_PLAIN_SECONDS = 30  # between two lines where there is no terminal


class ProgressReport(keras.callbacks.Callback):
    """A bar for each epoch, and one line that stays when it ends.

    Args:
        console: where to.
        batches: the training batches, which know their tokens.
        first_step: the global step of the first batch.
        total_epochs: of the whole run, for display.
    """

    def __init__(
        self, console: Console, batches: Batches, first_step: int, total_epochs: int
    ) -> None:
        super().__init__()
        self.console = console
        self.batches = batches
        self.step = first_step
        self.total_epochs = total_epochs
        self._bar: Progress | None = None
        self._trained = 0.0  # tokens/s, once the epoch's training is over

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Starts the bar."""
        self._counts = self.batches.token_counts(epoch)
        self._first = self.step % len(self.batches)
        self._began = self._said = time.perf_counter()
        self._tokens = 0
        columns = (
            TextColumn("epoch {task.fields[epoch]}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[numbers]}"),
            TimeRemainingColumn(compact=True),
        )
        self._bar = Progress(*columns, console=self.console, transient=True)
        self._task = self._bar.add_task(
            "",
            total=len(self.batches),
            completed=self._first,
            epoch=f"{epoch + 1}/{self.total_epochs}",
            numbers="",
        )
        if self.console.is_terminal:
            self._bar.start()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Moves it."""
        self._tokens += int(self._counts[(self._first + batch) % len(self._counts)])
        self.step += 1
        if self._bar is None:
            return
        numbers = f"{_numbers(logs or {})}  {self._speed():,.0f} tokens/s"
        self._bar.update(self._task, advance=1, numbers=numbers)
        if not self.console.is_terminal and time.perf_counter() - self._said > _PLAIN_SECONDS:
            self._said = time.perf_counter()
            self.console.print(f"  batch {self._first + batch + 1}/{len(self._counts)}  {numbers}")

    def on_test_begin(self, logs: Any = None) -> None:
        """The epoch's speed is the training's, without the validation."""
        self._trained = self._speed()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """The line that stays."""
        self.close()
        speed = self._trained or self._speed()
        self.console.print(
            f"epoch {epoch + 1}/{self.total_epochs}  {_numbers(logs or {})}  "
            f"[dim]{speed:,.0f} tokens/s, step {self.step}[/dim]"
        )
        self._trained = 0.0

    def close(self) -> None:
        """Takes the bar away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _speed(self) -> float:
        return self._tokens / max(time.perf_counter() - self._began, 1e-9)


_SHOWN = {
    "loss": "loss {:.3f}",
    "accuracy": "accuracy {:.1%}",
    "val_nll": "valid nll {:.3f}",
    "val_accuracy": "valid accuracy {:.1%}",
    "val_bleu": "[bold]valid BLEU {:.1f}[/bold]",
}


def _numbers(logs: dict[str, Any]) -> str:
    return "  ".join(
        text.format(float(logs[name])) for name, text in _SHOWN.items() if name in logs
    )

"""What a person sees of a training: a bar while it runs, and a line for all that was measured."""

import time
from datetime import timedelta
from typing import Any

import keras
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Column

from .updates import Updates

_PLAIN_SECONDS = 30.0  # between two lines where there is no terminal
_BAR_SECONDS = 0.5  # between two looks at the numbers, each of which waits for the device

_SHOWN = {
    "loss": "loss {:.3f}",
    "nll": "nll {:.3f}",
    "accuracy": "accuracy {:.1%}",
    "learning_rate": "lr {:.2e}",
    "val_nll": "valid nll {:.3f}",
    "val_accuracy": "valid accuracy {:.1%}",
    "val_bleu": "[bold]valid BLEU {:.1f}[/bold]",
}


class ProgressReport(keras.callbacks.Callback):
    """A bar for each epoch, with the time left of the whole run, and `tell` for what stays.

    Args:
        console: where to.
        updates: runs before this callback.
        last_step: the last update of the run.
    """

    def __init__(self, console: Console, updates: Updates, last_step: int) -> None:
        super().__init__()
        self.console = console
        self.updates = updates
        self.last_step = last_step
        self._bar: Progress | None = None
        self._bleu: dict[str, float] = {}
        self._opened = time.perf_counter()

    @property
    def total_epochs(self) -> int:
        """Of the run, the last perhaps in part."""
        return -(-self.last_step // len(self.updates.batches))

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Starts the bar."""
        self.close()
        self._bar = Progress(
            TextColumn("epoch {task.fields[epoch]}"),
            BarColumn(bar_width=12),
            MofNCompleteColumn(),
            # What does not fit into a narrow terminal is cut here.
            TextColumn("{task.fields[numbers]}", table_column=Column(ratio=1, no_wrap=True)),
            console=self.console,
            transient=True,
            expand=True,
        )
        batches = len(self.updates.batches)
        self._task = self._bar.add_task(
            "",
            total=batches,
            completed=self.updates.state.step % batches,
            epoch=f"{epoch + 1}/{self.total_epochs}",
            numbers="",
        )
        self._said = time.perf_counter()
        if self.console.is_terminal:
            self._bar.start()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Moves it."""
        if self._bar is None:
            return
        self._bar.advance(self._task)
        pause = _BAR_SECONDS if self.console.is_terminal else _PLAIN_SECONDS
        if time.perf_counter() - self._said < pause:
            return
        self._said = time.perf_counter()
        numbers = self._numbers(logs or {})
        self._bar.update(self._task, numbers=numbers)
        if not self.console.is_terminal:
            batches = len(self.updates.batches)
            made = (self.updates.state.step - 1) % batches + 1
            self.console.print(f"  batch {made}/{batches}  {numbers}")

    def tell(self, line: dict[str, Any]) -> None:
        """Prints a line of the history, and its samples."""
        if "val_bleu" in line:
            self._bleu = {"val_bleu": line["val_bleu"]}
        self.console.print(
            f"epoch {line['epoch']:g}/{self.total_epochs}  {_format(line)}  "
            f"[dim]{line['tokens_per_second']:,.0f} tokens/s, step {line['step']}[/dim]"
        )
        for sample in line.get("samples", []):
            self.console.print(
                f"  {escape(sample['source'])} -> [green]{escape(sample['translation'])}[/green] "
                f"[dim](reference: {escape(sample['reference'])})[/dim]"
            )

    def close(self) -> None:
        """Takes the bar away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _numbers(self, logs: dict[str, Any]) -> str:
        shown = {**{name: logs[name] for name in logs if name == "nll"}, **self._bleu}
        rate = _format({"learning_rate": self.updates.learning_rate})
        speed = f"{self.updates.speed:,.0f} tokens/s"
        return f"{self._time_left()} left  {_format(shown)}  {speed}  {rate}"

    def _time_left(self) -> timedelta:
        made = self.updates.state.step - self.updates.first_step
        a_step = (time.perf_counter() - self._opened) / max(made, 1)
        return timedelta(seconds=round(a_step * (self.last_step - self.updates.state.step)))


def _format(numbers: dict[str, Any]) -> str:
    return "  ".join(
        text.format(float(numbers[name])) for name, text in _SHOWN.items() if name in numbers
    )

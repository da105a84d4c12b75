"""TensorBoard logs by update; a run that goes on takes back what a killed process wrote ahead."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.text.summary_v2 import text_pb
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from .updates import Updates

_EVERY = 100  # updates between two points of the training
_TEXT = "| source | translation | reference |\n|---|---|---|\n"


class TensorBoardLogs(keras.callbacks.Callback):
    """Writes `train` and `validation` below a folder; the horizontal axis is the update.

    Args:
        folder: for TensorBoard's `--logdir`; made at the first point.
        updates: runs before this callback.
    """

    def __init__(self, folder: Path, updates: Updates) -> None:
        super().__init__()
        self.folder = folder
        self.updates = updates
        self._writers: dict[str, EventFileWriter] = {}

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """A point of the training: Keras's means over the epoch so far, rate and speed."""
        if self.updates.state.step % _EVERY == 0:
            self._scalars("train", self.updates.state.step, self._with_pace(logs or {}))

    def tell(self, line: dict[str, Any]) -> None:
        """The validation of a line of history, and its samples; a point of the training as well."""
        step = line["step"]
        named = {name.removeprefix("val_"): x for name, x in line.items() if name[:4] == "val_"}
        self._scalars("train", step, self._with_pace(self.updates.state.logs))
        self._scalars("validation", step, named)
        if samples := line.get("samples"):
            keys = ("source", "translation", "reference")
            rows = (" | ".join(_cell(sample[key]) for key in keys) for sample in samples)
            text = _TEXT + "".join(f"| {row} |\n" for row in rows)
            self._write("validation", step, text_pb("samples", text))
        for writer in self._writers.values():
            writer.flush()

    def image(self, name: str, step: int, png: bytes) -> None:
        """One picture."""
        self._write("validation", step, _value(name, image=Summary.Image(encoded_image_string=png)))

    def close(self) -> None:
        """Writes what waits."""
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()

    def _with_pace(self, logs: dict[str, Any]) -> dict[str, float]:
        return {
            **{name: float(value) for name, value in logs.items()},
            "learning_rate": self.updates.learning_rate,
            "tokens_per_second": self.updates.speed,
        }

    def _scalars(self, run: str, step: int, values: dict[str, float]) -> None:
        if "nll" in values:
            values = {**values, "perplexity": float(np.exp(values["nll"]))}
        for name, value in values.items():
            self._write(run, step, _value(name, simple_value=value))

    def _write(self, run: str, step: int, summary: Summary) -> None:
        if run not in self._writers:
            self._writers[run] = EventFileWriter(str(self.folder / run))
            # From this update on TensorBoard forgets what other files of the folder say.
            begin = Event(step=step, session_log=SessionLog(status=SessionLog.START))
            self._writers[run].add_event(begin)
        self._writers[run].add_event(Event(step=step, summary=summary))


def _value(name: str, **value: Any) -> Summary:
    return Summary(value=[Summary.Value(tag=name, **value)])


def _cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|")

"""What happens besides the updates: limits, samples, BLEU, history, checkpoints."""

import json
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
from rich.console import Console
from rich.markup import escape

from tf_transformer.errors import InputError
from tf_transformer.translator import Translator

from .checkpoints import Checkpoints
from .evaluate import corpus_bleu


class Limits(keras.callbacks.Callback):
    """Stops after a number of updates or minutes, and at a loss that is no number.

    Args:
        first_step: updates made before.
        max_steps: most updates of the run; None has no limit.
        max_minutes: most minutes of this process; None has no limit.

    Raises:
        InputError: the loss is NaN or infinite; names the update.
    """

    def __init__(
        self, first_step: int = 0, max_steps: int | None = None, max_minutes: float | None = None
    ) -> None:
        super().__init__()
        self.step = first_step
        self.max_steps = max_steps
        self.deadline = None if max_minutes is None else time.monotonic() + 60 * max_minutes

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Looks at both limits and the loss."""
        self.step += 1
        if not math.isfinite(float((logs or {}).get("loss", 0.0))):
            raise InputError(
                f"The loss is no number after update {self.step}: lower training.learning_rate, "
                "lengthen training.warmup_steps, or set training.clip_norm."
            )
        out_of_steps = self.max_steps is not None and self.step >= self.max_steps
        if out_of_steps or (self.deadline is not None and time.monotonic() > self.deadline):
            self.model.stop_training = True


class ValidationBleu(keras.callbacks.Callback):
    """BLEU of the greedily translated validation split, as `val_bleu` in the logs.

    Args:
        translator: over the model in training.
        source: sentences.
        reference: their translations.
        every: epochs between two.
    """

    def __init__(
        self, translator: Translator, source: Sequence[str], reference: Sequence[str], every: int
    ) -> None:
        super().__init__()
        self.translator = translator
        self.source = source
        self.reference = reference
        self.every = every

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Translates and scores."""
        if (epoch + 1) % self.every == 0 and logs is not None:
            logs["val_bleu"] = corpus_bleu(self.translator(self.source), self.reference).score


class SampleTranslations(keras.callbacks.Callback):
    """Shows a few sentences, their translations now and their references, after each epoch."""

    def __init__(
        self,
        console: Console,
        translator: Translator,
        source: Sequence[str],
        reference: Sequence[str],
    ) -> None:
        super().__init__()
        self.console = console
        self.translator = translator
        self.source = source
        self.reference = reference

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Translates and prints."""
        rows = zip(self.source, self.translator(self.source), self.reference, strict=True)
        for source, translation, reference in rows:
            self.console.print(
                f"  {escape(source)} -> [green]{escape(translation)}[/green] "
                f"[dim](reference: {escape(reference)})[/dim]"
            )


class Keeper(keras.callbacks.Callback):
    """Keeps the run on disk after each epoch: weights, state and a line of `history.jsonl`."""

    def __init__(self, checkpoints: Checkpoints, history: Path) -> None:
        super().__init__()
        self.checkpoints = checkpoints
        self.history = history

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Writes all three."""
        # In this order: weights without a state could not be gone on from.
        self.checkpoints.save_state()
        self.checkpoints.save_weights()
        numbers = {name: float(value) for name, value in (logs or {}).items()}
        line = {"epoch": epoch + 1, "step": self.checkpoints.step, **numbers}
        with self.history.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

"""Stops at a loss or gradient that is no number, with its batch on disk."""

import math
from collections import deque
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tf_transformer.errors import InputError
from tf_transformer.translator import Translator

from .updates import Updates

NPZ_FILE, TEXT_FILE = "bad_batch.npz", "bad_batch.txt"


class FiniteLoss(keras.callbacks.Callback):
    """Stops the run at the update whose loss or gradient is NaN or infinite, and keeps its batch.

    The loss that is logged is a mean over the epoch so far, which one NaN makes NaN: the first such
    value names its update. On a GPU each is looked at when the next update is on its way, so that
    the device never waits for this. Gradients in float16 may overflow: the loss scale is made for
    that.

    Args:
        run: gets `bad_batch.npz` (ids) and `bad_batch.txt` (the same as text).
        updates: runs before this callback.
        translator: its tokenizers turn the ids into text.

    Raises:
        InputError: names the update and its learning rate. States on disk are of before.
    """

    def __init__(self, run: Path, updates: Updates, translator: Translator) -> None:
        super().__init__()
        self.run = run
        self.updates = updates
        self.tokenizers = translator.tokenizers
        self._lag = 1 if keras.distribution.list_devices("gpu") else 0
        self._unseen: deque[tuple[int, dict[str, Any]]] = deque()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Looks at the latest update that takes no waiting."""
        self._unseen.append((self.updates.state.step, logs or {}))
        self.check(self._lag)

    def check(self, leave: int = 0) -> None:
        """Looks at all updates but the last `leave`."""
        while len(self._unseen) > leave:
            step, logs = self._unseen.popleft()
            for name, key in self._looked_at().items():
                value = float(logs.get(key, 0.0))
                if not math.isfinite(value):
                    self._stop(step, f"{name} is {value}")

    def _looked_at(self) -> dict[str, str]:
        if isinstance(self.model.optimizer, keras.optimizers.LossScaleOptimizer):
            return {"The loss": "loss"}
        return {"The loss": "loss", "The norm of the gradient": "gradient_norm"}

    def _stop(self, step: int, what: str) -> None:
        self._keep_batch(step)
        raise InputError(
            f"{what} at update {step}, with a learning rate of {self.updates.learning_rate:.3g}: "
            "lower training.learning_rate, lengthen training.warmup_steps, or set "
            f"training.clip_norm; the batch is kept in {self.run / TEXT_FILE} and {NPZ_FILE}."
        )

    def _keep_batch(self, step: int) -> None:
        inputs, labels = next(iter(self.updates.batches.dataset(step - 1).take(1)))
        ids = {name: np.asarray(value) for name, value in inputs.items()}
        arrays: dict[str, Any] = {**ids, "labels": np.asarray(labels), "step": step}
        np.savez(self.run / NPZ_FILE, **arrays)
        sides = (
            (self.tokenizers.source, ids["encoder_token_ids"]),
            (self.tokenizers.target, np.asarray(labels)),
        )
        columns = [
            tokenizer.detokenize(tf.constant(rows.reshape(-1, rows.shape[-1]))).numpy()
            for tokenizer, rows in sides
        ]
        lines = [b"\t".join(row) + b"\n" for row in zip(*columns, strict=True)]
        (self.run / TEXT_FILE).write_bytes(b"".join(lines))

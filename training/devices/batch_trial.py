"""A few updates of the worst batch of a size, in a process of its own; see `batch_size`."""

import json
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tf_transformer.config import END_ID, START_ID
from tf_transformer.tokenizers import TOKENIZERS

from ..batches.batching import Batch
from ..batches.feed import Feed
from ..compiling import compiled
from ..recipe import Recipe, load_recipe
from .batch_size import TOO_LARGE
from .distribution import Distribution

_UPDATES = 3  # the first one traces and compiles


class WorstBatches:
    """What `Feed` needs of `Batches`: the batch that takes most memory, again and again.

    Logits take as much for any batch of so many tokens; attention takes most for the longest.
    """

    def __init__(self, batch_tokens: int, length: int) -> None:
        rows = max(batch_tokens // length, 1)
        labels = np.full((rows, length), END_ID + 1, np.int32)
        decoder = labels.copy()
        decoder[:, 0] = START_ID
        self.batch: Batch = ({"encoder_token_ids": labels, "decoder_token_ids": decoder}, labels)

    def __len__(self) -> int:
        return 1000

    def epoch(self, epoch: int | None, skip: int = 0) -> Iterator[Batch]:
        """Without end."""
        while True:
            yield self.batch

    def dataset(self, first_step: int | None = 0) -> tf.data.Dataset:
        """The same."""
        return tf.data.Dataset.from_tensors(self.batch).repeat()


def main(recipe_file: str, batch_tokens: str, answer: str) -> None:
    """Writes rows, length, peak_bytes and seconds as JSON; ends with `TOO_LARGE` out of memory."""
    try:
        found = measure(load_recipe(Path(recipe_file)), int(batch_tokens))
    except tf.errors.ResourceExhaustedError as error:
        print(error.message)
        sys.exit(TOO_LARGE)
    Path(answer).write_text(json.dumps(found), encoding="utf-8")


def measure(recipe: Recipe, batch_tokens: int) -> dict[str, Any]:
    """Makes updates of the recipe with batches of that size; the fields of a `Trial`."""
    settings = recipe.training
    distribution = Distribution.open(settings)
    multiple = settings.pad_to_multiple_of
    length = -(-min(recipe.data.max_length, batch_tokens) // multiple) * multiple
    worst = WorstBatches(batch_tokens, length)
    together = 2 if settings.update_tokens else 1  # gradients of several take a place of their own
    with distribution.scope():
        model = compiled(settings, recipe.model.to_config(*_vocabularies(recipe)))
    clock = Clock()
    model.fit(
        distribution.dataset(Feed(worst, together), 0),  # type: ignore[arg-type]
        steps_per_epoch=_UPDATES,
        callbacks=[clock],
        shuffle=False,
        verbose=0,
    )
    rows = len(worst.batch[1]) * together
    return {"rows": rows, "length": length, "peak_bytes": _peak(), "seconds": clock.fastest}


class Clock(keras.callbacks.Callback):
    """Seconds of the fastest update."""

    def __init__(self) -> None:
        super().__init__()
        self.fastest = float("inf")

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Begins to count."""
        self._began = time.perf_counter()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Ends when the device has."""
        float((logs or {})["loss"])
        self.fastest = min(self.fastest, time.perf_counter() - self._began)


def _vocabularies(recipe: Recipe) -> tuple[int, int]:
    """Sizes, without the text: a learnt vocabulary has as many entries as were asked for."""
    settings = recipe.tokenizer
    kind = TOKENIZERS[settings.type]
    if settings.model is not None:
        sizes = [kind.adopt(path).vocabulary_size for path in settings.model]
    elif settings.type == "byte":
        sizes = [kind.train([], settings.vocabulary_size).vocabulary_size]
    else:
        sizes = [settings.vocabulary_size]
    return sizes[0], sizes[-1]


def _peak() -> int:
    gpus = tf.config.list_logical_devices("GPU")
    if gpus:
        return max(tf.config.experimental.get_memory_info(gpu.name)["peak"] for gpu in gpus)
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

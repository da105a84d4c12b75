"""What `fit` is given: batches grouped into updates, and each replica its rows of them."""

from collections.abc import Iterator, Sequence

import numpy as np
import tensorflow as tf

from tf_transformer.config import PAD_ID

from .batching import Batch, Batches


class Feed:
    """The batches of a corpus as the updates of a training, or as the steps of an evaluation.

    Several batches in a row make one update; the last of an epoch has what is left. Which batches
    these are does not depend on the number of replicas.

    Args:
        batches: of one device.
        batches_per_update: how many make one update.
    """

    def __init__(self, batches: Batches, batches_per_update: int = 1) -> None:
        self.batches = batches
        self.batches_per_update = batches_per_update

    def __len__(self) -> int:
        """Updates of an epoch."""
        return -(-len(self.batches) // self.batches_per_update)

    def token_counts(self, epoch: int | None) -> list[int]:
        """Target tokens of each update of an epoch."""
        counts, size = self.batches.token_counts(epoch), self.batches_per_update
        return [sum(counts[first : first + size]) for first in range(0, len(counts), size)]

    def updates(self, first: int | None) -> Iterator[list[Batch]]:
        """The batches of each update from number `first` on, without end.

        None gives one pass for evaluation: sorted, and each batch is alone.
        """
        if first is None:
            for batch in self.batches.epoch(None):
                yield [batch]
            return
        epoch, skip = divmod(first, len(self))
        while True:
            group: list[Batch] = []
            for batch in self.batches.epoch(epoch, skip * self.batches_per_update):
                group.append(batch)
                if len(group) == self.batches_per_update:
                    yield group
                    group = []
            if group:
                yield group
            epoch, skip = epoch + 1, 0

    def dataset(
        self, first: int | None = 0, replicas: Sequence[int] = (0,), of: int = 1
    ) -> tf.data.Dataset:
        """The elements for `Trainer` from update `first` on; None: one pass, for evaluation.

        Args:
            first: number of the update.
            replicas: the replicas of this process: each update has an element for each, in order.
            of: replicas of all processes. With more than one the passes of None never end, so
                that no replica has to ask the others whether there is more.
        """
        many = first is not None and self.batches_per_update > 1
        if of == 1 and not many:
            return self.batches.dataset(first)

        def elements() -> Iterator[tuple]:
            while True:
                for update in self.updates(first):
                    for replica in replicas:
                        share = [rows_of(batch, replica, of) for batch in update]
                        yield stack(share) if many else share[0]

        ids = tf.TensorSpec([None] * (3 if many else 2), tf.int32)
        inputs = {"encoder_token_ids": ids, "decoder_token_ids": ids}
        if many:
            inputs["sizes"] = tf.TensorSpec([None, 3], tf.int32)
        dataset = tf.data.Dataset.from_generator(elements, output_signature=(inputs, ids))
        endless = tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY)
        return dataset.apply(endless).prefetch(4)


def rows_of(batch: Batch, replica: int, of: int) -> Batch:
    """The rows of one of several replicas, every `of`-th: neighbours have like lengths.

    A replica that would have none has one of pads, which counts for nothing: a tensor without
    rows is a case that few kernels were tested with.
    """
    if of == 1:
        return batch

    def part(ids: np.ndarray) -> np.ndarray:
        rows = ids[replica::of]
        return rows if len(rows) else np.full_like(ids[:1], PAD_ID)

    inputs, labels = batch
    return {name: part(ids) for name, ids in inputs.items()}, part(labels)


def stack(batches: Sequence[Batch]) -> Batch:
    """Several batches as one element: `sizes` (K, 3) tells of each its rows and both lengths."""
    names = ("encoder_token_ids", "decoder_token_ids")
    sizes = [
        (len(labels), inputs[names[0]].shape[1], labels.shape[1]) for inputs, labels in batches
    ]
    rows, source, target = (max(column) for column in zip(*sizes, strict=True))

    def together(parts: list[np.ndarray], width: int) -> np.ndarray:
        whole = np.full((len(parts), rows, width), PAD_ID, np.int32)
        for place, part in zip(whole, parts, strict=True):
            place[: part.shape[0], : part.shape[1]] = part
        return whole

    inputs = {
        name: together([inputs[name] for inputs, _ in batches], width)
        for name, width in zip(names, (source, target), strict=True)
    }
    labels = together([labels for _, labels in batches], target)
    return {**inputs, "sizes": np.array(sizes, np.int32)}, labels

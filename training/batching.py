"""Sentence pairs to batches of ids: like lengths together, sized in tokens, shuffled.

Everything is a function of (seed, epoch): the same seed gives the same batches in the same order.
"""

import dataclasses
import logging
from collections.abc import Iterator, Sequence

import numpy as np
import tensorflow as tf

from tf_transformer.config import END_ID, PAD_ID, START_ID
from tf_transformer.errors import InputError
from tf_transformer.tokenizers import Tokenizer

from .corpus import Corpus

_log = logging.getLogger(__name__)
_CHUNK = 10_000  # sentences encoded at once: bounds the memory that Python lists take

Batch = tuple[dict[str, np.ndarray], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Ids:
    """Many sentences of ids in one array; sentence n is `flat[starts[n] : starts[n + 1]]`."""

    flat: np.ndarray  # int32
    starts: np.ndarray  # int64, one more than sentences

    @classmethod
    def encode(cls, sentences: Sequence[str], tokenizer: Tokenizer) -> "Ids":
        """The sentences' ids, without START and END."""
        parts, lengths = [], []
        for first in range(0, len(sentences), _CHUNK):
            encoded = tokenizer.encode(sentences[first : first + _CHUNK])
            lengths += [len(ids) for ids in encoded]
            parts.append(np.fromiter((i for ids in encoded for i in ids), np.int32))
        starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        return cls(np.concatenate(parts or [np.zeros(0, np.int32)]), starts)

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each sentence, with its END."""
        return np.diff(self.starts) + 1

    def __getitem__(self, sentence: int) -> np.ndarray:
        return self.flat[self.starts[sentence] : self.starts[sentence + 1]]


class Batches:
    """A corpus as batches for `model.fit`.

    A batch holds as many pairs of like length as fit into `batch_tokens` padded tokens of the
    longer side, at least one. Pairs of more than `max_length` tokens on a side are left out, never
    cut: a cut target would teach the model to stop early.

    Args:
        corpus: the sentence pairs.
        source_tokenizer: for the encoder's ids, which get END.
        target_tokenizer: for the decoder's ids (START first) and the labels (END last).
        batch_tokens: rows times the longest side of a batch, padding counted.
        max_length: most tokens of a side, END counted; None keeps all.
        pad_to_multiple_of: lengths are rounded up to this, for few shapes.
        seed: of all shuffling.

    Raises:
        InputError: no pair is left.
    """

    def __init__(
        self,
        corpus: Corpus,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        batch_tokens: int = 4096,
        max_length: int | None = 128,
        pad_to_multiple_of: int = 8,
        seed: int = 1,
    ) -> None:
        self.source = Ids.encode(corpus.source, source_tokenizer)
        self.target = Ids.encode(corpus.target, target_tokenizer)
        self.batch_tokens = batch_tokens
        self.multiple = pad_to_multiple_of
        self.seed = seed
        longest = np.maximum(self.source.lengths, self.target.lengths)
        limit = batch_tokens if max_length is None else min(max_length, batch_tokens)
        self.kept = np.flatnonzero(longest <= limit)
        self.dropped = len(longest) - len(self.kept)
        if self.dropped:
            _log.info(
                "%s: %d of %d pairs have more than %d tokens on a side and are left out.",
                *(corpus.name, self.dropped, len(longest), limit),
            )
        if not len(self.kept):
            raise InputError(
                f"{corpus.name}: no pair is left, all {len(longest)} have more than {limit} tokens "
                "on a side (the smaller of max_length and batch_tokens)."
            )
        self._ends = self._cut()
        self.target_tokens = int(self.target.lengths[self.kept].sum())

    def __len__(self) -> int:
        """Batches of an epoch, the same for every epoch."""
        return len(self._ends)

    def epoch(self, epoch: int | None, skip: int = 0) -> Iterator[Batch]:
        """The batches of one epoch from batch `skip` on; None gives them sorted, not shuffled."""
        for pairs in self.plan(epoch)[skip:]:
            yield self._batch(pairs)

    def plan(self, epoch: int | None) -> list[np.ndarray]:
        """The numbers of the pairs in each batch of an epoch."""
        random = None if epoch is None else np.random.default_rng([self.seed, epoch])
        pairs = self.kept if random is None else random.permutation(self.kept)
        batches = np.split(pairs[self._by_length(pairs)], self._ends[:-1])
        if random is not None:
            # Or the model would see the short sentences first in every epoch.
            order = random.permutation(len(batches))
            batches = [batches[i] for i in order]
        return batches

    def token_counts(self, epoch: int | None) -> list[int]:
        """Target tokens of each batch of an epoch."""
        lengths = self.target.lengths
        return [int(lengths[pairs].sum()) for pairs in self.plan(epoch)]

    def dataset(self, first_step: int | None = 0) -> tf.data.Dataset:
        """Shuffled epochs without end from global step `first_step` on; None: one pass, sorted."""

        def batches() -> Iterator[Batch]:
            if first_step is None:
                yield from self.epoch(None)
                return
            epoch, skip = divmod(first_step, len(self))
            while True:
                yield from self.epoch(epoch, skip)
                epoch, skip = epoch + 1, 0

        ids = tf.TensorSpec([None, None], tf.int32)
        inputs = {"encoder_token_ids": ids, "decoder_token_ids": ids}
        dataset = tf.data.Dataset.from_generator(batches, output_signature=(inputs, ids))
        size = tf.data.INFINITE_CARDINALITY if first_step is not None else len(self)
        return dataset.apply(tf.data.experimental.assert_cardinality(size)).prefetch(4)

    def _rounded(self, lengths: np.ndarray) -> np.ndarray:
        return -(-lengths // self.multiple) * self.multiple

    def _by_length(self, pairs: np.ndarray) -> np.ndarray:
        source = self._rounded(self.source.lengths[pairs])
        target = self._rounded(self.target.lengths[pairs])
        # Stable: pairs of equal lengths stay shuffled.
        return np.lexsort((source, target, np.maximum(source, target)))

    def _cut(self) -> list[int]:
        # The sorted lengths are the same in every epoch, so the cuts are too.
        pairs = self.kept[self._by_length(self.kept)]
        longest = self._rounded(
            np.maximum(self.source.lengths[pairs], self.target.lengths[pairs])
        ).tolist()
        ends, first = [], 0
        for i, length in enumerate(longest):
            if i > first and (i + 1 - first) * length > self.batch_tokens:
                ends.append(i)
                first = i
        return [*ends, len(longest)]

    def _batch(self, pairs: np.ndarray) -> Batch:
        source_width = int(self._rounded(self.source.lengths[pairs].max()))
        target_width = int(self._rounded(self.target.lengths[pairs].max()))
        encoder = np.full((len(pairs), source_width), PAD_ID, np.int32)
        decoder = np.full((len(pairs), target_width), PAD_ID, np.int32)
        labels = np.full((len(pairs), target_width), PAD_ID, np.int32)
        decoder[:, 0] = START_ID
        for row, pair in enumerate(pairs):
            source, target = self.source[pair], self.target[pair]
            encoder[row, : len(source)], encoder[row, len(source)] = source, END_ID
            decoder[row, 1 : len(target) + 1] = target
            labels[row, : len(target)], labels[row, len(target)] = target, END_ID
        return {"encoder_token_ids": encoder, "decoder_token_ids": decoder}, labels

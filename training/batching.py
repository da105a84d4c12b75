"""Sentence pairs to batches of ids: like lengths together, sized in tokens, shuffled.

Everything is a function of (seed, epoch): the same seed gives the same batches in the same order.
"""

import logging
from collections.abc import Collection, Iterator

import numpy as np
import tensorflow as tf

from tf_transformer.config import END_ID, PAD_ID, START_ID, UNK_ID
from tf_transformer.errors import InputError
from tf_transformer.tokenizers import Tokenizer

from .corpus import Corpus
from .encoded import EncodedCorpus
from .ids import Ids

_log = logging.getLogger(__name__)

Batch = tuple[dict[str, np.ndarray], np.ndarray]


class Batches:
    """A corpus as batches for `model.fit`.

    A batch holds as many pairs of like length as fit into `batch_tokens` padded tokens of the
    longer side, at least one. Pairs of more than `max_length` tokens on a side are left out, never
    cut: a cut target would teach the model to stop early.

    With `sampling` each epoch has its own segmentations. Which pairs are left out is decided by
    the best ones, and batches are cut where a few drawn epochs would be, so that every epoch has
    as many; one may then have somewhat more than `batch_tokens`.

    Args:
        corpus: the sentence pairs.
        source_tokenizer: for the encoder's ids, which get END.
        target_tokenizer: for the decoder's ids (START first) and the labels (END last).
        batch_tokens: rows times the longest side of a batch, padding counted.
        max_length: most tokens of a side, END counted; None keeps all.
        pad_to_multiple_of: lengths are rounded up to this, for few shapes.
        seed: of all that is random.
        sampling: the sides that are cut into other subwords in each epoch, of "source" and
            "target"; see `SubwordSampler`.
        alpha: of `sampling`; None is the default of the tokenizers' kind.
        word_dropout: share of the source tokens of a training batch that become UNK.

    Raises:
        InputError: no pair is left, or `sampling` with a tokenizer that has no such thing.
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
        sampling: Collection[str] = (),
        alpha: float | None = None,
        word_dropout: float = 0.0,
    ) -> None:
        self._text = EncodedCorpus(
            corpus, source_tokenizer, target_tokenizer, sampling, alpha, seed
        )
        self.batch_tokens = batch_tokens
        self.multiple = pad_to_multiple_of
        self.seed = seed
        self.word_dropout = word_dropout
        longest = _longest(*self._text.best)
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
        self.target_tokens = int(self._text.best[1].lengths[self.kept].sum())

    def __len__(self) -> int:
        """Batches of an epoch, the same for every epoch."""
        return len(self._ends)

    def epoch(self, epoch: int | None, skip: int = 0) -> Iterator[Batch]:
        """The batches of one epoch from batch `skip` on; None gives them sorted, not shuffled."""
        if epoch is not None:
            self._text.prepare(epoch)
            self._text.prepare(epoch + 1)
        sides = self._text.epoch(epoch)
        for number, pairs in enumerate(self.plan(epoch)[skip:], start=skip):
            source, target = (side.take(pairs) for side in sides)
            if self.word_dropout and epoch is not None:
                random = np.random.default_rng([self.seed, epoch, number, 2])
                unknown = random.random(len(source.flat)) < self.word_dropout
                source = Ids(np.where(unknown, UNK_ID, source.flat), source.starts)
            yield self._batch(source, target)

    def plan(self, epoch: int | None) -> list[np.ndarray]:
        """The numbers of the pairs in each batch of an epoch."""
        random = None if epoch is None else np.random.default_rng([self.seed, epoch])
        pairs = self.kept if random is None else random.permutation(self.kept)
        order = self._by_length(*(side.lengths[pairs] for side in self._text.epoch(epoch)))
        batches = np.split(pairs[order], self._ends[:-1])
        if random is not None:
            # Or the model would see the short sentences first in every epoch.
            batches = [batches[i] for i in random.permutation(len(batches))]
        return batches

    def token_counts(self, epoch: int | None) -> list[int]:
        """Target tokens of each batch of an epoch."""
        lengths = self._text.epoch(epoch)[1].lengths
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

    def _by_length(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        source, target = self._rounded(source), self._rounded(target)
        # Stable: pairs of equal lengths stay shuffled.
        return np.lexsort((source, target, np.maximum(source, target)))

    def _cut(self) -> list[int]:
        # The sorted lengths are the same in every epoch, and nearly so where subwords are
        # sampled, so the cuts are too.
        drawn = [np.sort(_longest(*sides)[self.kept]) for sides in self._text.draws()]
        ends, first = [], 0
        for i, length in enumerate(self._rounded(np.max(drawn, axis=0)).tolist()):
            if i > first and (i + 1 - first) * length > self.batch_tokens:
                ends.append(i)
                first = i
        return [*ends, len(self.kept)]

    def _batch(self, source: Ids, target: Ids) -> Batch:
        rows = np.arange(len(source))
        source_width, target_width = (
            int(self._rounded(side.lengths.max())) for side in (source, target)
        )
        encoder = source.rows(source_width, PAD_ID)
        encoder[rows, source.lengths - 1] = END_ID
        labels = target.rows(target_width, PAD_ID)
        decoder = np.roll(labels, 1, axis=1)
        decoder[:, 0] = START_ID
        labels[rows, target.lengths - 1] = END_ID
        return {"encoder_token_ids": encoder, "decoder_token_ids": decoder}, labels


def _longest(source: Ids, target: Ids) -> np.ndarray:
    return np.maximum(source.lengths, target.lengths)

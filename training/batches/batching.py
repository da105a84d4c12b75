"""Sentence pairs to batches of ids: like lengths together, sized in tokens, shuffled.

Everything is a function of (seed, epoch): the same seed gives the same batches in the same order.
"""

from collections.abc import Collection, Iterator

import numpy as np
import tensorflow as tf

from tf_transformer.config import END_ID, PAD_ID, START_ID, UNK_ID
from tf_transformer.tokenizers import Tokenizer

from ..corpora.corpus import Corpus
from .encoded import EncodedCorpus
from .ids import Ids
from .length_filters import keep
from .mixture import Mixture
from .planning import Planned, ShapedPlan, SortedPlan

Batch = tuple[dict[str, np.ndarray], np.ndarray]


class Batches:
    """A corpus as batches for `model.fit`.

    A batch holds as many pairs of like length as fit into `batch_tokens` padded tokens of the
    longer side, at least one. Pairs of more than `max_length` tokens on a side are left out, never
    cut: a cut target would teach the model to stop early.

    Every epoch has as many batches. With `sampling` it has its own segmentations: which pairs are
    left out is decided by the best ones, a sentence that would be longer than `max_length` has its
    best, and a batch may have somewhat more than `batch_tokens`.

    Args:
        corpus: the sentence pairs.
        source_tokenizer: for the encoder's ids, which get END.
        target_tokenizer: for the decoder's ids (START first) and the labels (END last).
        batch_tokens: rows times the longest side of a batch, padding counted.
        max_length: most tokens of a side, END counted; None keeps all.
        max_length_ratio: most tokens of the longer side for each of the shorter, END counted; None
            keeps all.
        pad_to_multiple_of: lengths are rounded up to this, for few shapes.
        static_shapes: batches have one of a few shapes and are filled up with rows of PAD, which
            count for nothing; see `ShapedPlan`. A sentence that would be longer than its batch is
            wide, as it was sampled, has its best segmentation.
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
        max_length_ratio: float | None = None,
        pad_to_multiple_of: int = 8,
        static_shapes: bool = False,
        seed: int = 1,
        sampling: Collection[str] = (),
        alpha: float | None = None,
        word_dropout: float = 0.0,
    ) -> None:
        self.seed = seed
        self.word_dropout = word_dropout
        self._text = text = EncodedCorpus(
            corpus, source_tokenizer, target_tokenizer, sampling, alpha, seed
        )
        text.room = batch_tokens if max_length is None else min(max_length, batch_tokens)
        self.kept, self.dropped = keep(text.lengths(None), text.room, max_length_ratio, corpus.name)
        drawn = [np.maximum(*lengths) for lengths in text.draws()]
        part, weights = corpus.parts_of(self.kept)
        self._plan: SortedPlan | ShapedPlan
        if static_shapes:
            longest = np.maximum(drawn[0], np.maximum(*text.lengths(None)))
            self._plan = ShapedPlan(longest, self.kept, batch_tokens, pad_to_multiple_of)
            text.room = self._plan.widths
            self._mixture = Mixture(self.kept, part, weights, self._plan.widths[self.kept], seed)
        else:
            self._mixture = Mixture(self.kept, part, weights, np.zeros_like(part), seed)
            epochs = [lengths[self._mixture.epoch(n)] for n, lengths in enumerate(drawn)]
            self._plan = SortedPlan(epochs, batch_tokens, pad_to_multiple_of)
        counts = self.token_counts(None)
        self._count, self.target_tokens = len(counts), sum(counts)

    def __len__(self) -> int:
        """Batches of an epoch, the same for every epoch."""
        return self._count

    def plan(self, epoch: int | None) -> list[Planned]:
        """The batches of an epoch; None gives them sorted, not shuffled."""
        random = None if epoch is None else np.random.default_rng([self.seed, epoch])
        pairs = self._mixture.epoch(epoch or 0)
        if random is not None:
            pairs = random.permutation(pairs)
        source, target = self._text.lengths(epoch)
        batches = self._plan.cut(pairs, source[pairs], target[pairs])
        if random is not None:
            # Or the model would see the short sentences first in every epoch.
            batches = [batches[i] for i in random.permutation(len(batches))]
        return batches

    def epoch(self, epoch: int | None, skip: int = 0) -> Iterator[Batch]:
        """The batches of one epoch from batch `skip` on; None: in the order of `plan(None)`."""
        if epoch is not None:
            self._text.prepare(epoch)
            self._text.prepare(epoch + 1)
        sides = self._text.epoch(epoch)
        for number, planned in enumerate(self.plan(epoch)[skip:], start=skip):
            source, target = (side.take(planned.pairs) for side in sides)
            if self.word_dropout and epoch is not None:
                random = np.random.default_rng([self.seed, epoch, number, 2])
                unknown = random.random(len(source.flat)) < self.word_dropout
                source = Ids(np.where(unknown, UNK_ID, source.flat), source.starts)
            yield _batch(source, target, planned)

    def token_counts(self, epoch: int | None) -> list[int]:
        """Target tokens of each batch of an epoch."""
        lengths = self._text.lengths(epoch)[1]
        return [int(lengths[planned.pairs].sum()) for planned in self.plan(epoch)]

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


def _batch(source: Ids, target: Ids, planned: Planned) -> Batch:
    real = np.arange(len(source))
    encoder = source.rows(planned.rows, planned.source_width, PAD_ID)
    encoder[real, source.lengths - 1] = END_ID
    labels = target.rows(planned.rows, planned.target_width, PAD_ID)
    decoder = np.roll(labels, 1, axis=1)
    decoder[real, 0] = START_ID
    labels[real, target.lengths - 1] = END_ID
    return {"encoder_token_ids": encoder, "decoder_token_ids": decoder}, labels

"""Both sides of a corpus as ids; in other subwords each epoch, where they are sampled."""

import threading
from collections.abc import Collection
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from tf_transformer.tokenizers import Tokenizer

from ..corpora.corpus import Corpus
from .ids import Ids
from .subwords import SubwordSampler

Sides = tuple[Ids, Ids]
Lengths = tuple[np.ndarray, np.ndarray]

_DRAWS = 3  # epochs drawn to see how long their sentences are


class EncodedCorpus:
    """A corpus as ids.

    Args:
        corpus: the sentence pairs.
        source_tokenizer: of its source.
        target_tokenizer: of its target.
        sampling: the sides that are cut into other subwords in each epoch: "source", "target".
        alpha: see `SubwordSampler`.
        seed: of the sampling.

    Attributes:
        best: source and target in their best segmentations.
        room: most tokens of a side of each pair, END counted, or one number for all: a sentence
            that has more as it was sampled has its best segmentation. To be set before an epoch is
            asked for; None is no limit.

    Raises:
        InputError: `sampling` with a tokenizer that has no such thing.
    """

    def __init__(
        self,
        corpus: Corpus,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        sampling: Collection[str] = (),
        alpha: float | None = None,
        seed: int = 1,
    ) -> None:
        self.seed = seed
        self.best: Sides = (
            Ids.encode(corpus.source, source_tokenizer),
            Ids.encode(corpus.target, target_tokenizer),
        )
        self.room: int | np.ndarray | None = None
        self._samplers = [
            SubwordSampler(ids, tokenizer, alpha) if side in sampling else None
            for side, ids, tokenizer in zip(
                ("source", "target"), self.best, (source_tokenizer, target_tokenizer), strict=True
            )
        ]
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, "subword-sampling")  # begins when it has work
        self._made: dict[int, Future[Sides]] = {}

    @property
    def is_sampled(self) -> bool:
        """Whether epochs differ."""
        return any(self._samplers)

    def epoch(self, epoch: int | None) -> Sides:
        """Source and target of an epoch, a function of (seed, epoch); None: the best cut."""
        if epoch is None or not self.is_sampled:
            return self.best
        return self._begin(epoch).result()

    def prepare(self, epoch: int) -> None:
        """Begins to make an epoch in the background; the one before it is kept as well."""
        if self.is_sampled:
            self._begin(epoch)

    def lengths(self, epoch: int | None) -> Lengths:
        """int (pairs,) each: the tokens of the sides in an epoch, END counted."""
        source, target = self.epoch(epoch)
        return source.lengths, target.lengths

    def draws(self) -> list[Lengths]:
        """Lengths as they are in a few epochs that are not trained on; or of the best cut alone."""
        if not self.is_sampled:
            return [self.lengths(None)]
        drawn = (self._sample(draw, stream=2) for draw in range(_DRAWS))
        return [(source.lengths, target.lengths) for source, target in drawn]

    def _begin(self, epoch: int) -> "Future[Sides]":
        with self._lock:
            if epoch not in self._made:
                # The latest two: the bar of one epoch is shown while the next begins.
                kept = sorted([*self._made, epoch])[-2:]
                self._made = {n: made for n, made in self._made.items() if n in kept}
                self._made[epoch] = self._thread.submit(self._sample, epoch, stream=1)
            return self._made[epoch]

    def _sample(self, epoch: int, stream: int) -> Sides:
        sides = []
        for side, (best, sampler) in enumerate(zip(self.best, self._samplers, strict=True)):
            sampled = best
            if sampler is not None:
                sampled = sampler.sample(_random(self.seed, epoch, stream, side))
            if self.room is not None and (too_long := sampled.lengths > self.room).any():
                pairs = np.arange(len(best))
                sampled = Ids.join([sampled, best]).take(pairs + len(pairs) * too_long)
            sides.append(sampled)
        return sides[0], sides[1]


def _random(*key: int) -> np.random.Generator:
    # The last is above 0: NumPy takes (1, 2) and (1, 2, 0) for the same seed.
    return np.random.default_rng([*key, 1])

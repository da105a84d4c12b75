"""Which pairs an epoch has, where corpora are mixed by weight."""

from collections.abc import Sequence

import numpy as np


class Mixture:
    """Draws the pairs of each epoch, as many in every one.

    A corpus of weight 1 is seen whole in each epoch; one of weight 2.5 twice, and another half of
    it each time; one of weight 0.1 is seen whole in ten epochs. Over the epochs all pairs of a
    corpus are seen equally often.

    Args:
        pairs: the numbers of the pairs to draw from.
        corpus: for each of them, the number of its corpus.
        weights: of the corpora.
        strata: for each pair a number; an epoch has as many pairs of each in every epoch.
        seed: of the order in which halves follow each other.
    """

    def __init__(
        self,
        pairs: np.ndarray,
        corpus: np.ndarray,
        weights: Sequence[float],
        strata: np.ndarray,
        seed: int,
    ) -> None:
        whole, rest = np.divmod(np.asarray(weights, np.float64), 1)
        self._always = np.repeat(pairs, whole.astype(np.int64)[corpus])
        self._in_turn: list[tuple[np.ndarray, int]] = []
        for number in np.flatnonzero(rest):
            for stratum in np.unique(strata[corpus == number]):
                members = pairs[(corpus == number) & (strata == stratum)]
                random = np.random.default_rng([seed, number, stratum, 4])
                count = round(rest[number] * len(members))
                self._in_turn.append((random.permutation(members), count))

    def epoch(self, epoch: int) -> np.ndarray:
        """The numbers of its pairs, in no useful order; one that is seen twice is there twice."""
        parts = [self._always]
        for members, count in self._in_turn:
            places = np.arange(epoch * count, (epoch + 1) * count) % len(members)
            parts.append(members[places])
        return np.concatenate(parts)

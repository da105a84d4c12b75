"""Pairs to batches: which go together, and in what shape.

Both ways give every epoch as many batches, so that a step is always a place in an epoch.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

_GROWTH = 1.25  # from one fixed width to the next: at most a fifth of a row is padding
_ROWS = 8  # fixed numbers of rows are multiples of it, as accelerators like them


@dataclasses.dataclass(frozen=True)
class Planned:
    """One batch: the numbers of its pairs, and what it is filled up to with pads."""

    pairs: np.ndarray
    rows: int
    source_width: int
    target_width: int


class SortedPlan:
    """Pairs of like length together, as many as fit; each batch is as wide as its longest pair.

    Args:
        longest: the lengths of all pairs' longer sides, as they are in one epoch or in a few.
            Batches are cut where the longest of these would be; an epoch with longer sentences
            somewhere has somewhat larger batches.
        batch_tokens: rows times the longer side, padding counted, at most.
        multiple: widths are multiples of this.
    """

    def __init__(self, longest: Sequence[np.ndarray], batch_tokens: int, multiple: int) -> None:
        self._multiple = multiple
        widths = _rounded(np.max([np.sort(each) for each in longest], axis=0), multiple).tolist()
        self._ends, first = [], 0
        for i, width in enumerate(widths):
            if i > first and (i + 1 - first) * width > batch_tokens:
                self._ends.append(i)
                first = i
        self._ends.append(len(widths))

    def cut(
        self, pairs: np.ndarray, source_lengths: np.ndarray, target_lengths: np.ndarray
    ) -> list[Planned]:
        """The batches of an epoch, short ones first.

        Args:
            pairs: int (n,), the numbers of its pairs in random order.
            source_lengths: int (n,), the tokens of each, END counted.
            target_lengths: the same.
        """
        source = _rounded(source_lengths, self._multiple)
        target = _rounded(target_lengths, self._multiple)
        # Stable: pairs of equal lengths stay in random order.
        order = np.lexsort((source, target, np.maximum(source, target)))
        return [
            Planned(pairs[some], len(some), int(source[some].max()), int(target[some].max()))
            for some in np.split(order, self._ends[:-1])
        ]


class ShapedPlan:
    """A few shapes for all batches, for XLA, which compiles each: rows are filled up with pads.

    Both sides are as wide as each other. Widths grow by a quarter, as Tensor2Tensor's buckets do by
    a tenth.

    Args:
        longest: int (corpus,), the length of each pair's longer side for which it gets room.
        pairs: the numbers of those that may come.
        batch_tokens: rows times width, at most, but for one pair.
        multiple: widths are multiples of this.

    Attributes:
        shapes: all (rows, width) that there are.
        widths: int (corpus,), how wide the batches of each pair are.
    """

    def __init__(
        self, longest: np.ndarray, pairs: np.ndarray, batch_tokens: int, multiple: int
    ) -> None:
        widest, widths = int(_rounded(longest[pairs], multiple).max()), [multiple]
        while widths[-1] < widest:
            wider = max(widths[-1] + multiple, int(widths[-1] * _GROWTH))
            widths.append(min(-(-wider // multiple) * multiple, widest))
        self.shapes = [(_rows(batch_tokens // width), width) for width in widths]
        places = np.minimum(np.searchsorted(widths, longest), len(widths) - 1)
        self.widths = np.array(widths)[places]

    def cut(
        self, pairs: np.ndarray, source_lengths: np.ndarray, target_lengths: np.ndarray
    ) -> list[Planned]:
        """See `SortedPlan.cut`; the lengths must be within `widths`."""
        widths = self.widths[pairs]
        return [
            Planned(some[first : first + rows], rows, width, width)
            for rows, width in self.shapes
            for some in [pairs[widths == width]]
            for first in range(0, len(some), rows)
        ]


def _rows(fit: int) -> int:
    return fit // _ROWS * _ROWS if fit >= _ROWS else max(fit, 1)


def _rounded(lengths: np.ndarray, multiple: int) -> np.ndarray:
    return -(-lengths // multiple) * multiple

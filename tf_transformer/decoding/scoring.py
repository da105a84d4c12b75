"""How the total log-probability of a hypothesis becomes the score it is ranked by."""

from typing import Any, NamedTuple

import tensorflow as tf

# Each is monotonous in the length n for a fixed alpha: `Scoring.best_possible` builds on that.
LENGTH_PENALTIES = {
    "gnmt": lambda n, alpha: tf.pow((5.0 + n) / 6.0, alpha),
    "power": lambda n, alpha: tf.pow(n, alpha),
    "none": lambda n, alpha: tf.ones_like(n),
}
MAX_ALPHA = 10  # beyond, the penalty of a long output leaves float32
_LEAST_COVERAGE = 1e-9  # an unseen source token costs 20.7 beta instead of making all worthless


def length_penalty(length: tf.Tensor, alpha: Any, kind: str = "gnmt") -> tf.Tensor:
    """What log P of an output of `length` tokens is divided by, float32; END counts.

    Args:
        length: int32 of any shape; an empty place (0) counts as 1.
        alpha: a number, or a tensor that broadcasts with `length`.
        kind: `"gnmt"`, ((5 + length) / 6)^alpha of arXiv 1609.08144, equation 14, as the paper
            has it; `"power"`, length^alpha; `"none"`, 1.

    >>> float(length_penalty(tf.constant(1), 0.6))
    1.0
    >>> float(length_penalty(tf.constant(4), 0.5, "power"))
    2.0
    """
    return LENGTH_PENALTIES[kind](tf.cast(tf.maximum(length, 1), tf.float32), alpha)


class Scoring(NamedTuple):
    """log P / length penalty + coverage penalty, with what each row wants of it."""

    length_penalty: str
    alpha: Any  # a number, or (B, 1) float32
    coverage_penalty: float  # beta of GNMT
    source_mask: Any  # (B, S) bool where beta is not 0

    def score(self, totals: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
        """Totals (B, N) of hypotheses of `lengths`, () or (B, 1) or (B, N)."""
        return totals / length_penalty(lengths, self.alpha, self.length_penalty)

    def best_possible(
        self, totals: tf.Tensor, lengths: tf.Tensor, max_lengths: tf.Tensor
    ) -> tf.Tensor:
        """(B, 1): no continuation of an open hypothesis can score higher.

        A total only falls, so the hypothesis ends with at most its own, over the penalty of some
        length from the next to the limit. The penalty rises or falls with the length throughout:
        the best case is at one of the two ends. A coverage penalty is at most 0.

        Args:
            totals: (B, 1), the highest of the row.
            lengths: (B,), so far.
            max_lengths: (B,).
        """
        soonest, latest = tf.expand_dims(lengths + 1, 1), tf.expand_dims(max_lengths, 1)
        return tf.maximum(self.score(totals, soonest), self.score(totals, latest))

    def cover(self, attention: tf.Tensor) -> tf.Tensor:
        """beta * sum over source tokens of log(min(attention received, 1)), 0 at most.

        GNMT, equation 14.

        Args:
            attention: (B, K, S), summed over the tokens of each hypothesis.
        """
        received = tf.math.log(tf.clip_by_value(attention, _LEAST_COVERAGE, 1.0))
        real = tf.where(tf.expand_dims(self.source_mask, 1), received, 0.0)
        return self.coverage_penalty * tf.reduce_sum(real, axis=2)

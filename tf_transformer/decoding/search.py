"""What a search is: it sees a step function, never a model."""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from tf_transformer.config import END_ID, PAD_ID, START_ID

_MAX_ALPHA = 10  # beyond, the penalty of a long output leaves float32

State = Any
Extras = dict[str, tf.Tensor]
# (token ids (R,) int32, state, index () int32) -> (logits (R, V) float32, state). The tokens stand
# at position `index`; the logits are of the next. Log-probabilities are logits too. A search that
# is called with `extras` gets a third: the same names, each (R, ...), said of the next token.
Step = Callable[
    [tf.Tensor, State, tf.Tensor],
    tuple[tf.Tensor, State] | tuple[tf.Tensor, State, Extras],
]


class SearchResult(NamedTuple):
    """The K best hypotheses of each of B rows, best first.

    A place that no hypothesis filled has length 0, only PAD, and score minus infinity.
    """

    token_ids: tf.Tensor  # (B, K, T) int32; PAD after END, no START
    lengths: tf.Tensor  # (B, K) int32; END counts
    scores: tf.Tensor  # (B, K) float32; log P / ((5 + length) / 6)^alpha
    log_probs: tf.Tensor  # (B, K) float32; log P
    finished: tf.Tensor  # (B, K) bool; False where the limit came before END
    token_log_probs: tf.Tensor  # (B, K, T) float32; of each token, END too; 0 at PAD
    extras: Extras  # name -> (B, K, T, ...); what the step said of each token, zeros at PAD


class Search(abc.ABC):
    """A way to find good outputs, one graph for evaluation, SavedModel and LiteRT.

    Args:
        alpha: exponent of the length penalty, -10 to 10; 0 ranks by log P alone.
        start_id: stands at position 0, is never chosen.
        end_id: ends a hypothesis.
        pad_id: fills up, is never chosen.
    """

    num_beams: int

    def __init__(
        self,
        alpha: float = 0.6,
        *,
        start_id: int = START_ID,
        end_id: int = END_ID,
        pad_id: int = PAD_ID,
    ) -> None:
        number = isinstance(alpha, (int, float)) and not isinstance(alpha, bool)
        if not number or not abs(alpha) <= _MAX_ALPHA:  # NaN too
            raise ValueError(
                f"`alpha` must be a number from -{_MAX_ALPHA} to {_MAX_ALPHA}. "
                f"Received: alpha={alpha!r}"
            )
        self.alpha = float(alpha)
        self.start_id = start_id
        self.end_id = end_id
        self.pad_id = pad_id

    @abc.abstractmethod
    def __call__(
        self,
        step: Step,
        state: State,
        max_lengths: tf.Tensor,
        *,
        extras: Extras | None = None,
    ) -> SearchResult:
        """Searches B rows side by side; no row's result depends on another's.

        Args:
            step: gives the next logits for R = B * `num_beams` tokens.
            state: nested tensors with first dimension R, reordered with the hypotheses. An axis
                that is statically 0 at first may grow. What is the same for all hypotheses of a
                row belongs into the step function.
            max_lengths: (B,) int32, most tokens of a row, END counted; at least 1.
            extras: name -> zeros (R, ...) of the shape and dtype of what the step returns third,
                such as `{"attention": zeros (R, S)}`. The result has them for the tokens of each
                hypothesis, (B, K, T, ...). None, and the step returns two values.
        """

    def suppressed(self, vocabulary_size: tf.Tensor) -> tf.Tensor:
        """(V,) float32 to add to logits: minus infinity at PAD and START, else 0."""
        ids = tf.range(vocabulary_size)
        never = tf.logical_or(tf.equal(ids, self.pad_id), tf.equal(ids, self.start_id))
        return tf.where(never, -float("inf"), 0.0)


def length_penalty(length: tf.Tensor, alpha: float) -> tf.Tensor:
    """((5 + length) / 6)^alpha of GNMT (arXiv 1609.08144, equation 14), float32; END counts.

    >>> float(length_penalty(tf.constant(1), 0.6))
    1.0
    """
    return tf.pow((5.0 + tf.cast(length, tf.float32)) / 6.0, alpha)


def call_step(step: Step, token_ids: tf.Tensor, state: State, index: tf.Tensor) -> Any:
    """(logits, state, extras) of a step; no extras are an empty dictionary."""
    logits, state, *said = step(token_ids, state, index)
    return logits, state, said[0] if said else {}

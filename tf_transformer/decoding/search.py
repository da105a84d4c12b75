"""What a search is: it sees a step function, never a model."""

import abc
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tf_transformer.config import END_ID, PAD_ID, START_ID
from tf_transformer.decoding.arguments import check_number
from tf_transformer.decoding.rules import NONE, Rule, SoFar, is_something
from tf_transformer.decoding.scoring import LENGTH_PENALTIES, MAX_ALPHA, Scoring

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
    """The K best hypotheses of each of B rows: finished ones first, of each kind best first.

    A place that no hypothesis filled has length 0, only PAD, and score minus infinity.
    """

    token_ids: tf.Tensor  # (B, K, T) int32; PAD after END, no START
    lengths: tf.Tensor  # (B, K) int32; END counts
    scores: tf.Tensor  # (B, K) float32; log P as the rules weigh it / length penalty + coverage
    log_probs: tf.Tensor  # (B, K) float32; log P of the model, whatever the rules
    finished: tf.Tensor  # (B, K) bool; False where the limit came before END
    token_log_probs: tf.Tensor  # (B, K, T) float32; the model's, of each token; 0 at PAD
    extras: Extras  # name -> (B, K, T, ...); what the step said of each token, zeros at PAD


class RowOptions(NamedTuple):
    """What single rows ask for, as tensors, so that one graph serves all; None: as built."""

    alpha: tf.Tensor | None = None  # (B,) float32; outside of -10 to 10 the nearer of both
    num_beams: tf.Tensor | None = None  # (B,) int32; outside of 1 to K the nearer of both
    seeds: tf.Tensor | None = None  # (B,) int32; rows of one seed draw alike
    source_mask: tf.Tensor | None = None  # (B, S) bool, real source tokens; for coverage


class Call(NamedTuple):
    """One call of a search."""

    step: Step
    max_lengths: tf.Tensor  # (B,)
    longest: tf.Tensor  # ()
    scoring: Scoring
    num_beams: Any  # (B, 1) int32, or None where every row has K
    wanted: Any  # 1 to K, () int32 or a number; None for K
    seeds: Any  # (B,) int32, or None
    rules: tuple[Rule, ...]
    extras: Extras


class Search(abc.ABC):
    """A way to find good outputs, one graph for evaluation, SavedModel and LiteRT.

    Args:
        alpha: exponent of the length penalty, -10 to 10; 0 ranks by log P alone.
        length_penalty: a name of LENGTH_PENALTIES, `"gnmt"`, `"power"` or `"none"`.
        coverage_penalty: beta of GNMT's coverage penalty, at least 0; above it, each call needs
            `extras["attention"]` and `rows.source_mask`.
        rules: what every row obeys, in this order.
        start_id: stands at position 0, is never chosen.
        end_id: ends a hypothesis.
        pad_id: fills up, is never chosen.
    """

    num_beams: int

    def __init__(
        self,
        alpha: float = 0.6,
        *,
        length_penalty: str = "gnmt",
        coverage_penalty: float = 0.0,
        rules: Sequence[Rule] = (),
        start_id: int = START_ID,
        end_id: int = END_ID,
        pad_id: int = PAD_ID,
    ) -> None:
        check_number("alpha", alpha, -MAX_ALPHA, MAX_ALPHA)
        check_number("coverage_penalty", coverage_penalty, 0, MAX_ALPHA)
        if length_penalty not in list(LENGTH_PENALTIES):
            raise ValueError(
                f"`length_penalty` must be one of {', '.join(LENGTH_PENALTIES)}. "
                f"Received: length_penalty={length_penalty!r}"
            )
        self.alpha = float(alpha)
        self.length_penalty = length_penalty
        self.coverage_penalty = float(coverage_penalty)
        self.rules = tuple(rules)
        self.start_id = start_id
        self.end_id = end_id
        self.pad_id = pad_id

    def __call__(
        self,
        step: Step,
        state: State,
        max_lengths: tf.Tensor,
        *,
        extras: Extras | None = None,
        rows: RowOptions | None = None,
        rules: Sequence[Rule] = (),
        wanted: Any = None,
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
            rows: what single rows ask for; None for nothing.
            rules: of this call, such as a `ForcedPrefix`; after those of the search.
            wanted: so many of the K places are read, 1 to K, a number or () int32; None for all.
                They hold what they would anyhow. A search that can tell them sooner stops
                sooner, and what stands behind them is then whatever was found until then.
        """
        rows = rows or RowOptions()
        alpha, beams = self.alpha, None
        if rows.alpha is not None:
            alpha = tf.expand_dims(tf.clip_by_value(rows.alpha, -MAX_ALPHA, MAX_ALPHA), 1)
        if rows.num_beams is not None:
            beams = tf.expand_dims(tf.clip_by_value(rows.num_beams, 1, self.num_beams), 1)
        if self.coverage_penalty and (
            rows.source_mask is None or "attention" not in (extras or {})
        ):
            raise ValueError(
                "A `coverage_penalty` needs `rows.source_mask` and `extras` with `attention`. "
                f"Received: coverage_penalty={self.coverage_penalty}, extras={extras!r}"
            )
        call = Call(
            step,
            max_lengths,
            tf.reduce_max(tf.concat([max_lengths, [0]], 0)),
            Scoring(self.length_penalty, alpha, self.coverage_penalty, rows.source_mask),
            beams,
            wanted,
            rows.seeds,
            (*self.rules, *rules),
            extras or {},
        )
        return self.search(call, state)

    @abc.abstractmethod
    def search(self, call: Call, state: State) -> SearchResult:
        """What `__call__` does, its arguments put in order."""

    def weigh(
        self, call: Call, logits: tf.Tensor, token_ids: tf.Tensor, index: tf.Tensor
    ) -> tuple[tf.Tensor, Callable[[tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor | None]]]:
        """Compares the next tokens, and tells log-probabilities of those that were chosen.

        Args:
            call: has the rules.
            logits: (R, V).
            token_ids: (R, T), the hypotheses.
            index: (), their length.

        Returns:
            (R, V) to choose by, minus infinity where a token may not come, and a function: what
            stands there for the chosen (R, C), with their ids (R, C) -> log P as the rules weigh
            it and log P of the model (R, C). The second is None where there are no rules: it is
            the first.
        """
        normaliser = _normaliser(logits)
        never = self.suppressed(logits.shape[-1] or tf.shape(logits)[-1])
        if not call.rules:
            # No pass over (R, V) for log-probabilities of which a few are wanted.
            return logits + never, lambda best, _: (
                tf.where(is_something(best), best - normaliser, NONE),
                None,
            )
        log_probs = tf.where(is_something(logits), logits - normaliser, NONE)
        limits = tf.repeat(call.max_lengths, self.num_beams)
        so_far = SoFar(token_ids, index, limits, log_probs, self.num_beams, self.end_id)
        weights = log_probs
        for rule in call.rules:
            weights = rule(weights, so_far)
        return weights + never, lambda best, ids: (best, tf.gather(log_probs, ids, batch_dims=1))

    def suppressed(self, vocabulary_size: Any) -> Any:
        """(V,) float32 to add to logits: minus infinity at PAD and START, else 0."""
        if isinstance(vocabulary_size, int):  # a constant, not three operations over it a step
            never = np.isin(np.arange(vocabulary_size), (self.pad_id, self.start_id))
            return np.where(never, np.float32(NONE), np.float32(0))
        ids = tf.range(vocabulary_size)
        never = tf.logical_or(tf.equal(ids, self.pad_id), tf.equal(ids, self.start_id))
        return tf.where(never, -float("inf"), 0.0)


def _normaliser(logits: tf.Tensor) -> tf.Tensor:
    """log sum exp of (R, V), (R, 1), in fewer passes than TensorFlow's; NaN if all is forbidden."""
    highest = tf.reduce_max(logits, axis=-1, keepdims=True)
    total = tf.reduce_sum(tf.exp(logits - highest), axis=-1, keepdims=True)
    return highest + tf.math.log(total)


def call_step(step: Step, token_ids: tf.Tensor, state: State, index: tf.Tensor) -> Any:
    """(logits, state, extras) of a step; no extras are an empty dictionary."""
    logits, state, *said = step(token_ids, state, index)
    return logits, state, said[0] if said else {}

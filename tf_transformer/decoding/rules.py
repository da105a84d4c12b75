"""Rules on what may come next, and on how it is weighed; every search obeys the same ones.

A rule maps log-probabilities of the next token to what hypotheses are compared by. What it forbids
becomes minus infinity; what it leaves alone keeps the model's own value: nothing is normalised
again. A rule never raises anything above 0, which the searches' stopping builds on. Where rules and
model together leave a hypothesis nothing, it is dropped; a row that has no other has no result.

Core operations only: rules run inside every exported graph, LiteRT's too.
"""

import abc
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tf_transformer.config import END_ID, PAD_ID, START_ID
from tf_transformer.decoding.arguments import check_number, check_whole

NONE = -float("inf")  # what is forbidden; the score of a place that holds no hypothesis


def is_something(values: tf.Tensor) -> tf.Tensor:
    """Where `values` are not `NONE`: LiteRT's arithmetic makes the lowest float of infinity."""
    return values > -1e30


class SoFar(NamedTuple):
    """R = B * K hypotheses, before their next token."""

    token_ids: tf.Tensor  # (R, T) int32; PAD from `index` on
    index: tf.Tensor  # () int32, how many tokens each has
    max_lengths: tf.Tensor  # (R,) int32
    log_probs: tf.Tensor  # (R, V) float32, the model's own
    num_hypotheses: int  # K
    end_id: int

    def of_each(self, value: Any) -> Any:
        """A row's value (B, ...) for each of its hypotheses, (R, 1, ...); a number stays one."""
        if not tf.is_tensor(value) or value.shape.rank == 0:
            return value
        ones = [1] * (value.shape.rank - 1)
        tiled = tf.tile(tf.expand_dims(value, 1), [1, self.num_hypotheses, *ones])
        return tf.reshape(tiled, tf.concat([[-1, 1], tf.shape(value)[1:]], 0))

    def is_token(self, token_id: Any) -> tf.Tensor:
        """(1, V) or, for (R, 1) ids, (R, V) bool."""
        return tf.equal(tf.expand_dims(tf.range(tf.shape(self.log_probs)[1]), 0), token_id)

    def marked(self, token_ids: tf.Tensor, marks: tf.Tensor) -> tf.Tensor:
        """(R, V) bool: tokens that stand in (R, N) ids where (R, N) marks are True."""
        shape, count = tf.shape(self.log_probs), tf.shape(token_ids)[1]
        rows = tf.tile(tf.expand_dims(tf.range(shape[0]), 1), [1, count])
        places = tf.reshape(tf.stack([rows, token_ids], axis=2), [-1, 2])
        hits = tf.scatter_nd(places, tf.reshape(tf.cast(marks, tf.float32), [-1]), shape)
        return hits > 0.0


class Rule(abc.ABC):
    """Weighs the next token of each hypothesis; later rules have the last word."""

    @abc.abstractmethod
    def __call__(self, weights: tf.Tensor, so_far: SoFar) -> tf.Tensor:
        """(R, V) weights of the rules before -> (R, V), each 0 at most."""


class RepetitionPenalty(Rule):
    """The log-probability of a token that the hypothesis already has counts `penalty` times.

    CTRL's (arXiv 1909.05858, section 4.1), on log-probabilities, which unlike logits have a zero.

    Args:
        penalty: a number from 0.001 to 1000, or (B,) float32; above 1 to discourage.
    """

    def __init__(self, penalty: Any) -> None:
        if not tf.is_tensor(penalty):
            check_number("repetition_penalty", penalty, 1e-3, 1e3)
        self.penalty = penalty

    def __call__(self, weights: tf.Tensor, so_far: SoFar) -> tf.Tensor:
        """See `Rule`."""
        is_past = tf.range(tf.shape(so_far.token_ids)[1]) < so_far.index
        marks = tf.logical_or(tf.zeros_like(so_far.token_ids, tf.bool), is_past)
        seen = so_far.marked(so_far.token_ids, marks)
        return tf.where(seen, weights * so_far.of_each(self.penalty), weights)


class NoRepeatNgram(Rule):
    """No `size` tokens in a row come twice in a hypothesis (arXiv 1705.04304, section 2.5).

    Args:
        size: n, at least 1; 1 forbids every repetition.
    """

    def __init__(self, size: int) -> None:
        check_whole("no_repeat_ngram_size", size, 1)
        self.size = size

    def __call__(self, weights: tf.Tensor, so_far: SoFar) -> tf.Tensor:
        """See `Rule`."""
        context, width = self.size - 1, tf.shape(so_far.token_ids)[1]
        ids = tf.pad(so_far.token_ids, [[0, 0], [0, context]])
        starts = tf.range(width)
        # An n-gram begins at every place from which n tokens are there.
        same = tf.zeros_like(so_far.token_ids, tf.bool) | (starts + context < so_far.index)
        for place in range(context):
            newest = tf.gather(ids, tf.maximum(so_far.index - context + place, 0), axis=1)
            same &= tf.equal(ids[:, place : place + width], tf.expand_dims(newest, 1))
        return tf.where(so_far.marked(ids[:, context:], same), NONE, weights)


class SuppressedTokens(Rule):
    """Tokens that never come, such as UNK.

    Args:
        token_ids: whole numbers of at least 0.
    """

    def __init__(self, token_ids: Sequence[int]) -> None:
        for token_id in token_ids:
            check_whole("suppressed_ids", token_id, 0)
        self.token_ids = tuple(token_ids)

    def __call__(self, weights: tf.Tensor, so_far: SoFar) -> tf.Tensor:
        """See `Rule`."""
        for token_id in self.token_ids:
            weights = tf.where(so_far.is_token(token_id), NONE, weights)
        return weights


class MinimumLength(Rule):
    """END comes as token number `length` at the earliest.

    Args:
        length: a number, or (B,) int32; END counts. Where it is above the limit of a row, the row
            stays unfinished, unless END is forced after this rule.
    """

    def __init__(self, length: Any) -> None:
        if not tf.is_tensor(length):
            check_whole("min_length", length, 0)
        self.length = length

    def __call__(self, weights: tf.Tensor, so_far: SoFar) -> tf.Tensor:
        """See `Rule`."""
        too_early = so_far.index + 1 < so_far.of_each(self.length)
        return tf.where(so_far.is_token(so_far.end_id) & too_early, NONE, weights)


class EndAtLimit(Rule):
    """The last token that a row may have is END, at the model's own log-probability."""

    def __call__(self, weights: tf.Tensor, so_far: SoFar) -> tf.Tensor:
        """See `Rule`."""
        is_last = tf.expand_dims(so_far.index + 1 >= so_far.max_lengths, 1)
        only_end = tf.where(so_far.is_token(so_far.end_id), so_far.log_probs, NONE)
        return tf.where(is_last, only_end, weights)


class ForcedPrefix(Rule):
    """Each row begins with tokens of its own, at the model's own log-probabilities.

    They are a part of the hypothesis, of its length and of its score. A row whose limit is not
    above the length of its prefix stays unfinished.

    Args:
        token_ids: (B, P) int32, filled up with PAD. A prefix ends where PAD, START or END stands.
    """

    def __init__(
        self,
        token_ids: tf.Tensor,
        *,
        pad_id: int = PAD_ID,
        start_id: int = START_ID,
        end_id: int = END_ID,
    ) -> None:
        stops = [tf.equal(token_ids, one) for one in (pad_id, start_id, end_id)]
        stopped = tf.cumsum(tf.cast(tf.reduce_any(tf.stack(stops), axis=0), tf.int32), axis=1) > 0
        # One more column, so that there is one to look at behind the longest.
        self.token_ids = tf.pad(
            tf.where(stopped, -1, token_ids), [[0, 0], [0, 1]], constant_values=-1
        )

    def __call__(self, weights: tf.Tensor, so_far: SoFar) -> tf.Tensor:
        """See `Rule`."""
        place = tf.minimum(so_far.index, tf.shape(self.token_ids)[1] - 1)
        wanted = so_far.of_each(tf.gather(self.token_ids, place, axis=1))  # (R, 1)
        only = tf.where(so_far.is_token(wanted), so_far.log_probs, NONE)
        return tf.where(wanted < 0, weights, only)


# In the order in which they make sense: the last has the last word.
RULES = {
    "repetition_penalty": RepetitionPenalty,
    "no_repeat_ngram_size": NoRepeatNgram,
    "suppressed_ids": SuppressedTokens,
    "min_length": MinimumLength,
    "end_at_limit": EndAtLimit,
    "prefix": ForcedPrefix,
}

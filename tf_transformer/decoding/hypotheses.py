"""What beam search holds in its hands: open hypotheses, finished ones, their continuations."""

from typing import Any, NamedTuple

import tensorflow as tf

NONE = -float("inf")  # the score of a place that holds no hypothesis


class History(NamedTuple):
    """What hypotheses are made of, token by token."""

    token_ids: tf.Tensor  # (B, K, T)
    log_probs: tf.Tensor  # (B, K, T)
    speakers: Any  # (B, K, T), which live hypothesis each token was appended to; else ()


class Live(NamedTuple):
    """Hypotheses without END, best first; all of a row are equally long."""

    history: History
    log_probs: tf.Tensor  # (B, K)
    tokens: tf.Tensor  # (B, K), the newest of each
    lengths: tf.Tensor  # (B,)


class Pool(NamedTuple):
    """Hypotheses that reached END, best normalised score first."""

    history: History
    log_probs: tf.Tensor  # (B, K)
    scores: tf.Tensor  # (B, K)
    lengths: tf.Tensor  # (B, K)


class Candidates(NamedTuple):
    """The M = 2K best one-token continuations of a row, best first."""

    log_probs: tf.Tensor  # (B, M)
    gains: tf.Tensor  # (B, M), log P of the token alone
    parents: tf.Tensor  # (B, M), which live hypothesis
    tokens: tf.Tensor  # (B, M)


def columns(history: History, token_ids: Any, log_probs: Any, speakers: Any) -> History:
    """One token of each of the hypotheses, with what `history` keeps."""
    return History(token_ids, log_probs, speakers if tf.is_tensor(history.speakers) else ())

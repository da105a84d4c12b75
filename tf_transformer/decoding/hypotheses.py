"""What beam search holds in its hands: open hypotheses, finished ones, their continuations."""

from typing import Any, NamedTuple

import tensorflow as tf

from tf_transformer.decoding.buffers import pick
from tf_transformer.decoding.rules import NONE, is_something


class History(NamedTuple):
    """What hypotheses are made of, token by token."""

    token_ids: tf.Tensor  # (B, K, T)
    log_probs: tf.Tensor  # (B, K, T), the model's
    speakers: Any  # (B, K, T), which live hypothesis each token was appended to; else ()

    def column(self, token_ids: Any, log_probs: Any, speakers: Any) -> "History":
        """One token of each, with what this history keeps."""
        return History(token_ids, log_probs, speakers if tf.is_tensor(self.speakers) else ())


class Live(NamedTuple):
    """Hypotheses without END, best first; all of a row are equally long."""

    history: History
    ranks: tf.Tensor  # (B, K), log P as the rules weigh it
    log_probs: Any  # (B, K), log P; () where there are no rules
    tokens: tf.Tensor  # (B, K), the newest of each
    lengths: tf.Tensor  # (B,)
    attention: Any  # (B, K, S), the sum over their tokens where coverage counts; else ()


class Pool(NamedTuple):
    """Hypotheses that reached END, best score first."""

    history: History
    ranks: tf.Tensor  # (B, K)
    log_probs: Any  # (B, K); () where there are no rules
    scores: tf.Tensor  # (B, K)
    lengths: tf.Tensor  # (B, K)


class Candidates(NamedTuple):
    """The M = 2K best one-token continuations of a row, best first."""

    ranks: tf.Tensor  # (B, M)
    log_probs: Any  # (B, M); () where there are no rules
    gains: tf.Tensor  # (B, M), log P of the token alone, the model's
    parents: tf.Tensor  # (B, M), which live hypothesis
    tokens: tf.Tensor  # (B, M)


def start_hypotheses(empty: History, start_id: int, with_rules: bool, attention: Any) -> Any:
    """One open hypothesis without tokens a row, and an empty pool.

    Args:
        empty: (B, K, T), nothing but PAD.
        start_id: stands before the first token.
        with_rules: whether log P is kept beside what the rules make of it.
        attention: zeros (B, K, S), or ().
    """
    batch, beams = tf.shape(empty.token_ids)[0], empty.token_ids.shape[1]
    # K equal ones would stay K copies.
    only_first = tf.tile([[0.0] + [NONE] * (beams - 1)], [batch, 1])
    only_first = tf.ensure_shape(only_first, [None, beams])
    nothing = tf.fill([batch, beams], NONE)
    live = Live(
        empty,
        only_first,
        only_first if with_rules else (),
        tf.fill([batch, beams], start_id),
        tf.zeros([batch], tf.int32),
        attention,
    )
    lengths = tf.zeros([batch, beams], tf.int32)
    return live, Pool(empty, nothing, nothing if with_rules else (), nothing, lengths)


def finished_then_open(pool: Pool, still_open: Pool, pad_id: int, num_beams: Any) -> Any:
    """The K hypotheses of each row: those of the pool, then the best open ones, then nothing.

    Args:
        pool: best first.
        still_open: what did not end, as if it were a pool; best first.
        pad_id: of the places that stay empty.
        num_beams: (B, 1), how many of the K places a row has; None for all.

    Returns:
        The places as a Pool, and (B, K) bool, which of them are finished.
    """
    ended = is_something(pool.scores)  # (B, K)
    count = tf.reduce_sum(tf.cast(ended, tf.int32), axis=1, keepdims=True)
    beams = pool.scores.shape[1]
    place = tf.expand_dims(tf.range(beams), 0)  # (1, K)
    take = tf.where(place < count, place, place - count + beams)
    both = tf.nest.map_structure(lambda *pair: tf.concat(pair, 1), pool, still_open)
    found = pick(both, take)
    is_found = is_something(found.scores)
    if num_beams is not None:
        is_found &= place < num_beams

    def or_else(x: tf.Tensor, nothing: Any) -> tf.Tensor:
        ones = [1] * (x.shape.rank - 2)
        return tf.where(tf.reshape(is_found, [-1, beams, *ones]), x, nothing)

    nowhere = tf.nest.map_structure(lambda _: 0, found.history.speakers)
    unknown = tf.nest.map_structure(lambda _: NONE, found.log_probs)
    blank = Pool(History(pad_id, 0.0, nowhere), NONE, unknown, NONE, 0)
    return tf.nest.map_structure(or_else, found, blank), is_found & (place < count)

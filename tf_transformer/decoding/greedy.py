"""Greedy search: the best token, position by position."""

from typing import Any, NamedTuple

import tensorflow as tf

from tf_transformer.decoding.search import (
    Search,
    SearchResult,
    State,
    Step,
    length_penalty,
    shape_invariants,
    write,
)

_NONE = -float("inf")  # log P of a row that came to where nothing may follow


class Path(NamedTuple):
    """The one hypothesis of each row."""

    token_ids: tf.Tensor  # (B, T)
    log_probs: tf.Tensor  # (B,)
    tokens: tf.Tensor  # (B,), the newest of each
    finished: tf.Tensor  # (B,), END was chosen
    done: tf.Tensor  # (B,), finished or at the limit


class GreedySearch(Search):
    """Takes the most likely token until END; of equal ones the lowest id. K is 1.

    >>> table = tf.math.log([[0.1, 0.1, 0.1, 0.1, 0.6], [0, 0, 0, 1, 0]])
    >>> def step(token_ids, state, index):  # id 4, then END
    ...     return tf.gather(table, tf.where(token_ids == 4, 1, 0)), state
    >>> GreedySearch()(step, (), tf.constant([9])).token_ids.numpy()[0, 0, :3].tolist()
    [4, 3, 0]
    """

    num_beams = 1

    def __call__(self, step: Step, state: State, max_lengths: tf.Tensor) -> SearchResult:
        """See `Search`."""
        batch = tf.shape(max_lengths)[0]
        longest = tf.reduce_max(tf.concat([max_lengths, [0]], 0))

        def going(index: tf.Tensor, path: Path, _: State) -> tf.Tensor:
            return tf.logical_and(index < longest, tf.logical_not(tf.reduce_all(path.done)))

        def body(index: tf.Tensor, path: Path, state: State) -> Any:
            logits, state = step(path.tokens, state, index)
            return index + 1, self._longer(path, logits, index, max_lengths), state

        path = Path(
            tf.fill([batch, longest], self.pad_id),
            tf.zeros([batch]),
            tf.fill([batch], self.start_id),
            tf.zeros([batch], tf.bool),
            max_lengths < 1,
        )
        start = tf.constant(0), path, state
        _, path, _ = tf.while_loop(going, body, start, shape_invariants=shape_invariants(start))
        return self._result(path)

    def _longer(
        self, path: Path, logits: tf.Tensor, index: tf.Tensor, max_lengths: tf.Tensor
    ) -> Path:
        allowed = logits + self.suppressed(tf.shape(logits)[-1])
        best = tf.argmax(allowed, axis=-1, output_type=tf.int32)
        highest = tf.gather(allowed, best, batch_dims=1)
        possible = highest > _NONE
        gain = tf.where(possible, highest - tf.reduce_logsumexp(logits, axis=-1), _NONE)
        # A row that is done keeps what it has while its neighbours go on.
        tokens = tf.where(path.done, self.pad_id, best)
        ends = ~path.done & possible & tf.equal(best, self.end_id)
        return Path(
            write(path.token_ids, index, tokens),
            path.log_probs + tf.where(path.done, 0.0, gain),
            tokens,
            path.finished | ends,
            path.done | ends | ~possible | (index + 1 >= max_lengths),
        )

    def _result(self, path: Path) -> SearchResult:
        is_found = tf.expand_dims(path.log_probs > _NONE, 1)
        token_ids = tf.where(is_found, path.token_ids, self.pad_id)
        is_token = tf.cast(tf.not_equal(token_ids, self.pad_id), tf.int32)
        lengths = tf.reduce_sum(is_token, axis=1)
        scores = path.log_probs / length_penalty(lengths, self.alpha)
        parts = (token_ids, lengths, scores, path.log_probs, path.finished)
        return SearchResult(*(tf.expand_dims(part, 1) for part in parts))

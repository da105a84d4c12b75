"""Greedy search: the best token, position by position."""

from typing import Any

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

        def going(index: tf.Tensor, tokens: Any, log_probs: Any, ids: Any, done: tf.Tensor, *_: Any):
            return tf.logical_and(index < longest, tf.logical_not(tf.reduce_all(done)))

        def body(index, tokens, log_probs, token_ids, done, finished, state):
            logits, state = step(tokens, state, index)
            allowed = logits + self.suppressed(tf.shape(logits)[-1])
            best = tf.argmax(allowed, axis=-1, output_type=tf.int32)
            highest = tf.gather(allowed, best, batch_dims=1)
            # Where nothing is allowed there is no hypothesis: minus infinity, never NaN.
            possible = highest > -float("inf")
            gain = tf.where(possible, highest - tf.reduce_logsumexp(logits, axis=-1), highest)
            tokens = tf.where(done, self.pad_id, best)
            log_probs = log_probs + tf.where(done, 0.0, gain)
            token_ids = write(token_ids, index, tokens)
            finished = finished | (~done & possible & tf.equal(best, self.end_id))
            done = done | finished | ~possible | (index + 1 >= max_lengths)
            return index + 1, tokens, log_probs, token_ids, done, finished, state

        start = (
            tf.constant(0),
            tf.fill([batch], self.start_id),
            tf.zeros([batch]),
            tf.fill([batch, longest], self.pad_id),
            max_lengths < 1,
            tf.zeros([batch], tf.bool),
            state,
        )
        _, _, log_probs, token_ids, _, finished, _ = tf.while_loop(
            going, body, start, shape_invariants=shape_invariants(start)
        )
        found = tf.expand_dims(log_probs > -float("inf"), 1)
        token_ids = tf.where(found, token_ids, self.pad_id)
        is_token = tf.cast(tf.not_equal(token_ids, self.pad_id), tf.int32)
        lengths = tf.reduce_sum(is_token, axis=1)
        scores = log_probs / length_penalty(lengths, self.alpha)
        best_only = [tf.expand_dims(x, 1) for x in (token_ids, lengths, scores, log_probs, finished)]
        return SearchResult(*best_only)

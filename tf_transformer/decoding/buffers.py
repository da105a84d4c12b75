"""What a search writes while its loop runs: buffers of fixed size, and what a step says beside."""

from typing import Any

import tensorflow as tf

# Nested tensors; every function here maps over the structure.
Nested = Any


def shape_invariants(loop_variables: Nested) -> Nested:
    """For `tf.while_loop`: batch free, and free every axis that starts at 0 (growing caches)."""

    def free(tensor: tf.Tensor) -> tf.TensorShape:
        sizes = tensor.shape.as_list()
        return tf.TensorShape(
            [None if i == 0 or not size else size for i, size in enumerate(sizes)]
        )

    return tf.nest.map_structure(free, loop_variables)


def write(buffers: Nested, index: tf.Tensor, columns: Nested) -> Nested:
    """Each buffer (..., T) with its column (...) at position `index` of the last axis."""
    first = tf.nest.flatten(buffers)[0]
    here = tf.equal(tf.range(tf.shape(first)[-1]), index)
    return tf.nest.map_structure(
        lambda buffer, column: tf.where(here, tf.expand_dims(column, -1), buffer), buffers, columns
    )


def pick(tensors: Nested, places: tf.Tensor) -> Nested:
    """Each tensor (B, N, ...) at `places` (B, M) -> (B, M, ...)."""
    return tf.nest.map_structure(lambda x: tf.gather(x, places, batch_dims=1), tensors)


def reorder(state: Nested, parents: tf.Tensor) -> Nested:
    """Every tensor of a state (R, ...) in the order of the surviving hypotheses (B, K)."""
    batch, beams = tf.shape(parents)[0], parents.shape[1]
    rows = tf.reshape(tf.expand_dims(tf.range(batch) * beams, 1) + parents, [-1])
    return tf.nest.map_structure(lambda x: tf.gather(x, rows), state)


def empty_extras(extras: dict[str, tf.Tensor] | None, rows: int, longest: tf.Tensor) -> Nested:
    """Zeros (B, T, `rows`, ...) for what each step says of the `rows` hypotheses of a row."""

    def zeros(example: tf.Tensor) -> tf.Tensor:
        shape = tf.shape(example)
        shape = tf.concat([[shape[0] // rows, longest, rows], shape[1:]], 0)
        return tf.ensure_shape(
            tf.zeros(shape, example.dtype), [None, None, rows, *example.shape[1:]]
        )

    return {name: zeros(example) for name, example in (extras or {}).items()}


def write_extras(buffers: Nested, index: tf.Tensor, said: dict[str, tf.Tensor]) -> Nested:
    """The buffers with what a step said, (R, ...) each, at step `index`."""
    if set(buffers) != set(said):
        raise ValueError(
            "The step function must return, third, what the search was called with as `extras`. "
            f"Received: {sorted(said)}, expected {sorted(buffers)}"
        )

    def put(buffer: tf.Tensor, new: tf.Tensor) -> tf.Tensor:
        steps = tf.range(tf.shape(buffer)[1])
        here = tf.reshape(tf.equal(steps, index), [1, -1] + [1] * (buffer.shape.rank - 2))
        shape = tf.shape(buffer)
        return tf.where(here, tf.reshape(new, tf.concat([shape[:1], [1], shape[2:]], 0)), buffer)

    return {name: put(buffer, said[name]) for name, buffer in buffers.items()}


def follow_extras(buffers: Nested, speakers: tf.Tensor, lengths: tf.Tensor) -> Nested:
    """What was said of each hypothesis' tokens, (B, K, T, ...), zeros after its end.

    Args:
        buffers: of `write_extras`, (B, T, N, ...).
        speakers: (B, K, T) int32, which of the N hypotheses of step t token t grew out of.
        lengths: (B, K).
    """
    by_step = tf.transpose(speakers, [0, 2, 1])  # (B, T, K)
    is_token = tf.sequence_mask(lengths, tf.shape(speakers)[2])  # (B, K, T)

    def follow(buffer: tf.Tensor) -> tf.Tensor:
        said = tf.gather(buffer, by_step, batch_dims=2)  # (B, T, K, ...)
        axes = [0, 2, 1, *range(3, buffer.shape.rank)]
        real = tf.reshape(
            is_token, tf.concat([tf.shape(is_token), [1] * (buffer.shape.rank - 3)], 0)
        )
        return tf.where(real, tf.transpose(said, axes), tf.zeros([], buffer.dtype))

    return {name: follow(buffer) for name, buffer in buffers.items()}

"""What a token costs, its gradient, and which tokens count."""

from typing import Any, TypeAlias

import keras
from keras import ops

from tf_transformer.config import PAD_ID

Tensor: TypeAlias = keras.KerasTensor


def live_mask(labels: Tensor, logits: Tensor) -> Tensor:
    """Which places count, (B, T) bool: no pads, and none that a mask of Keras on `logits` hides."""
    mask = ops.not_equal(labels, PAD_ID)
    carried = getattr(logits, "_keras_mask", None)
    return mask if carried is None else ops.logical_and(mask, ops.cast(carried, "bool"))


def token_cost(
    labels: Tensor, logits: Tensor, mask: Tensor, label_smoothing: float = 0.0
) -> Tensor:
    """The cost of each place in nats, 0 where `mask` is False: (B, T) float32.

    -(1 - eps) log p(label) - eps / V * sum_v log p(v), in float32 and without a one-hot. What
    stands at a masked place, NaN even, reaches neither cost nor gradient.

    Args:
        labels: ids (B, T), integer.
        logits: (B, T, V), any float.
        mask: (B, T) bool, True = counts.
        label_smoothing: eps; with 0 this is the negative log-likelihood.

    >>> labels, mask = ops.array([[4]]), ops.array([[True]])
    >>> f"{float(token_cost(labels, ops.zeros((1, 1, 8)), mask)[0, 0]):.4f}"  # ln 8
    '2.0794'
    """
    labels, logits = ops.cast(labels, "int32"), ops.cast(logits, "float32")
    if keras.backend.backend() == "tensorflow":
        return _tensorflow_cost(labels, logits, mask, label_smoothing)
    logits = ops.where(ops.expand_dims(mask, -1), logits, 0.0)  # a select: no NaN gets through
    chosen = ops.squeeze(ops.take_along_axis(logits, ops.expand_dims(labels, -1), axis=-1), -1)
    target = (1 - label_smoothing) * chosen + label_smoothing * ops.mean(logits, axis=-1)
    return ops.where(mask, ops.logsumexp(logits, axis=-1) - target, 0.0)


def _tensorflow_cost(labels: Tensor, logits: Tensor, mask: Tensor, label_smoothing: float) -> Any:
    """The same by TensorFlow's fused kernel, which gives softmax - one-hot on the way.

    Half the passes over (B, T, V) of what the tape would record, and no copy for the mask.
    """
    import tensorflow as tf

    @tf.custom_gradient
    def cost(logits: tf.Tensor) -> Any:
        size = tf.shape(logits)[-1]
        flat, ids = tf.reshape(logits, [-1, size]), tf.reshape(labels, [-1])
        live = tf.reshape(mask, [-1])
        nll, softmax_less_one_hot = tf.raw_ops.SparseSoftmaxCrossEntropyWithLogits(
            features=flat, labels=ids
        )
        value = nll
        if label_smoothing:
            chosen = tf.gather(flat, ids, batch_dims=1)
            value = nll + label_smoothing * (chosen - tf.reduce_mean(flat, axis=-1))

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            # softmax - (1 - eps) one-hot - eps / V, times the upstream of live places
            weight = tf.where(live, tf.reshape(upstream, [-1]), 0.0)
            uniform = label_smoothing / tf.cast(size, tf.float32)
            column = tf.expand_dims(weight, -1)
            result = tf.math.multiply_no_nan(softmax_less_one_hot - uniform, column)
            if label_smoothing:
                places = tf.stack([tf.range(tf.size(ids)), ids], axis=1)
                result = tf.tensor_scatter_nd_add(result, places, label_smoothing * weight)
            return tf.reshape(result, tf.shape(logits))

        return tf.reshape(tf.where(live, value, 0.0), tf.shape(labels)), gradient

    return cost(logits)

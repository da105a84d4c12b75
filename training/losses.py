"""Cross entropy with label smoothing over real tokens (section 5.4)."""

from typing import Any, TypeAlias

import keras
from keras import ops

from tf_transformer.config import PAD_ID

Tensor: TypeAlias = keras.KerasTensor


def token_nll(labels: Tensor, logits: Tensor) -> Tensor:
    """-log p(label) of every place: ids (B, T) and logits (B, T, V) -> (B, T) float32, unsmoothed.

    >>> token_nll(ops.array([[4]]), ops.zeros((1, 1, 8))).numpy().round(4).tolist()
    [[2.0794]]
    """
    logits = ops.cast(logits, "float32")
    return keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)


def live_tokens(labels: Tensor, logits: Tensor) -> tuple[Tensor, Tensor]:
    """Which places count, (B, T) bool, and the logits with zeros at the others.

    A mask that Keras carries on the logits hides places too. What stands at a pad, NaN even,
    reaches neither loss nor gradient: it is deselected, not multiplied by 0.
    """
    mask = ops.not_equal(labels, PAD_ID)
    carried = getattr(logits, "_keras_mask", None)
    if carried is not None:
        mask = ops.logical_and(mask, ops.cast(carried, "bool"))
    return mask, ops.where(ops.expand_dims(mask, -1), ops.cast(logits, "float32"), 0.0)


@keras.saving.register_keras_serializable("tf_transformer")
class SmoothedCrossEntropy(keras.losses.Loss):
    """Mean over real target tokens of the label-smoothed cross entropy.

    A token costs -(1 - eps) log p(label) - eps / V * sum_v log p(v): the mass eps is spread over
    all V classes, as in Keras (tensor2tensor spreads it over the V - 1 others). No one-hot of
    (B, T, V) is made. The sum is divided by the number of real tokens of the whole batch, over all
    replicas under a `tf.distribute` strategy; a batch without one costs 0.

    Args:
        label_smoothing: eps, 0.1 in the paper. Perplexity is of the unsmoothed loss: see
            `training.metrics`.

    Call arguments:
        y_true: ids (B, T) integer, 0 = pad.
        y_pred: logits (B, T, V), any float; the arithmetic is float32.
        sample_weight: (B,), (B, 1) or (B, T) further weights of the tokens.

    >>> loss = SmoothedCrossEntropy(label_smoothing=0.1)
    >>> logits = ops.array([[[4.0, 1.0, 0.0, -1.0, 0.0], [0.0, 4.0, 1.0, 0.0, -1.0]]])
    >>> f"{float(loss(ops.array([[0, 1]]), logits)):.6f}"  # place 0 is a pad
    '0.409069'
    """

    def __init__(
        self,
        label_smoothing: float = 0.1,
        name: str = "smoothed_cross_entropy",
        reduction: str = "sum_over_batch_size",
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, reduction=reduction, **kwargs)
        if not 0 <= label_smoothing < 1:
            raise ValueError(
                "`label_smoothing` must be at least 0 and below 1. "
                f"Received: label_smoothing={label_smoothing!r}"
            )
        self.label_smoothing = label_smoothing

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """The cost of every place (B, T) float32, 0 at pads."""
        mask, logits = live_tokens(y_true, y_pred)
        cost = token_nll(y_true, logits)
        if self.label_smoothing:
            uniform = ops.logsumexp(logits, axis=-1) - ops.mean(logits, axis=-1)
            cost = (1 - self.label_smoothing) * cost + self.label_smoothing * uniform
        return ops.where(mask, cost, 0.0)

    def __call__(self, y_true: Tensor, y_pred: Tensor, sample_weight: Any = None) -> Tensor:
        """The mean cost of a real token, a float32 scalar; see `reduction` of Keras for others."""
        y_true = ops.convert_to_tensor(y_true)
        cost = self.call(y_true, y_pred)
        mask, _ = live_tokens(y_true, y_pred)
        weights = ops.cast(mask, "float32")
        if sample_weight is not None:
            given = ops.cast(sample_weight, "float32")
            weights = weights * (ops.expand_dims(given, -1) if len(given.shape) == 1 else given)
        if self.reduction in (None, "none"):
            return cost * weights
        total = ops.sum(cost * weights)
        if self.reduction == "sum":
            return total
        return ops.divide_no_nan(total, _over_replicas(ops.sum(weights)))

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {**super().get_config(), "label_smoothing": self.label_smoothing}


def _over_replicas(count: Tensor) -> Tensor:
    # Keras sums the gradients of the replicas; each must divide by the tokens of all of them.
    if keras.backend.backend() != "tensorflow":
        return count
    import tensorflow as tf

    replica = tf.distribute.get_replica_context()
    if replica is None or replica.num_replicas_in_sync == 1:
        return count
    return replica.all_reduce(tf.distribute.ReduceOp.SUM, count)

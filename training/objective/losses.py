"""Cross entropy with label smoothing over real tokens (section 5.4)."""

from typing import Any, TypeAlias

import keras
from keras import ops

from .cross_entropy import live_mask, token_cost

Tensor: TypeAlias = keras.KerasTensor


@keras.saving.register_keras_serializable("tf_transformer")
class SmoothedCrossEntropy(keras.losses.Loss):
    """Mean over real target tokens of the label-smoothed cross entropy.

    A token costs -(1 - eps) log p(label) - eps / V * sum_v log p(v): the mass eps is spread over
    all V classes, as in Keras (tensor2tensor spreads it over the V - 1 others). No one-hot of
    (B, T, V) is made. The sum is divided by the number of real tokens of the whole batch, over all
    replicas under a `tf.distribute` strategy; a batch without one costs 0.

    Args:
        label_smoothing: eps, 0.1 in the paper. Perplexity is of the unsmoothed loss: see
            `training.objective.metrics`.

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
        y_true = ops.convert_to_tensor(y_true)
        mask = live_mask(y_true, y_pred)
        return token_cost(y_true, y_pred, mask, self.label_smoothing)

    def __call__(self, y_true: Tensor, y_pred: Tensor, sample_weight: Any = None) -> Tensor:
        """The mean cost of a real token, a float32 scalar; see `reduction` of Keras for others."""
        y_true = ops.convert_to_tensor(y_true)
        cost = self.call(y_true, y_pred)
        weights = ops.cast(live_mask(y_true, y_pred), "float32")
        if sample_weight is not None:
            given = ops.cast(sample_weight, "float32")
            weights = weights * (ops.expand_dims(given, -1) if len(given.shape) == 1 else given)
        if self.reduction in (None, "none"):
            return cost * weights
        total = ops.sum(cost * weights)
        if self.reduction == "sum":
            return total
        return ops.divide_no_nan(total, over_replicas(ops.sum(weights)))

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {**super().get_config(), "label_smoothing": self.label_smoothing}


def over_replicas(values: Any) -> Any:
    """The sums of tensors over all replicas of a `tf.distribute` strategy, if there is one."""
    # Keras sums the gradients of the replicas; each must divide by the tokens of all of them.
    if keras.backend.backend() != "tensorflow":
        return values
    import tensorflow as tf

    replica = tf.distribute.get_replica_context()
    if replica is None or replica.num_replicas_in_sync == 1:
        return values
    # Copied, as TensorFlow wants to know the device of each, and a constant has none.
    here = tf.nest.map_structure(tf.identity, values)
    return replica.all_reduce(tf.distribute.ReduceOp.SUM, here)

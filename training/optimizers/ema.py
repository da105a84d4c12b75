"""Exponential moving averages of the weights, kept by the optimizer."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import keras
from keras import ops


class KeepsAverage:
    """For Keras optimizers: what `use_ema=True` averages, and that `fit` leaves the weights alone.

    After update n (from 1) the average moves towards the weights by max(1 - d, 10 / (n + 9)), d the
    `ema_momentum`: the first average is the first weights, so nothing of the start stays in it,
    and until d takes over it spans about the last tenth of the updates. Keras's own begins at the
    first weights with d at once, and its `fit` ends by writing the average over the weights: a
    run could not go on from there. A step that loss scaling skips moves nothing.
    """

    use_ema: bool
    ema_momentum: float
    iterations: Any
    _model_variables_moving_average: list[Any]

    def _update_model_variables_moving_average(self, trainable_variables: Sequence[Any]) -> None:
        if not self.use_ema:
            return
        before = ops.cast(self.iterations, "float32")  # updates before this one, n - 1
        step = ops.maximum(1.0 - self.ema_momentum, 10.0 / (before + 10.0))
        averages = self._model_variables_moving_average
        for weight, average in zip(trainable_variables, averages, strict=True):
            average.assign(average + ops.cast(step, average.dtype) * (weight - average))

    def finalize_variable_values(self, var_list: Sequence[Any]) -> None:
        """Leaves the weights as they are; `averaged_weights` lends the average."""


@contextmanager
def averaged_weights(model: keras.Model) -> Iterator[None]:
    """Inside, the model has its average for weights; without one, nothing changes.

    What stood there is put back bit by bit, whatever happens inside.
    """
    optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    # Through NumPy: under a strategy these are no variables of one device.
    if not optimizer.use_ema or int(ops.convert_to_numpy(optimizer.iterations)) == 0:
        yield
        return
    weights = optimizer._trainable_variables
    kept = [ops.convert_to_numpy(weight) for weight in weights]
    try:
        for weight, average in zip(weights, optimizer._model_variables_moving_average, strict=True):
            weight.assign(average.value)
        yield
    finally:
        for weight, value in zip(weights, kept, strict=True):
            weight.assign(value)

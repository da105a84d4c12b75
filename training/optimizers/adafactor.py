"""Adafactor (Shazeer and Stern 2018, arXiv 1804.04235): second moments in rows and columns."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import keras
from keras import ops

from .ema import KeepsAverage

Tensor: TypeAlias = keras.KerasTensor


@keras.saving.register_keras_serializable("tf_transformer")
class Adafactor(KeepsAverage, keras.optimizers.Optimizer):
    """Algorithms 4 and 5 of the paper, without momentum: n + m numbers for an n x m matrix.

    Keras's own keeps the whole second moment of a matrix beside its factors, so that it needs
    more memory than it should, and cuts any rate at 1 / sqrt(update), a schedule's too.

    Args:
        learning_rate: number or schedule, rho of the paper; its choice is min(0.01, 1 / sqrt(n))
            for update n, with warm-up `InverseSquareRoot(0.01, 10_000)`.
        relative_step: multiply the rate by the size of the weight, max(`epsilon_2`, RMS) (section
            8). Without it the rate is an absolute one, as Adam's.
        beta_2_decay: the second moment decays by 1 - n^beta_2_decay (section 7.2).
        epsilon_1: added to the squared gradient.
        epsilon_2: least size of a weight.
        clip_threshold: d, most root mean square of an update (section 6).
        kwargs: of `keras.optimizers.Optimizer`.
    """

    def __init__(
        self,
        learning_rate: Any = 0.01,
        relative_step: bool = True,
        beta_2_decay: float = -0.8,
        epsilon_1: float = 1e-30,
        epsilon_2: float = 1e-3,
        clip_threshold: float = 1.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.relative_step = relative_step
        self.beta_2_decay = beta_2_decay
        self.epsilon_1 = epsilon_1
        self.epsilon_2 = epsilon_2
        self.clip_threshold = clip_threshold

    def build(self, variables: Sequence[keras.Variable]) -> None:
        """Makes the moments: of rows and of columns for what has two axes or more, else whole."""
        if self.built:
            return
        super().build(variables)
        self._moments = [self._make_moments(variable) for variable in variables]

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Changes one variable and its moments."""
        # A looked-up table has a sparse gradient; a row that occurs twice must be added up first.
        gradient = ops.cast(_dense(gradient), variable.dtype)
        update = ops.cast(self.iterations + 1, variable.dtype)
        decay = 1 - ops.power(update, self.beta_2_decay)
        moments = self._moments[self._get_variable_index(variable)]
        squares = ops.square(gradient) + self.epsilon_1
        # Means where the paper has sums: the same quotient, of numbers of a moderate size.
        axes = (-1, -2) if len(moments) == 2 else (None,)
        for moment, axis in zip(moments, axes, strict=True):
            seen = squares if axis is None else ops.mean(squares, axis)
            self.assign(moment, decay * moment + (1 - decay) * seen)
        if len(moments) == 2:
            rows, columns = (ops.convert_to_tensor(moment) for moment in moments)
            rows = rows / ops.mean(rows, axis=-1, keepdims=True)
            rows = ops.maximum(rows, self.epsilon_1)  # beside a huge row, one of zeros is 0
            change = gradient * ops.rsqrt(rows)[..., None] * ops.rsqrt(columns)[..., None, :]
        else:
            change = gradient * ops.rsqrt(ops.convert_to_tensor(moments[0]))
        change = change / ops.maximum(1.0, _root_mean_square(change) / self.clip_threshold)
        rate = ops.cast(learning_rate, variable.dtype)
        if self.relative_step:
            rate = rate * ops.maximum(self.epsilon_2, _root_mean_square(variable))
        self.assign_sub(variable, rate * change)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "relative_step": self.relative_step,
            "beta_2_decay": self.beta_2_decay,
            "epsilon_1": self.epsilon_1,
            "epsilon_2": self.epsilon_2,
            "clip_threshold": self.clip_threshold,
        }

    def _make_moments(self, variable: keras.Variable) -> list[keras.Variable]:
        if len(variable.shape) < 2:
            return [self.add_variable_from_reference(variable, name="square")]
        rows, columns = variable.shape[:-1], (*variable.shape[:-2], variable.shape[-1])
        return [
            self.add_variable(rows, dtype=variable.dtype, name=f"{variable.name}_rows"),
            self.add_variable(columns, dtype=variable.dtype, name=f"{variable.name}_columns"),
        ]


def _root_mean_square(values: Any) -> Tensor:
    return ops.sqrt(ops.mean(ops.square(values)))


def _dense(gradient: Any) -> Tensor:
    if keras.backend.backend() != "tensorflow":
        return gradient
    import tensorflow as tf

    return tf.convert_to_tensor(gradient)

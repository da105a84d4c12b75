"""Adam as section 5.3 uses it, in one pass over the weights, and what else a recipe may name."""

from collections.abc import Sequence
from typing import Any

import keras

from .adafactor import Adafactor
from .ema import KeepsAverage


@keras.saving.register_keras_serializable("tf_transformer")
class FusedAdam(KeepsAverage, keras.optimizers.Adam):
    """Keras's Adam, update by update the same, through TensorFlow's fused kernel.

    Keras makes some ten passes over weights, gradient and moments; the kernel makes one. Where it
    cannot be used (another backend, `amsgrad`, a `tf.distribute` strategy) Keras's own code runs.

    Args: those of `keras.optimizers.Adam`; the paper has `beta_1=0.9`, `beta_2=0.98` and
        `epsilon=1e-9`. What `use_ema` does is told in `training.optimizers.ema`.
    """

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Changes one variable and its moments."""
        if self.amsgrad or not _has_kernel():
            super().update_step(gradient, variable, learning_rate)
            return
        import tensorflow as tf

        place = self._get_variable_index(variable)
        update = tf.cast(self.iterations + 1, variable.dtype)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[place].value.handle,
            v=self._velocities[place].value.handle,
            beta1_power=tf.pow(tf.cast(self.beta_1, variable.dtype), update),
            beta2_power=tf.pow(tf.cast(self.beta_2, variable.dtype), update),
            lr=tf.cast(learning_rate, variable.dtype),
            beta1=tf.cast(self.beta_1, variable.dtype),
            beta2=tf.cast(self.beta_2, variable.dtype),
            epsilon=tf.cast(self.epsilon, variable.dtype),
            grad=tf.cast(tf.convert_to_tensor(gradient), variable.dtype),
        )


@keras.saving.register_keras_serializable("tf_transformer")
class FusedAdamW(FusedAdam):
    """AdamW (arXiv 1711.05101): before each update, matrices shrink by rate * `weight_decay`.

    Kernels and tables do, embeddings among them, which are output projections too (section 3.4);
    biases and LayerNorms, one number a channel, do not. Which ones is no setting, since Keras
    saves none: its `exclude_from_weight_decay` is forgotten by a `.keras` file.

    Args: those of `keras.optimizers.AdamW`.
    """

    def __init__(
        self, learning_rate: Any = 0.001, weight_decay: float = 0.01, **kwargs: Any
    ) -> None:
        super().__init__(learning_rate, weight_decay=weight_decay, **kwargs)

    def build(self, variables: Sequence[keras.Variable]) -> None:
        """Makes the moments, and tells matrices from the rest."""
        if not self.built:
            self.exclude_from_weight_decay([v for v in variables if len(v.shape) < 2])
        super().build(variables)


# What `training.optimizer` of a recipe may be.
OPTIMIZERS: dict[str, type[keras.optimizers.Optimizer]] = {
    "adam": FusedAdam,
    "adamw": FusedAdamW,
    "adafactor": Adafactor,
}


def _has_kernel() -> bool:
    if keras.backend.backend() != "tensorflow":
        return False
    import tensorflow as tf

    return not tf.distribute.has_strategy()

"""Adam as section 5.3 uses it, in one pass over the weights."""

from typing import Any

import keras


@keras.saving.register_keras_serializable("tf_transformer")
class FusedAdam(keras.optimizers.Adam):
    """Keras's Adam, update by update the same, through TensorFlow's fused kernel.

    Keras makes some ten passes over weights, gradient and moments; the kernel makes one. Where it
    cannot be used (another backend, `amsgrad`, a `tf.distribute` strategy) Keras's own code runs.

    Args: those of `keras.optimizers.Adam`; the paper has `beta_1=0.9`, `beta_2=0.98` and
        `epsilon=1e-9`.
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


def _has_kernel() -> bool:
    if keras.backend.backend() != "tensorflow":
        return False
    import tensorflow as tf

    return not tf.distribute.has_strategy()

"""The learning rate of section 5.3."""

from typing import Any

import keras
from keras import ops


@keras.saving.register_keras_serializable("tf_transformer")
class TransformerSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """d_model^-0.5 * min(n^-0.5, n * warmup^-1.5), equation 3, times a factor.

    n is the number of the update, 1 first. Keras calls a schedule with the updates made so far, 0
    first, so `schedule(step)` is the rate of update `step + 1`. The peak, at update
    `warmup_steps`, is `scale / sqrt(hidden_dim * warmup_steps)`.

    Args:
        hidden_dim: D (d_model).
        warmup_steps: updates with a rising rate (4000 in the paper).
        scale: factor on the whole.

    >>> schedule = TransformerSchedule(hidden_dim=512)
    >>> [f"{float(schedule(step)):.4e}" for step in (0, 3999, 15999)]
    ['1.7469e-07', '6.9877e-04', '3.4939e-04']
    """

    def __init__(self, hidden_dim: int, warmup_steps: int = 4000, scale: float = 1.0) -> None:
        super().__init__()
        for name, value in (("hidden_dim", hidden_dim), ("warmup_steps", warmup_steps)):
            if value < 1:
                raise ValueError(f"`{name}` must be at least 1. Received: {name}={value!r}")
        # Plain numbers: a tensor in the config would be saved and fail only when loaded.
        self.hidden_dim = int(hidden_dim)
        self.warmup_steps = int(warmup_steps)
        self.scale = float(scale)

    def __call__(self, step: Any) -> Any:
        """The rate of update `step` + 1, float32; `step` may be any number or variable."""
        n = ops.cast(ops.convert_to_tensor(step), "float32") + 1.0
        slope = n * self.warmup_steps**-1.5
        return self.scale * self.hidden_dim**-0.5 * ops.minimum(ops.rsqrt(n), slope)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {
            "hidden_dim": self.hidden_dim,
            "warmup_steps": self.warmup_steps,
            "scale": self.scale,
        }

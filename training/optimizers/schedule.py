"""Learning rates: the paper's (section 5.3) and the other usual ones, all with a warm-up.

Every schedule counts updates from 1. Keras calls a schedule with the updates made so far, 0 first,
so `schedule(step)` is the rate of update n = `step` + 1, in float32 whatever kind of number `step`
is. Configs hold plain numbers: a tensor in one would be saved and fail only when loaded.
"""

import math
from typing import Any, TypeAlias

import keras
from keras import ops

Tensor: TypeAlias = keras.KerasTensor


@keras.saving.register_keras_serializable("tf_transformer")
class TransformerSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """d_model^-0.5 * min(n^-0.5, n * warmup^-1.5), equation 3, times a factor.

    The peak, at update `warmup_steps`, is `scale / sqrt(hidden_dim * warmup_steps)`.

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
        _at_least_1(hidden_dim=hidden_dim, warmup_steps=warmup_steps)
        self.hidden_dim = int(hidden_dim)
        self.warmup_steps = int(warmup_steps)
        self.scale = float(scale)

    def __call__(self, step: Any) -> Tensor:
        """The rate of update `step` + 1, float32; `step` may be any number or variable."""
        n = _update(step)
        slope = n * self.warmup_steps**-1.5
        return self.scale * self.hidden_dim**-0.5 * ops.minimum(ops.rsqrt(n), slope)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {
            "hidden_dim": self.hidden_dim,
            "warmup_steps": self.warmup_steps,
            "scale": self.scale,
        }


class _WarmUp(keras.optimizers.schedules.LearningRateSchedule):
    """A straight rise to `peak` at update `warmup_steps`, from there on `peak` times a share."""

    def __init__(self, peak: float, warmup_steps: int = 4000) -> None:
        super().__init__()
        _at_least_1(warmup_steps=warmup_steps)
        if not float(peak) > 0:
            raise ValueError(f"`peak` must be above 0. Received: peak={peak!r}")
        self.peak = float(peak)
        self.warmup_steps = int(warmup_steps)

    def __call__(self, step: Any) -> Tensor:
        """The rate of update `step` + 1, float32; `step` may be any number or variable."""
        n = _update(step)
        return self.peak * ops.minimum(n / self.warmup_steps, self._share(n))

    def _share(self, n: Tensor) -> Tensor:
        """What is left of the peak at update n: 1 at the end of the warm-up, not below before."""
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"peak": self.peak, "warmup_steps": self.warmup_steps}


class _WarmUpAndDecay(_WarmUp):
    """0 at update `decay_steps` and after it."""

    def __init__(self, peak: float, warmup_steps: int, decay_steps: int) -> None:
        super().__init__(peak, warmup_steps)
        if not int(decay_steps) > self.warmup_steps:
            raise ValueError(
                "`decay_steps` must be above `warmup_steps`. Received: "
                f"decay_steps={decay_steps!r}, warmup_steps={warmup_steps!r}"
            )
        self.decay_steps = int(decay_steps)

    def _left(self, n: Tensor) -> Tensor:
        """The share of the decay that is still to come, 1 to 0."""
        return ops.clip((self.decay_steps - n) / (self.decay_steps - self.warmup_steps), 0.0, 1.0)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {**super().get_config(), "decay_steps": self.decay_steps}


@keras.saving.register_keras_serializable("tf_transformer")
class InverseSquareRoot(_WarmUp):
    """`peak` * sqrt(`warmup_steps` / n) after the warm-up: the paper's curve with its peak named.

    `InverseSquareRoot(0.01, 10_000)` is min(1e-6 n, 1 / sqrt(n)), the relative step size with
    warm-up of Adafactor (arXiv 1804.04235, section 8).

    >>> schedule = InverseSquareRoot(peak=0.002, warmup_steps=100)
    >>> [f"{float(schedule(step)):.4f}" for step in (49, 99, 399)]
    ['0.0010', '0.0020', '0.0010']
    """

    def _share(self, n: Tensor) -> Tensor:
        return ops.sqrt(self.warmup_steps / n)


@keras.saving.register_keras_serializable("tf_transformer")
class LinearDecay(_WarmUpAndDecay):
    """A straight line from `peak` to 0 at update `decay_steps`.

    >>> schedule = LinearDecay(peak=0.002, warmup_steps=100, decay_steps=300)
    >>> [f"{float(schedule(step)):.4f}" for step in (49, 99, 199, 299)]
    ['0.0010', '0.0020', '0.0010', '0.0000']
    """

    def _share(self, n: Tensor) -> Tensor:
        return self._left(n)


@keras.saving.register_keras_serializable("tf_transformer")
class CosineDecay(_WarmUpAndDecay):
    """Half a wave from `peak` to 0 at update `decay_steps` (arXiv 1608.03983 without restarts).

    >>> schedule = CosineDecay(peak=0.002, warmup_steps=100, decay_steps=300)
    >>> [f"{float(schedule(step)):.4f}" for step in (49, 99, 199, 299)]
    ['0.0010', '0.0020', '0.0010', '0.0000']
    """

    def _share(self, n: Tensor) -> Tensor:
        return 0.5 - 0.5 * ops.cos(math.pi * self._left(n))


@keras.saving.register_keras_serializable("tf_transformer")
class ConstantRate(_WarmUp):
    """`peak` after the warm-up; `warmup_steps=1` has none."""

    def _share(self, n: Tensor) -> Tensor:
        return ops.ones_like(n)


# What `training.schedule` of a recipe may be.
SCHEDULES: dict[str, type[keras.optimizers.schedules.LearningRateSchedule]] = {
    "transformer": TransformerSchedule,
    "inverse_sqrt": InverseSquareRoot,
    "linear": LinearDecay,
    "cosine": CosineDecay,
    "constant": ConstantRate,
}


def _update(step: Any) -> Tensor:
    return ops.cast(ops.convert_to_tensor(step), "float32") + 1.0


def _at_least_1(**numbers: int) -> None:
    for name, value in numbers.items():
        if value < 1:
            raise ValueError(f"`{name}` must be at least 1. Received: {name}={value!r}")

"""Position schemes (section 3.5 and its descendants): one class each, one line in POSITIONS.

A scheme overrides the hooks it needs: `call` adds to the embeddings; `rotate`, `score_bias` and
`add_to_context` act inside self-attention (its `in_attention` is then True).
"""

import math
from typing import Any, TypeAlias

import keras
from keras import ops

from tf_transformer.layers.position_encoding import PositionEncoding, angles, row_positions
from tf_transformer.layers.relative_positions import RelativePositions

Tensor: TypeAlias = keras.KerasTensor


@keras.saving.register_keras_serializable("tf_transformer")
class SinusoidalPositions(PositionEncoding):
    """Sines and cosines side by side, section 3.5: PE(pos, 2i) = sin(pos / 10000^(2i/d_model)).

    Computed by formula in float32, so that there is no longest position. Any width, odd too.

    Args:
        max_wavelength: the 10000 of the formula.

    >>> table = SinusoidalPositions()(ops.zeros((1, 2, 4)))
    >>> [[f"{x:.4f}" for x in row] for row in table[0].numpy()]
    [['0.0000', '1.0000', '0.0000', '1.0000'], ['0.8415', '0.5403', '0.0100', '0.9999']]
    """

    def __init__(self, max_wavelength: float = 10_000.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_wavelength = max_wavelength

    def call(self, x: Tensor, start: Any = 0) -> Tensor:
        """(B, T, D) plus the table's rows `start`, ... (T, D)."""
        table = self.table(row_positions(x, start), x.shape[-1])
        return x + ops.cast(ops.expand_dims(table, 0), x.dtype)

    def table(self, position: Tensor, width: int) -> Tensor:
        """Positions (T,) float32 -> (T, D) float32."""
        turns = angles(position, width, self.max_wavelength)
        pairs = ops.stack([ops.sin(turns), ops.cos(turns)], axis=-1)  # (T, D/2, 2)
        return ops.reshape(pairs, (-1, 2 * turns.shape[-1]))[:, :width]

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {**super().get_config(), "max_wavelength": self.max_wavelength}


@keras.saving.register_keras_serializable("tf_transformer")
class SinusoidalHalves(SinusoidalPositions):
    """All sines, then all cosines: tensor2tensor's `get_timing_signal_1d`.

    Unlike the paper, the rates run over d_model / 2 - 1 steps, as in the code its authors released.
    Needs an even width of at least 4.
    """

    def build(self, input_shape: tuple) -> None:
        """Checks the width."""
        if input_shape[-1] % 2 or input_shape[-1] < 4:
            raise ValueError(
                f"{self.name}: halves of sines and cosines need an even width of at least 4. "
                f"Received: input shape {tuple(input_shape)}"
            )
        super().build(input_shape)

    def table(self, position: Tensor, width: int) -> Tensor:
        """Positions (T,) float32 -> (T, D) float32."""
        i = ops.arange(width // 2, dtype="float32")
        rates = ops.exp(i * (-math.log(self.max_wavelength) / (width // 2 - 1)))
        turns = ops.expand_dims(position, -1) * rates
        return ops.concatenate([ops.sin(turns), ops.cos(turns)], axis=-1)


@keras.saving.register_keras_serializable("tf_transformer")
class LearnedPositions(PositionEncoding):
    """A table that training fills (Table 3, row E). Positions past its end use its last row.

    Args:
        max_positions: rows of the table.
    """

    def __init__(self, max_positions: int = 512, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_positions = max_positions

    def build(self, input_shape: tuple) -> None:
        """Makes the table for (B, T, D)."""
        width = input_shape[-1]
        self.positions = self.add_weight(
            (self.max_positions, width),
            initializer=keras.initializers.RandomNormal(stddev=width**-0.5),
            name="positions",
        )
        self.built = True

    def call(self, x: Tensor, start: Any = 0) -> Tensor:
        """(B, T, D) plus the table's rows `start`, ..."""
        rows = ops.minimum(ops.arange(ops.shape(x)[1]) + start, self.max_positions - 1)
        table = ops.take(ops.convert_to_tensor(self.positions), rows, axis=0)  # (T, D)
        return x + ops.cast(ops.expand_dims(table, 0), x.dtype)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {**super().get_config(), "max_positions": self.max_positions}


@keras.saving.register_keras_serializable("tf_transformer")
class RotaryPositions(PositionEncoding):
    """Turns pairs of a head's numbers by angles that grow with the position (arXiv 2104.09864).

    Pair i is (x[2i], x[2i + 1]), as in the paper's equation 15.

    Args:
        max_wavelength: the 10000 of the angles.
    """

    in_attention = True

    def __init__(self, max_wavelength: float = 10_000.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_wavelength = max_wavelength

    def rotate(self, heads: Tensor, start: Any = 0) -> Tensor:
        """(B, N, T, H) -> (B, N, T, H)."""
        width = heads.shape[-1]
        turns = angles(row_positions(heads, start, axis=2), width, self.max_wavelength)
        cos, sin = ops.cos(turns), ops.sin(turns)  # (T, H/2)
        batch, num_heads, length = ops.shape(heads)[:3]
        pairs = ops.reshape(ops.cast(heads, "float32"), (batch, num_heads, length, width // 2, 2))
        even, odd = pairs[..., 0], pairs[..., 1]
        turned = ops.stack([even * cos - odd * sin, even * sin + odd * cos], axis=-1)
        return ops.cast(ops.reshape(turned, ops.shape(heads)), heads.dtype)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {**super().get_config(), "max_wavelength": self.max_wavelength}


POSITIONS: dict[str, type[PositionEncoding] | None] = {
    "sinusoidal": SinusoidalPositions,
    "sinusoidal_halves": SinusoidalHalves,
    "learned": LearnedPositions,
    "relative": RelativePositions,
    "rotary": RotaryPositions,
    "none": None,
}


def get(position: Any, **kwargs: Any) -> PositionEncoding | None:
    """A fresh layer from a name of POSITIONS, a config or a layer to copy; None stays None.

    >>> get("rotary").in_attention
    True
    """
    if position is None or isinstance(position, str) and POSITIONS.get(position, 0) is None:
        return None
    if isinstance(position, str):
        if position not in POSITIONS:
            raise ValueError(
                f"`position` must be one of {', '.join(POSITIONS)}. Received: {position!r}"
            )
        return POSITIONS[position](name="position", **kwargs)  # type: ignore[misc]
    if isinstance(position, dict):
        position = keras.saving.deserialize_keras_object(position)
    return type(position).from_config({**position.get_config(), **kwargs})


def serialize(position: PositionEncoding | None) -> dict[str, Any] | None:
    """What `get` reads back."""
    return None if position is None else keras.saving.serialize_keras_object(position)

"""What a position scheme may do, and the arithmetic that several share."""

import math
from typing import Any, TypeAlias

import keras
from keras import ops

Tensor: TypeAlias = keras.KerasTensor


class PositionEncoding(keras.layers.Layer):
    """Knows no positions itself; the hooks and what they mean.

    `start` is the position of the first row: 0 for a whole sequence, the step in cached decoding;
    a Python int or an int32 scalar.
    """

    in_attention = False
    value_dim: int | None = None  # of the values' heads; set by the attention that owns the scheme

    def call(self, x: Tensor, start: Any = 0) -> Tensor:
        """Embeddings (B, T, D) -> embeddings with their positions (B, T, D)."""
        return x

    def rotate(self, heads: Tensor, start: Any = 0) -> Tensor:
        """Query or key heads (B, N, T, H) -> the same, turned by their positions."""
        return heads

    def score_bias(self, query: Tensor, key: Tensor, start: Any = 0) -> Tensor | None:
        """What is added to the scaled scores: (B, N, T, S), or None."""
        return None

    def add_to_context(self, context: Tensor, weights: Tensor, start: Any = 0) -> Tensor:
        """Context (B, N, T, H) and weights (B, N, T, S) -> context (B, N, T, H)."""
        return context

    def compute_output_shape(self, input_shape: tuple) -> tuple:
        """The input's."""
        return input_shape


def row_positions(x: Tensor, start: Any, axis: int = 1) -> Tensor:
    """`start`, `start` + 1, ... for the rows of `axis`: (T,) float32."""
    return ops.cast(ops.arange(ops.shape(x)[axis]) + start, "float32")  # (T,)


def angles(position: Tensor, width: int, max_wavelength: float) -> Tensor:
    """pos / 10000^(2i / d_model), i = 0 .. ceil(d_model / 2) - 1: (T,) -> (T, ceil(D / 2))."""
    i = ops.arange((width + 1) // 2, dtype="float32")
    rates = ops.exp(i * (-2.0 * math.log(max_wavelength) / width))
    return ops.expand_dims(position, -1) * rates  # (T, ceil(D / 2))

"""Relative positions: distances between tokens, learned (Shaw et al. 2018)."""

from typing import Any, TypeAlias

import keras
from keras import ops

from tf_transformer.layers.position_encoding import PositionEncoding

Tensor: TypeAlias = keras.KerasTensor


@keras.saving.register_keras_serializable("tf_transformer")
class RelativePositions(PositionEncoding):
    """Learned vectors for clipped distances, on keys and values (Shaw et al., arXiv 1803.02155).

    e_ij = q_i (k_j + a^K_ij) / sqrt(d_k) and z_i = sum_j w_ij (v_j + a^V_ij), with one a^K and a^V
    of 2k + 1 rows for all heads of a layer, row clip(j - i, -k, k) + k.

    Args:
        max_distance: the clipping distance k.
    """

    in_attention = True

    def __init__(self, max_distance: int = 16, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_distance = max_distance

    def build(self, input_shape: tuple) -> None:
        """Makes both tables for heads (B, N, T, H) and values of `value_dim`, or as wide."""
        rows, width = 2 * self.max_distance + 1, input_shape[-1]
        self.keys = self.add_weight((rows, width), "glorot_uniform", name="keys")
        self.values = self.add_weight(
            (rows, self.value_dim or width), "glorot_uniform", name="values"
        )
        self.built = True

    def score_bias(self, query: Tensor, key: Tensor, start: Any = 0) -> Tensor:
        """q_i a^K_ij / sqrt(d_k): (B, N, T, S)."""
        near = self._near(self.keys, ops.shape(query)[2], ops.shape(key)[2], start, query.dtype)
        return ops.einsum("BNTH,TSH->BNTS", query * query.shape[-1] ** -0.5, near)

    def add_to_context(self, context: Tensor, weights: Tensor, start: Any = 0) -> Tensor:
        """context_i + sum_j w_ij a^V_ij: (B, N, T, H)."""
        length, keys = ops.shape(weights)[2:]
        near = self._near(self.values, length, keys, start, context.dtype)
        return context + ops.einsum("BNTS,TSH->BNTH", ops.cast(weights, context.dtype), near)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {**super().get_config(), "max_distance": self.max_distance}

    def _near(self, table: Any, length: Any, keys: Any, start: Any, dtype: Any) -> Tensor:
        distance = ops.expand_dims(ops.arange(keys), 0) - ops.expand_dims(
            ops.arange(length) + start, 1
        )  # (T, S)
        rows = ops.clip(distance, -self.max_distance, self.max_distance) + self.max_distance
        return ops.cast(ops.take(ops.convert_to_tensor(table), rows, axis=0), dtype)  # (T, S, H)

"""Position-wise feed-forward network (section 3.3)."""

from typing import Any, TypeAlias

import keras

Tensor: TypeAlias = keras.KerasTensor


@keras.saving.register_keras_serializable("tf_transformer")
class FeedForward(keras.layers.Layer):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, equation 2, the same at every position.

    Args:
        intermediate_dim: inner width F (d_ff).
        activation: `"relu"` as in the paper, or any that Keras knows.
        gated: act(x W_1 + b_1) * (x W_3 + b_3) inside (GLU variants, arXiv 2002.05202).
        dropout: rate on the inner activations.

    Call arguments:
        x: (B, T, D).

    Returns:
        (B, T, D).

    >>> FeedForward(intermediate_dim=16)(keras.ops.ones((1, 3, 8))).shape
    TensorShape([1, 3, 8])
    """

    def __init__(
        self,
        intermediate_dim: int,
        activation: Any = "relu",
        gated: bool = False,
        dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.intermediate_dim = intermediate_dim
        self.activation = keras.activations.get(activation)
        self.gated = gated
        self.dropout = dropout
        self.inner_dropout = keras.layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, input_shape: tuple) -> None:
        """Makes the two (gated: three) projections for (B, T, D)."""
        width = self.intermediate_dim
        inner_shape = (*input_shape[:-1], width)
        self.inner = self._dense(width, "inner", input_shape, self.activation)
        if self.gated:
            self.gate = self._dense(width, "gate", input_shape)
        self.outer = self._dense(input_shape[-1], "outer", inner_shape)
        self.built = True

    def call(self, x: Tensor, training: bool | None = None) -> Tensor:
        """See the class."""
        inner = self.inner(x)  # (B, T, F)
        if self.gated:
            inner = inner * self.gate(x)
        return self.outer(self.inner_dropout(inner, training=training))

    def compute_output_shape(self, input_shape: tuple) -> tuple:
        """(B, T, D), the input's."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "intermediate_dim": self.intermediate_dim,
            "activation": keras.activations.serialize(self.activation),
            "gated": self.gated,
            "dropout": self.dropout,
        }

    def _dense(self, width: int, name: str, shape: tuple, act: Any = None) -> keras.layers.Dense:
        dense = keras.layers.Dense(width, activation=act, dtype=self.dtype_policy, name=name)
        dense.build(shape)
        return dense

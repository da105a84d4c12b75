"""Residual connection, dropout and layer normalisation around a sublayer (sections 3.1, 5.4)."""

from collections.abc import Callable
from typing import Any, TypeAlias

import keras

Tensor: TypeAlias = keras.KerasTensor


@keras.saving.register_keras_serializable("tf_transformer")
class Residual(keras.layers.Layer):
    """LayerNorm(x + Dropout(Sublayer(x))), section 3.1.

    With `norm_first`, unlike the paper, x + Dropout(Sublayer(LayerNorm(x))): deep stacks then
    train without a long warm-up, and the stack needs one more LayerNorm at its end.

    `call` is `leave(x, sublayer(enter(x)))`; the halves are public for sublayers that return more
    than one tensor.

    Args:
        dropout: rate on the sublayer's output (P_drop).
        norm_first: normalise before the sublayer instead of after the sum.
        epsilon: of the LayerNorm.

    Call arguments:
        x: (B, T, D).
        sublayer: by keyword, a callable from (B, T, D) to (B, T, D).

    Returns:
        (B, T, D).

    >>> Residual()(keras.ops.ones((1, 2, 4)), sublayer=lambda x: 2 * x).shape
    TensorShape([1, 2, 4])
    """

    def __init__(
        self,
        dropout: float = 0.0,
        norm_first: bool = False,
        epsilon: float = 1e-6,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.dropout = dropout
        self.norm_first = norm_first
        self.epsilon = epsilon
        self.norm = keras.layers.LayerNormalization(
            epsilon=epsilon, dtype=self.dtype_policy, name="norm"
        )
        self.output_dropout = keras.layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, x_shape: tuple) -> None:
        """Makes the LayerNorm for (B, T, D)."""
        self.norm.build(x_shape)
        self.built = True

    def call(
        self, x: Tensor, *, sublayer: Callable[[Tensor], Tensor], training: bool | None = None
    ) -> Tensor:
        """See the class."""
        return self.leave(x, sublayer(self.enter(x)), training)

    def enter(self, x: Tensor) -> Tensor:
        """What the sublayer sees: (B, T, D)."""
        return self.norm(x) if self.norm_first else x

    def leave(self, x: Tensor, output: Tensor, training: bool | None = None) -> Tensor:
        """The sum of x and the sublayer's output, both (B, T, D)."""
        total = x + self.output_dropout(output, training=training)
        return total if self.norm_first else self.norm(total)

    def compute_output_spec(self, x: Tensor, **others: Any) -> Tensor:
        """(B, T, D), the input's."""
        return keras.KerasTensor(x.shape, self.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "dropout": self.dropout,
            "norm_first": self.norm_first,
            "epsilon": self.epsilon,
        }

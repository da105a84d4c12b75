"""What the encoder's and the decoder's layers, and their stacks, have in common."""

from typing import Any, TypeAlias

import keras

from tf_transformer.layers import positions
from tf_transformer.layers.attention import MultiHeadAttention
from tf_transformer.layers.feed_forward import FeedForward
from tf_transformer.layers.residual import Residual

Tensor: TypeAlias = keras.KerasTensor


class TransformerLayer(keras.layers.Layer):
    """The sizes of one layer of figure 1, and its parts made from them.

    Args:
        num_heads: N (h).
        intermediate_dim: F (d_ff).
        head_dim: H (d_k); default width / `num_heads`.
        value_dim: d_v; default width / `num_heads`.
        activation: of the feed-forward.
        gated: a gated feed-forward.
        dropout: rate on each sublayer's output (P_drop).
        attention_dropout: rate on the attention weights.
        intermediate_dropout: rate inside the feed-forward.
        norm_first: pre-norm; default post-norm as in the paper.
        layer_norm_epsilon: epsilon of each LayerNorm.
        attention_bias: biases in the attention projections.
        position: the position scheme's name or layer, or None.
    """

    feed_forward: FeedForward
    feed_forward_residual: Residual

    def __init__(
        self,
        num_heads: int,
        intermediate_dim: int,
        head_dim: int | None = None,
        value_dim: int | None = None,
        activation: Any = "relu",
        gated: bool = False,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        intermediate_dropout: float = 0.0,
        norm_first: bool = False,
        layer_norm_epsilon: float = 1e-6,
        attention_bias: bool = True,
        position: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.intermediate_dim = intermediate_dim
        self.head_dim = head_dim
        self.value_dim = value_dim
        self.activation = keras.activations.get(activation)
        self.gated = gated
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.intermediate_dropout = intermediate_dropout
        self.norm_first = norm_first
        self.layer_norm_epsilon = layer_norm_epsilon
        self.attention_bias = attention_bias
        self.position = positions.get(position, dtype=self.dtype_policy)

    def sizes(self) -> dict[str, Any]:
        """The arguments above, plain, as `get_config` stores them."""
        return {
            "num_heads": self.num_heads,
            "intermediate_dim": self.intermediate_dim,
            "head_dim": self.head_dim,
            "value_dim": self.value_dim,
            "activation": keras.activations.serialize(self.activation),
            "gated": self.gated,
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
            "intermediate_dropout": self.intermediate_dropout,
            "norm_first": self.norm_first,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "attention_bias": self.attention_bias,
            "position": positions.serialize(self.position),
        }

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {**super().get_config(), **self.sizes()}

    def compute_output_shape(self, x_shape: tuple, *other: Any, **shapes: Any) -> tuple:
        """(B, T, D), the input's."""
        return x_shape

    def _feed_forward_sublayer(self, x: Tensor, training: bool | None) -> Tensor:
        return self.feed_forward_residual(x, sublayer=self.feed_forward, training=training)

    def _attention(self, name: str, position: Any = None) -> MultiHeadAttention:
        return MultiHeadAttention(
            self.num_heads,
            head_dim=self.head_dim,
            value_dim=self.value_dim,
            use_bias=self.attention_bias,
            dropout=self.attention_dropout,
            position=position,
            dtype=self.dtype_policy,
            name=name,
        )

    def _residual(self, name: str) -> Residual:
        return Residual(
            self.dropout,
            norm_first=self.norm_first,
            epsilon=self.layer_norm_epsilon,
            dtype=self.dtype_policy,
            name=name,
        )

    def _feed_forward(self) -> FeedForward:
        return FeedForward(
            self.intermediate_dim,
            activation=self.activation,
            gated=self.gated,
            dropout=self.intermediate_dropout,
            dtype=self.dtype_policy,
            name="feed_forward",
        )


class Stack(TransformerLayer):
    """N equal layers under position and embedding dropout; pre-norm adds a last LayerNorm.

    Args:
        num_layers: N of section 3.1.
        embedding_dropout: rate on embeddings plus positions (section 5.4).
        sizes: the arguments of `TransformerLayer`, for every layer.
    """

    layer_class: type[TransformerLayer]

    def __init__(self, num_layers: int, *, embedding_dropout: float = 0.0, **sizes: Any) -> None:
        super().__init__(**sizes)
        self.num_layers = num_layers
        self.embedding_dropout = embedding_dropout
        self.input_dropout = keras.layers.Dropout(
            embedding_dropout, dtype=self.dtype_policy, name="input_dropout"
        )
        inside = self.position is not None and self.position.in_attention
        self.absolute = None if inside else self.position
        layer_sizes = {**self.sizes(), "position": self.position if inside else None}
        self.blocks = [
            self.layer_class(**layer_sizes, dtype=self.dtype_policy, name=f"layer_{i}")
            for i in range(num_layers)
        ]
        self.last_norm = None
        if self.norm_first:
            self.last_norm = keras.layers.LayerNormalization(
                epsilon=self.layer_norm_epsilon, dtype=self.dtype_policy, name="last_norm"
            )

    def build(self, x_shape: tuple, *other_shapes: tuple) -> None:
        """Makes every layer for (B, T, D)."""
        if self.absolute is not None:
            self.absolute.build(x_shape)
        for block in self.blocks:
            block.build(x_shape, *other_shapes)
        if self.last_norm is not None:
            self.last_norm.build(x_shape)
        self.built = True

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "num_layers": self.num_layers,
            "embedding_dropout": self.embedding_dropout,
        }

    def _enter(self, x: Tensor, start: Any = 0, training: bool | None = None) -> Tensor:
        if self.absolute is not None:
            x = self.absolute(x, start=start)
        return self.input_dropout(x, training=training)

    def _leave(self, x: Tensor) -> Tensor:
        return x if self.last_norm is None else self.last_norm(x)

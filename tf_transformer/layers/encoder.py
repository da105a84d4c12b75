"""The encoder, left half of figure 1 (section 3.1)."""

from typing import Any, TypeAlias

import keras

from tf_transformer.layers.masks import attention_mask
from tf_transformer.layers.stack import Stack, TransformerLayer

Tensor: TypeAlias = keras.KerasTensor


@keras.saving.register_keras_serializable("tf_transformer")
class EncoderLayer(TransformerLayer):
    """Self-attention, then feed-forward, each inside a residual connection.

    Args: see `TransformerLayer`.

    Call arguments:
        x: (B, S, D).
        attention_mask: (B, S, S) bool or broadcastable, True = may attend.

    Returns:
        (B, S, D).
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.self_attention = self._attention("self_attention", self.position)
        self.self_attention_residual = self._residual("self_attention_residual")
        self.feed_forward = self._feed_forward()
        self.feed_forward_residual = self._residual("feed_forward_residual")

    def build(self, x_shape: tuple) -> None:
        """Makes all sublayers for (B, S, D)."""
        self.self_attention.build(x_shape, x_shape)
        self.self_attention_residual.build(x_shape)
        self.feed_forward.build(x_shape)
        self.feed_forward_residual.build(x_shape)
        self.built = True

    def call(
        self, x: Tensor, attention_mask: Tensor | None = None, training: bool | None = None
    ) -> Tensor:
        """See the class."""
        return self.attend(x, attention_mask, training)[0]

    def attend(
        self, x: Tensor, attention_mask: Tensor | None = None, training: bool | None = None
    ) -> tuple[Tensor, Tensor]:
        """The output (B, S, D) and the attention weights (B, N, S, S)."""
        attention, residual = self.self_attention, self.self_attention_residual
        y = residual.enter(x)
        key, value = attention.project_key_value(y)
        y, weights = attention.attend(
            attention.project_query(y), key, value, attention_mask, training=training
        )
        x = residual.leave(x, y, training)
        return self._feed_forward_sublayer(x, training), weights


@keras.saving.register_keras_serializable("tf_transformer")
class Encoder(Stack):
    """N encoder layers (section 3.1) over positions and dropout.

    Args: see `Stack` and `TransformerLayer`.

    Call arguments:
        x: embeddings (B, S, D).
        padding_mask: (B, S) bool, True = a real token; None where all are.

    Returns:
        (B, S, D); what stands at pads means nothing.

    >>> encoder = Encoder(2, num_heads=2, intermediate_dim=16, position="sinusoidal")
    >>> encoder(keras.ops.ones((1, 3, 8))).shape
    TensorShape([1, 3, 8])
    """

    layer_class = EncoderLayer

    def call(
        self, x: Tensor, padding_mask: Tensor | None = None, training: bool | None = None
    ) -> Tensor:
        """See the class."""
        return self.attend(x, padding_mask, training)[0]

    def attend(
        self, x: Tensor, padding_mask: Tensor | None = None, training: bool | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        """The output (B, S, D) and each layer's attention weights (B, N, S, S)."""
        mask = attention_mask(padding_mask)
        x = self._enter(x, training=training)
        weights = []
        for block in self.blocks:
            x, layer_weights = block.attend(x, mask, training)
            weights.append(layer_weights)
        return self._leave(x), weights

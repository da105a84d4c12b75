"""A stack's attention weights as a layer of their own, over the stack's weights."""

from typing import Any, TypeAlias

import keras
from keras import ops

from tf_transformer.layers.decoder import Decoder
from tf_transformer.layers.encoder import Encoder

Tensor: TypeAlias = keras.KerasTensor


class StackAttention(keras.layers.Layer):
    """Calls a stack for what its layers look at.

    `call` has no `training`: a functional model would set it in every layer that takes it.

    Args:
        stack: a built `Encoder` or `Decoder`; nothing is copied, its precision is taken over.
    """

    def __init__(self, stack: Encoder | Decoder, **kwargs: Any) -> None:
        super().__init__(**{"dtype": stack.dtype_policy, **kwargs})
        self.stack = stack

    def build(self, *shapes: tuple) -> None:
        """Nothing to make: the weights are the stack's."""
        self.built = True

    def get_config(self) -> dict[str, Any]:
        """The stack; a copy of it, as a layer made from this shares no weights."""
        return {**super().get_config(), "stack": keras.saving.serialize_keras_object(self.stack)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "StackAttention":
        """A layer over a stack of its own."""
        stack = keras.saving.deserialize_keras_object(config["stack"])
        return cls(**{**config, "stack": stack})

    def _spec(self, queries: Tensor, keys: Tensor) -> Tensor:
        lengths = (queries.shape[1], keys.shape[1])
        shape = (queries.shape[0], self.stack.num_layers, self.stack.num_heads, *lengths)
        return keras.KerasTensor(shape, "float32")


@keras.saving.register_keras_serializable("tf_transformer")
class EncoderAttention(StackAttention):
    """Where the encoder looks, and what it gives on to the decoder.

    Args:
        stack: an `Encoder`.

    Call arguments: as `Encoder`'s.

    Returns:
        The encoder's output (B, S, D) and its weights (B, L, N, S, S) float32, L its layers; both
        without dropout.
    """

    stack: Encoder

    def call(self, x: Tensor, padding_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """See the class."""
        output, weights = self.stack.attend(x, padding_mask, training=False)
        return output, ops.stack(weights, axis=1)

    def compute_output_spec(
        self, x: Tensor, padding_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """(B, S, D), and (B, L, N, S, S) float32."""
        return keras.KerasTensor(x.shape, self.compute_dtype), self._spec(x, x)


@keras.saving.register_keras_serializable("tf_transformer")
class DecoderAttention(StackAttention):
    """Where the decoder looks, in the target so far and in the source.

    Args:
        stack: a `Decoder`.

    Call arguments: as `Decoder`'s.

    Returns:
        Two float32 tensors without dropout, (B, L, N, T, T) and (B, L, N, T, S).
    """

    stack: Decoder

    def call(
        self,
        x: Tensor,
        encoder_output: Tensor,
        padding_mask: Tensor | None = None,
        encoder_padding_mask: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """See the class."""
        masks = padding_mask, encoder_padding_mask
        _, weights = self.stack.attend(x, encoder_output, *masks, training=False)
        own = ops.stack([layer.self_attention for layer in weights], axis=1)
        return own, ops.stack([layer.cross_attention for layer in weights], axis=1)

    def compute_output_spec(
        self, x: Tensor, encoder_output: Tensor, **masks: Tensor
    ) -> tuple[Tensor, Tensor]:
        """(B, L, N, T, T) and (B, L, N, T, S), float32."""
        return self._spec(x, x), self._spec(x, encoder_output)

"""The decoder, right half of figure 1 (section 3.1): whole targets, or one cached position."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import keras
from keras import ops

from tf_transformer.layers.decoder_layer import AttentionWeights, DecoderLayer
from tf_transformer.layers.masks import attention_mask
from tf_transformer.layers.one_position import KeyValue, Projection, join_projections
from tf_transformer.layers.stack import Stack

Tensor: TypeAlias = keras.KerasTensor


class SourceContext(NamedTuple):
    """What decoding needs of the source, computed once a sentence and never copied per beam."""

    keys_values: list[KeyValue]  # per layer, each (B, N, S, H)
    attention_mask: Tensor | None  # (B, 1, S)


def grow(cache: Tensor, new: Tensor) -> Tensor:
    """The cache (R, N, t, H) with one more position at its end: (R, N, t + 1, H)."""
    return ops.concatenate([cache, new], axis=2)


@keras.saving.register_keras_serializable("tf_transformer")
class Decoder(Stack):
    """N decoder layers (section 3.1) over positions and dropout.

    `call` sees whole targets (teacher forcing). `start` and `step` decode: one position at a time
    with cached keys and values, equal to `call` at every position.

    Args: see `Stack` and `TransformerLayer`.

    Call arguments:
        x: embeddings of the target, shifted right (B, T, D).
        encoder_output: (B, S, D).
        padding_mask: (B, T) bool of the target, True = a real token; None where all are.
        encoder_padding_mask: (B, S) bool of the source.

    Returns:
        (B, T, D); what stands at pads means nothing.

    >>> decoder = Decoder(2, num_heads=2, intermediate_dim=16, position="sinusoidal")
    >>> decoder(keras.ops.ones((1, 3, 8)), keras.ops.ones((1, 5, 8))).shape
    TensorShape([1, 3, 8])
    """

    layer_class = DecoderLayer

    def build(self, x_shape: tuple, encoder_output_shape: tuple | None = None, *_: tuple) -> None:
        """Makes every layer for (B, T, D) over (B, S, D)."""
        super().build(x_shape, encoder_output_shape or x_shape)

    def call(
        self,
        x: Tensor,
        encoder_output: Tensor,
        padding_mask: Tensor | None = None,
        encoder_padding_mask: Tensor | None = None,
        training: bool | None = None,
    ) -> Tensor:
        """See the class."""
        return self.attend(x, encoder_output, padding_mask, encoder_padding_mask, training)[0]

    def attend(
        self,
        x: Tensor,
        encoder_output: Tensor,
        padding_mask: Tensor | None = None,
        encoder_padding_mask: Tensor | None = None,
        training: bool | None = None,
    ) -> tuple[Tensor, list[AttentionWeights]]:
        """The output (B, T, D) and each layer's attention weights."""
        own = attention_mask(padding_mask, causal_length=ops.shape(x)[1])
        source = self.start(encoder_output, encoder_padding_mask)
        x = self._enter(x, training=training)
        weights = []
        for block, keys_values in zip(self.blocks, source.keys_values, strict=True):
            x, layer = block.attend(x, keys_values, own, source.attention_mask, training)
            weights.append(layer)
        return self._leave(x), weights

    def start(
        self, encoder_output: Tensor, encoder_padding_mask: Tensor | None = None
    ) -> SourceContext:
        """The source's keys and values of every layer, from (B, S, D) and (B, S) bool."""
        return SourceContext(
            [block.cross_attention.project_key_value(encoder_output) for block in self.blocks],
            attention_mask(encoder_padding_mask),
        )

    def empty_cache(self, rows: Any) -> list[KeyValue]:
        """Per layer the keys and values of no position yet, (R, N, 0, H), for `step`."""
        caches = []
        for block in self.blocks:
            attention = block.self_attention
            widths = (attention.key.units, attention.value.units)
            shapes = [(rows, self.num_heads, 0, width // self.num_heads) for width in widths]
            caches.append(tuple(ops.zeros(shape, self.compute_dtype) for shape in shapes))
        return caches

    def join_projections(self) -> list[Projection]:
        """Per layer what makes query, key and value of self-attention in one product."""
        return [join_projections(block.self_attention) for block in self.blocks]

    def step(
        self,
        x: Tensor,
        cache: list[KeyValue],
        index: Any,
        source: SourceContext,
        append: Callable[[Tensor, Tensor], Tensor] = grow,
        self_attention_mask: Tensor | None = None,
        joined: list[Projection] | None = None,
    ) -> tuple[Tensor, list[KeyValue], list[AttentionWeights]]:
        """One position of K hypotheses for each of B sentences.

        Args:
            x: embeddings (B, K, D) of the tokens at position `index`.
            cache: from `empty_cache(B * K)` or the step before.
            index: the position, 0 first; int32 scalar.
            source: from `start`.
            append: writes the new position (R, N, 1, H) into a cache; `grow` concatenates.
            self_attention_mask: (R, 1, t) bool where `append` keeps places not yet written.
            joined: from `join_projections`, which a loop over steps takes once, outside.

        Returns:
            States (B, K, D), the caches, and each layer's weights: own (R, N, 1, t), source
            (B, N, K, S).
        """
        beams, width = ops.shape(x)[1], x.shape[-1]
        # All hypotheses stand at one position: time is the middle axis of (B * K, 1, D).
        x = self._enter(ops.reshape(x, (-1, 1, width)), start=index)
        x = ops.reshape(x, (-1, width))  # (R, D)
        caches, weights = [], []
        for block, layer_joined, layer_cache, keys_values in zip(
            self.blocks, joined or self.join_projections(), cache, source.keys_values, strict=True
        ):
            x, layer_cache, layer_weights = block.step(
                x,
                layer_joined,
                layer_cache,
                keys_values,
                index,
                source.attention_mask,
                append,
                self_attention_mask,
                beams,
            )
            caches.append(layer_cache)
            weights.append(layer_weights)
        return ops.reshape(self._leave(x), (-1, beams, width)), caches, weights

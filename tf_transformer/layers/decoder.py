"""The decoder, right half of figure 1 (section 3.1): whole targets, or one cached position."""

from collections.abc import Callable
from typing import Any, NamedTuple

import keras
from keras import ops

from tf_transformer.layers.masks import attention_mask
from tf_transformer.layers.stack import Stack, TransformerLayer

Tensor = keras.KerasTensor
KeyValue = tuple[Tensor, Tensor]


class AttentionWeights(NamedTuple):
    """Of one decoder layer: over the target so far (B, N, T, T), over the source (B, N, T, S)."""

    self_attention: Tensor
    cross_attention: Tensor


class SourceContext(NamedTuple):
    """What decoding needs of the source, computed once a sentence and never copied per beam."""

    keys_values: list[KeyValue]  # per layer, each (B, N, S, H)
    attention_mask: Tensor | None  # (B, 1, S)


def grow(cache: Tensor, new: Tensor) -> Tensor:
    """The cache (R, N, t, H) with one more position at its end: (R, N, t + 1, H)."""
    return ops.concatenate([cache, new], axis=2)


@keras.saving.register_keras_serializable("tf_transformer")
class DecoderLayer(TransformerLayer):
    """Masked self-attention, attention over the source, feed-forward, each inside a residual.

    Args: see `TransformerLayer`.

    Call arguments:
        x: (B, T, D).
        encoder_output: (B, S, D).
        self_attention_mask: (B, T, T) bool or broadcastable, True = may attend.
        cross_attention_mask: (B, T, S) bool or broadcastable, True = may attend.

    Returns:
        (B, T, D).
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.self_attention = self._attention("self_attention", self.position)
        self.self_attention_residual = self._residual("self_attention_residual")
        self.cross_attention = self._attention("cross_attention")
        self.cross_attention_residual = self._residual("cross_attention_residual")
        self.feed_forward = self._feed_forward()
        self.feed_forward_residual = self._residual("feed_forward_residual")

    def build(self, x_shape: tuple, encoder_output_shape: tuple | None = None) -> None:
        """Makes all sublayers for (B, T, D) over (B, S, D)."""
        self.self_attention.build(x_shape, x_shape)
        self.self_attention_residual.build(x_shape)
        self.cross_attention.build(x_shape, encoder_output_shape or x_shape)
        self.cross_attention_residual.build(x_shape)
        self.feed_forward.build(x_shape)
        self.feed_forward_residual.build(x_shape)
        self.built = True

    def call(
        self,
        x: Tensor,
        encoder_output: Tensor,
        self_attention_mask: Tensor | None = None,
        cross_attention_mask: Tensor | None = None,
        training: bool | None = None,
    ) -> Tensor:
        """See the class."""
        source = self.cross_attention.project_key_value(encoder_output)
        return self.attend(x, source, self_attention_mask, cross_attention_mask, training)[0]

    def attend(
        self,
        x: Tensor,
        source: KeyValue,
        self_attention_mask: Tensor | None = None,
        cross_attention_mask: Tensor | None = None,
        training: bool | None = None,
    ) -> tuple[Tensor, AttentionWeights]:
        """The output (B, T, D) and both attention weights; `source` are projected heads."""
        attention, residual = self.self_attention, self.self_attention_residual
        y = residual.enter(x)
        key, value = attention.project_key_value(y)
        y, own = attention.attend(
            attention.project_query(y), key, value, self_attention_mask, training=training
        )
        x = residual.leave(x, y, training)
        x, cross = self._attend_source(x, source, cross_attention_mask, training)
        return x, AttentionWeights(own, cross)

    def step(
        self,
        x: Tensor,
        cache: KeyValue,
        source: KeyValue,
        index: Any,
        cross_attention_mask: Tensor | None,
        append: Callable[[Tensor, Tensor], Tensor],
        self_attention_mask: Tensor | None,
    ) -> tuple[Tensor, KeyValue, AttentionWeights]:
        """One position of K hypotheses a sentence: (B, K, D); caches hold B * K rows."""
        attention, residual = self.self_attention, self.self_attention_residual
        batch, beams = ops.shape(x)[:2]
        y = ops.reshape(residual.enter(x), (batch * beams, 1, x.shape[-1]))
        new_key, new_value = attention.project_key_value(y, index)
        cache = append(cache[0], new_key), append(cache[1], new_value)
        query = attention.project_query(y, index)
        y, own = attention.attend(query, *cache, self_attention_mask, index)
        x = residual.leave(x, ops.reshape(y, (batch, beams, x.shape[-1])))
        # The beams are the query axis of attention over the source: no copy of it per beam.
        x, cross = self._attend_source(x, source, cross_attention_mask)
        return x, cache, AttentionWeights(own, cross)

    def _attend_source(
        self, x: Tensor, source: KeyValue, mask: Tensor | None, training: bool | None = None
    ) -> tuple[Tensor, Tensor]:
        attention, residual = self.cross_attention, self.cross_attention_residual
        query = attention.project_query(residual.enter(x))
        y, weights = attention.attend(query, *source, mask, training=training)
        x = residual.leave(x, y, training)
        return self._feed_forward_sublayer(x, training), weights


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

    def build(self, x_shape: tuple, encoder_output_shape: tuple | None = None) -> None:
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
            caches.append(
                tuple(
                    ops.zeros((rows, self.num_heads, 0, width // self.num_heads), self.compute_dtype)
                    for width in widths
                )
            )
        return caches

    def step(
        self,
        x: Tensor,
        cache: list[KeyValue],
        index: Any,
        source: SourceContext,
        append: Callable[[Tensor, Tensor], Tensor] = grow,
        self_attention_mask: Tensor | None = None,
    ) -> tuple[Tensor, list[KeyValue], list[AttentionWeights]]:
        """One position of K hypotheses for each of B sentences.

        Args:
            x: embeddings (B, K, D) of the tokens at position `index`.
            cache: from `empty_cache(B * K)` or the step before.
            index: the position, 0 first; int32 scalar.
            source: from `start`.
            append: writes the new position (R, N, 1, H) into a cache; `grow` concatenates.
            self_attention_mask: (R, 1, t) bool where `append` keeps places not yet written.

        Returns:
            States (B, K, D), the caches, and each layer's weights: own (R, N, 1, t), source
            (B, N, K, S).
        """
        x = self._enter_step(x, index)
        caches, weights = [], []
        for block, layer_cache, keys_values in zip(
            self.blocks, cache, source.keys_values, strict=True
        ):
            x, layer_cache, layer_weights = block.step(
                x,
                layer_cache,
                keys_values,
                index,
                source.attention_mask,
                append,
                self_attention_mask,
            )
            caches.append(layer_cache)
            weights.append(layer_weights)
        return self._leave(x), caches, weights

    def _enter_step(self, x: Tensor, index: Any) -> Tensor:
        # All K hypotheses stand at one position: time is the middle axis of (B * K, 1, D).
        batch, beams = ops.shape(x)[:2]
        rows = self._enter(ops.reshape(x, (batch * beams, 1, x.shape[-1])), start=index)
        return ops.reshape(rows, (batch, beams, x.shape[-1]))

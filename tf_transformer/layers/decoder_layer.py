"""One layer of the decoder: whole targets, or one cached position."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import keras

from tf_transformer.layers.one_position import KeyValue, Projection, attend_cache, attend_source
from tf_transformer.layers.stack import TransformerLayer

Tensor: TypeAlias = keras.KerasTensor


class AttentionWeights(NamedTuple):
    """Of one decoder layer: over the target so far (B, N, T, T), over the source (B, N, T, S)."""

    self_attention: Tensor
    cross_attention: Tensor


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
        joined: Projection,
        cache: KeyValue,
        source: KeyValue,
        index: Any,
        cross_attention_mask: Tensor | None,
        append: Callable[[Tensor, Tensor], Tensor],
        self_attention_mask: Tensor | None,
        beams: Any,
    ) -> tuple[Tensor, KeyValue, AttentionWeights]:
        """One position of R = B * K hypotheses, K of a sentence: (R, D); caches hold R rows."""
        residual = self.self_attention_residual
        y, cache, own = attend_cache(
            self.self_attention,
            joined,
            residual.enter(x),
            cache,
            index,
            append,
            self_attention_mask,
        )
        x = residual.leave(x, y)
        residual = self.cross_attention_residual
        y, cross = attend_source(
            self.cross_attention, residual.enter(x), source, cross_attention_mask, beams
        )
        x = self._feed_forward_sublayer(residual.leave(x, y), None)
        return x, cache, AttentionWeights(own, cross)

    def _attend_source(
        self, x: Tensor, source: KeyValue, mask: Tensor | None, training: bool | None = None
    ) -> tuple[Tensor, Tensor]:
        attention, residual = self.cross_attention, self.cross_attention_residual
        query = attention.project_query(residual.enter(x))
        y, weights = attention.attend(query, *source, mask, training=training)
        x = residual.leave(x, y, training)
        return self._feed_forward_sublayer(x, training), weights

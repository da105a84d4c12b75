"""The softmax of equation 1, over the keys that a query may see."""

from typing import TypeAlias

import keras
from keras import ops

Tensor: TypeAlias = keras.KerasTensor

# Finite, so that a row without a single live key is no 0/0; only ever in float32.
_HIDDEN = -1e30


def masked_softmax(scores: Tensor, attention_mask: Tensor | None) -> Tensor:
    """Weights that sum to 1 over the last axis; of a query that may see nothing, zeros.

    Args:
        scores: (B, N, T, S) float32.
        attention_mask: (B, T, S) bool or anything that broadcasts to it, True = may attend.

    Returns:
        (B, N, T, S) float32.
    """
    if attention_mask is None:
        return _softmax(scores)
    mask = ops.expand_dims(ops.cast(attention_mask, "bool"), 1)  # (B, 1, T, S)
    # A select, not a sum: a hidden score may be anything, in float16 also inf.
    weights = _softmax(ops.where(mask, scores, _HIDDEN))
    return weights * ops.cast(ops.any(mask, axis=-1, keepdims=True), "float32")


def _softmax(scores: Tensor) -> Tensor:
    # Keras warns of a softmax over one place, which the first step of decoding is.
    return ops.ones_like(scores) if scores.shape[-1] == 1 else ops.softmax(scores, axis=-1)

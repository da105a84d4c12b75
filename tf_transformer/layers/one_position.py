"""Attention of one new position of each hypothesis: states are rows (R, D), without a time axis.

The same arithmetic as `MultiHeadAttention.call`. A dense layer of a matrix is one operation in
TensorFlow, of a tensor with three axes a dozen: a sixth of the time of a small model's greedy
search.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import keras
from keras import ops

from tf_transformer.layers.attention import MultiHeadAttention, scaled_dot_product_attention

Tensor: TypeAlias = keras.KerasTensor
KeyValue = tuple[Tensor, Tensor]
Projection = tuple[Tensor, Tensor | None]  # kernel and bias


def join_projections(attention: MultiHeadAttention) -> Projection:
    """Those of self-attention side by side: query, key and value are one product of (R, D)."""
    dense = attention.query, attention.key, attention.value
    kernel = ops.concatenate([ops.convert_to_tensor(each.kernel) for each in dense], axis=1)
    if not attention.use_bias:
        return kernel, None
    return kernel, ops.concatenate([ops.convert_to_tensor(each.bias) for each in dense], axis=0)


def attend_cache(
    attention: MultiHeadAttention,
    joined: Projection,
    x: Tensor,
    cache: KeyValue,
    index: Any,
    append: Callable[[Tensor, Tensor], Tensor],
    mask: Tensor | None,
) -> tuple[Tensor, KeyValue, Tensor]:
    """Self-attention of the position `index`.

    Args:
        attention: built, of self-attention.
        joined: from `join_projections` of it.
        x: (R, D).
        cache: keys and values of the positions before, (R, N, t, H).
        index: int32 scalar.
        append: writes the new position (R, N, 1, H) into a cache.
        mask: (R, 1, t) bool over the cache with the new position, or None.

    Returns:
        The output (R, D), the longer caches, and the weights (R, N, 1, t) float32.
    """
    position = attention.position
    query, key, value = _project(attention, joined, x)
    if position is not None:
        query, key = position.rotate(query, index), position.rotate(key, index)
    cache = append(cache[0], key), append(cache[1], value)
    bias = None if position is None else position.score_bias(query, cache[0], index)
    context, weights = scaled_dot_product_attention(query, *cache, mask, bias)
    if position is not None:
        context = position.add_to_context(context, weights, index)
    return attention.output_projection(_joined(context)), cache, weights


def attend_source(
    attention: MultiHeadAttention, x: Tensor, source: KeyValue, mask: Tensor | None, beams: Any
) -> tuple[Tensor, Tensor]:
    """Attention over the source, which the K hypotheses of a sentence share: no copy per beam.

    Args:
        attention: built, of attention over the source.
        x: (B * K, D).
        source: keys and values (B, N, S, H).
        mask: (B, 1, S) bool, or None.
        beams: K.

    Returns:
        The output (B * K, D), and the weights (B, N, K, S) float32.
    """
    query = _heads(attention, attention.query(x), beams)  # the beams are the query axis
    context, weights = scaled_dot_product_attention(query, *source, mask)
    return attention.output_projection(_joined(context)), weights


def _project(attention: MultiHeadAttention, joined: Projection, x: Tensor) -> list[Tensor]:
    """(R, D) -> heads of query, key and value, each (R, N, 1, H)."""
    kernel, bias = joined
    projected = ops.matmul(x, ops.cast(kernel, x.dtype))
    if bias is not None:
        projected = ops.add(projected, ops.cast(bias, x.dtype))
    keys = attention.key.units
    parts = ops.split(projected, [keys, 2 * keys], axis=-1)
    return [_heads(attention, part) for part in parts]


def _heads(attention: MultiHeadAttention, x: Tensor, queries: Any = 1) -> Tensor:
    """(B * T, N * H) -> (B, N, T, H); of one query nothing changes its place."""
    num_heads = attention.num_heads
    sizes = num_heads, x.shape[-1] // num_heads
    if isinstance(queries, int) and queries == 1:
        return ops.reshape(x, (-1, sizes[0], 1, sizes[1]))
    return ops.transpose(ops.reshape(x, (-1, queries, *sizes)), (0, 2, 1, 3))


def _joined(context: Tensor) -> Tensor:
    """(B, N, T, H) -> (B * T, N * H)."""
    width = context.shape[1] * context.shape[3]
    if context.shape[2] != 1:
        context = ops.transpose(context, (0, 2, 1, 3))
    return ops.reshape(context, (-1, width))

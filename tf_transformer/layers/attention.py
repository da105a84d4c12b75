"""Scaled dot-product attention (eq. 1) and multi-head attention (section 3.2.2)."""

from collections.abc import Callable
from typing import Any, TypeAlias

import keras
from keras import ops

from tf_transformer.layers import positions
from tf_transformer.layers.masked_softmax import masked_softmax

Tensor: TypeAlias = keras.KerasTensor


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None = None,
    bias: Tensor | None = None,
    dropout: Callable[[Tensor], Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """softmax(Q K^T / sqrt(d_k)) V, equation 1 of the paper.

    The product runs in the dtype of `query`, the softmax in float32 always. A query that may see
    no key at all gets weights and context of zeros.

    Args:
        query: (B, N, T, H).
        key: (B, N, S, H).
        value: (B, N, S, H), its H may differ from the keys'.
        attention_mask: (B, T, S) bool or anything that broadcasts to it, True = may attend.
        bias: (B, N, T, S) added to the scaled scores (relative positions), or None.
        dropout: applied to the weights before they meet the values, or None.

    Returns:
        The context (B, N, T, H) and the weights (B, N, T, S), float32 and before dropout.

    >>> one = ops.ones((1, 1, 2, 4))
    >>> _, weights = scaled_dot_product_attention(one, one, one, ops.array([[[True, False]]]))
    >>> weights.numpy().tolist()
    [[[[1.0, 0.0], [1.0, 0.0]]]]
    """
    query = query * (query.shape[-1] ** -0.5)  # before the product: less overflow in float16
    scores = _products(query, key)  # (B, N, T, S)
    scores = ops.cast(scores, "float32")
    if bias is not None:
        scores = scores + ops.cast(bias, "float32")
    weights = masked_softmax(scores, attention_mask)
    dropped = weights if dropout is None else dropout(weights)
    return ops.matmul(ops.cast(dropped, value.dtype), value), weights


def _products(query: Tensor, key: Tensor) -> Tensor:
    if query.shape[2] == 1:  # as a column, so that no key is moved; it is a row already
        return ops.swapaxes(ops.matmul(key, ops.swapaxes(query, -1, -2)), -1, -2)
    return ops.matmul(query, ops.swapaxes(key, -1, -2))


@keras.saving.register_keras_serializable("tf_transformer")
class MultiHeadAttention(keras.layers.Layer):
    """Concat(head_1, ..., head_h) W^O, section 3.2.2.

    `call` is `attend(project_query(query), *project_key_value(value), mask)`; the parts are public
    because cached decoding composes them one position at a time.

    Args:
        num_heads: N (the paper's h).
        head_dim: width of a query and key head, H (d_k); default the query's width / `num_heads`.
        value_dim: width of a value head (d_v); default the query's width / `num_heads`.
        use_bias: biases in the four projections.
        dropout: rate on the attention weights.
        position: a scheme that acts inside attention (`"relative"`, `"rotary"`, an instance), or
            None.

    Call arguments:
        query: (B, T, D).
        value: (B, S, D), keys and values; the query itself in self-attention.
        attention_mask: (B, T, S) bool or broadcastable, True = may attend; None hides nothing.

    Returns:
        (B, T, D) in the compute dtype.

    >>> MultiHeadAttention(num_heads=2)(ops.ones((1, 3, 8)), ops.ones((1, 5, 8))).shape
    TensorShape([1, 3, 8])
    """

    def __init__(
        self,
        num_heads: int,
        head_dim: int | None = None,
        value_dim: int | None = None,
        use_bias: bool = True,
        dropout: float = 0.0,
        position: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.head_dim = head_dim
        self.value_dim = value_dim
        self.use_bias = use_bias
        self.dropout = dropout
        self.position = positions.get(position, dtype=self.dtype_policy)
        if self.position is not None and not self.position.in_attention:
            raise ValueError(
                f"{self.name}: `position` must be a scheme that acts inside attention, relative or "
                f"rotary; others are added to embeddings. Received: {position!r}"
            )
        self.weight_dropout = keras.layers.Dropout(dropout, dtype="float32", name="dropout")

    def build(self, query_shape: tuple, value_shape: tuple | None = None) -> None:
        """Makes the projections for query (B, T, D) and value (B, S, D)."""
        width = query_shape[-1]
        if width % self.num_heads and None in (self.head_dim, self.value_dim):
            raise ValueError(
                f"{self.name}: the query's width must be divisible by `num_heads` unless "
                "`head_dim` and `value_dim` are given. Received: query shape "
                f"{tuple(query_shape)}, num_heads={self.num_heads}"
            )
        value_shape = value_shape or query_shape
        head_dim = self.head_dim or width // self.num_heads
        value_dim = self.value_dim or width // self.num_heads
        keys_width, values_width = self.num_heads * head_dim, self.num_heads * value_dim
        self.query = self._project(keys_width, "query", query_shape)
        self.key = self._project(keys_width, "key", value_shape)
        self.value = self._project(values_width, "value", value_shape)
        self.output_projection = self._project(width, "output", (*query_shape[:-1], values_width))
        if self.position is not None:
            self.position.value_dim = value_dim
            self.position.build((None, self.num_heads, None, head_dim))
        self.built = True

    def call(
        self,
        query: Tensor,
        value: Tensor,
        attention_mask: Tensor | None = None,
        training: bool | None = None,
    ) -> Tensor:
        """See the class."""
        key, value = self.project_key_value(value)
        return self.attend(self.project_query(query), key, value, attention_mask, 0, training)[0]

    def project_query(self, query: Tensor, start: Any = 0) -> Tensor:
        """(B, T, D) at positions `start`, `start` + 1, ... -> heads (B, N, T, H)."""
        heads = self._split(self.query(query))
        return heads if self.position is None else self.position.rotate(heads, start)

    def project_key_value(self, value: Tensor, start: Any = 0) -> tuple[Tensor, Tensor]:
        """(B, S, D) at positions `start`, ... -> key and value heads, each (B, N, S, H)."""
        heads = self._split(self.key(value))
        if self.position is not None:
            heads = self.position.rotate(heads, start)
        return heads, self._split(self.value(value))

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None = None,
        start: Any = 0,
        training: bool | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Heads of queries at positions `start`, ... over heads of keys at 0, 1, ...

        Returns:
            The output (B, T, D) and the weights (B, N, T, S), float32 and before dropout.
        """
        bias = None if self.position is None else self.position.score_bias(query, key, start)
        dropped: list[Tensor] = []  # relative positions must meet the weights that the values met

        def drop(weights: Tensor) -> Tensor:
            dropped.append(self.weight_dropout(weights, training=training))
            return dropped[0]

        context, weights = scaled_dot_product_attention(
            query, key, value, attention_mask, bias, drop
        )  # (B, N, T, H)
        if self.position is not None:
            context = self.position.add_to_context(context, dropped[0], start)
        context = ops.transpose(context, (0, 2, 1, 3))  # (B, T, N, H)
        width = context.shape[2] * context.shape[3]
        joined = ops.reshape(context, (*ops.shape(context)[:2], width))
        return self.output_projection(joined), weights

    def compute_output_shape(self, query_shape: tuple, value_shape: tuple | None = None) -> tuple:
        """(B, T, D), the query's."""
        return query_shape

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "head_dim": self.head_dim,
            "value_dim": self.value_dim,
            "use_bias": self.use_bias,
            "dropout": self.dropout,
            "position": positions.serialize(self.position),
        }

    def _project(self, width: int, name: str, input_shape: tuple) -> keras.layers.Dense:
        dense = keras.layers.Dense(
            width, use_bias=self.use_bias, dtype=self.dtype_policy, name=name
        )
        dense.build(input_shape)
        return dense

    def _split(self, x: Tensor) -> Tensor:
        shape = (*ops.shape(x)[:2], self.num_heads, x.shape[-1] // self.num_heads)
        return ops.transpose(ops.reshape(x, shape), (0, 2, 1, 3))  # (B, N, T, H)

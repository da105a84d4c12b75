"""Token embedding and the pre-softmax projection that shares its table (section 3.4)."""

from typing import Any, TypeAlias

import keras
from keras import ops

Tensor: TypeAlias = keras.KerasTensor


@keras.saving.register_keras_serializable("tf_transformer")
class TokenEmbedding(keras.layers.Layer):
    """Rows of a table times sqrt(d_model); with `reverse=True`, logits from the same table.

    The factor belongs to the embedding alone: the projection is not scaled. Logits are float32
    under any precision policy.

    Args:
        vocabulary_size: V, any number (NumPy and tensor scalars too).
        hidden_dim: D (d_model).
        tie_weights: share the table with the projection; else the projection has its own.
        output_bias: add a bias (V,) to the logits.
        pad_vocabulary_to: make the table's rows a multiple of this; logits keep V columns.

    Call arguments:
        inputs: ids (B, T) integer, or with `reverse` states (B, T, D).
        reverse: give logits. Like `keras.layers.ReversibleEmbedding`.

    Returns:
        (B, T, D) in the compute dtype, or logits (B, T, V) float32.

    >>> embedding = TokenEmbedding(vocabulary_size=11, hidden_dim=4)
    >>> embedding(embedding(ops.array([[7, 8, 3]])), reverse=True).shape
    TensorShape([1, 3, 11])
    """

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        tie_weights: bool = True,
        output_bias: bool = False,
        pad_vocabulary_to: int = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.vocabulary_size = int(vocabulary_size)
        self.hidden_dim = int(hidden_dim)
        self.tie_weights = tie_weights
        self.output_bias = output_bias
        self.pad_vocabulary_to = pad_vocabulary_to

    def build(self, input_shape: tuple | None = None) -> None:
        """Makes the table; the shape of the ids does not matter."""
        rows = -(-self.vocabulary_size // self.pad_vocabulary_to) * self.pad_vocabulary_to
        # N(0, d_model^-0.5): the scaled embedding then has the spread of the position table, and
        # the logits of the tied projection start near 0.
        normal = keras.initializers.RandomNormal(stddev=self.hidden_dim**-0.5)
        self.table = self.add_weight((rows, self.hidden_dim), initializer=normal, name="table")
        if not self.tie_weights:
            self.projection = self.add_weight(
                (self.hidden_dim, rows), initializer="glorot_uniform", name="projection"
            )
        if self.output_bias:
            self.bias = self.add_weight((rows,), initializer="zeros", name="bias")
        self.built = True

    def call(self, inputs: Tensor, reverse: bool = False) -> Tensor:
        """See the class."""
        return self.logits(inputs, self.output_kernel()) if reverse else self.embed(inputs)

    def embed(self, token_ids: Tensor) -> Tensor:
        """Ids (B, T) -> (B, T, D): table rows times sqrt(D)."""
        rows = ops.take(ops.convert_to_tensor(self.table), token_ids, axis=0)
        return ops.cast(rows, self.compute_dtype) * (self.hidden_dim**0.5)

    def output_kernel(self) -> Tensor:
        """(D, V padded): decoding takes it once and multiplies it at every position."""
        if self.tie_weights:
            return ops.transpose(ops.convert_to_tensor(self.table))
        return ops.convert_to_tensor(self.projection)

    def logits(self, states: Tensor, kernel: Tensor) -> Tensor:
        """States (..., D) and `output_kernel()` -> (..., V) float32."""
        self._check_width(states)
        logits = ops.matmul(states, ops.cast(kernel, states.dtype))
        logits = ops.cast(logits, "float32")
        if self.output_bias:
            logits = logits + ops.cast(self.bias, "float32")
        padded = kernel.shape[-1] != self.vocabulary_size
        return logits[..., : self.vocabulary_size] if padded else logits

    def compute_output_spec(self, inputs: Tensor, reverse: bool = False) -> Tensor:
        """(B, T, D), or (B, T, V) float32 with `reverse`."""
        if not reverse:
            return keras.KerasTensor((*inputs.shape, self.hidden_dim), self.compute_dtype)
        self._check_width(inputs)
        return keras.KerasTensor((*inputs.shape[:-1], self.vocabulary_size), "float32")

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "hidden_dim": self.hidden_dim,
            "tie_weights": self.tie_weights,
            "output_bias": self.output_bias,
            "pad_vocabulary_to": self.pad_vocabulary_to,
        }

    def _check_width(self, states: Tensor) -> None:
        if states.shape[-1] != self.hidden_dim:
            raise ValueError(
                f"{self.name}: states must be {self.hidden_dim} wide, as the table is. "
                f"Received: shape {tuple(states.shape)}"
            )

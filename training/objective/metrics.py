"""What is logged and compared: sums over real tokens, whatever the batches."""

from typing import Any, TypeAlias

import keras
from keras import ops

from .cross_entropy import live_mask, token_cost

Tensor: TypeAlias = keras.KerasTensor


class TokenMean(keras.metrics.Mean):
    """A mean over real target tokens: each counts once, pads and batch sizes do not."""

    def update_state(self, y_true: Tensor, y_pred: Tensor, sample_weight: Any = None) -> None:
        """Adds a batch: ids (B, T), 0 = pad, and logits (B, T, V).

        `sample_weight` is Keras's; tokens are counted whole.
        """
        y_true = ops.convert_to_tensor(y_true)
        mask = live_mask(y_true, y_pred)
        values = self.values(y_true, y_pred, mask)
        # Flat, since Keras's Mean first averages over all axes but the first: rows, not tokens.
        mask = ops.cast(ops.reshape(mask, (-1,)), "float32")
        super().update_state(ops.reshape(values, (-1,)), sample_weight=mask)

    def values(self, labels: Tensor, logits: Tensor, mask: Tensor) -> Tensor:
        """The value of every place (B, T) float32, 0 where `mask` is False."""
        raise NotImplementedError


@keras.saving.register_keras_serializable("tf_transformer")
class TokenNLL(TokenMean):
    """-log p of a token in nats, without label smoothing.

    >>> metric = TokenNLL()
    >>> metric.update_state(ops.array([[4, 0]]), ops.zeros((1, 2, 8)))
    >>> f"{float(metric.result()):.4f}"  # ln 8
    '2.0794'
    """

    def __init__(self, name: str = "nll", **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)

    def values(self, labels: Tensor, logits: Tensor, mask: Tensor) -> Tensor:
        """-log p(label), (B, T)."""
        return token_cost(labels, logits, mask)


@keras.saving.register_keras_serializable("tf_transformer")
class Perplexity(TokenNLL):
    """exp of the mean -log p of a token; never of the smoothed loss."""

    def __init__(self, name: str = "perplexity", **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)

    def result(self) -> Tensor:
        """exp(mean NLL)."""
        return ops.exp(super().result())


@keras.saving.register_keras_serializable("tf_transformer")
class TokenAccuracy(TokenMean):
    """Share of real tokens whose label is the most likely id."""

    def __init__(self, name: str = "accuracy", **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)

    def values(self, labels: Tensor, logits: Tensor, mask: Tensor) -> Tensor:
        """1 where right, (B, T)."""
        return _is_right(labels, logits, mask)


@keras.saving.register_keras_serializable("tf_transformer")
class TokenTotals(keras.metrics.Metric):
    """Loss, NLL and accuracy of the mean real token, from sums that `of` makes of each batch.

    The sums are of all replicas: each keeps them whole, and reading them asks no other.
    """

    def __init__(self, name: str = "totals", **kwargs: Any) -> None:
        # float32 would stop counting at 16.8 million tokens an epoch.
        super().__init__(name=name, dtype=kwargs.pop("dtype", "float64"), **kwargs)
        self.sums = self.add_variable(
            (4,), "zeros", dtype=self.dtype, aggregation="only_first_replica", name="sums"
        )

    @staticmethod
    def zeros() -> Tensor:
        """The sums of nothing, (4,) float32."""
        return ops.zeros((4,), "float32")

    @staticmethod
    def of(labels: Tensor, logits: Tensor, cost: Tensor, tokens: Tensor) -> Tensor:
        """The sums of a batch, (4,) float32: cost, NLL, right ones and tokens.

        Args:
            labels: ids (B, T), 0 = pad; where a token is there twice (R-Drop) it counts half.
            logits: (B, T, V).
            cost: of the loss, summed over the tokens; a scalar.
            tokens: how many; a scalar.
        """
        mask = live_mask(labels, logits)
        share = ops.divide_no_nan(tokens, ops.sum(ops.cast(mask, "float32")))
        nll = ops.sum(token_cost(labels, logits, mask))
        right = ops.sum(_is_right(labels, logits, mask))
        return ops.stack([cost, share * nll, share * right, tokens])

    def update_state(self, sums: Tensor) -> None:
        """Adds the sums of a batch."""
        self.sums.assign_add(ops.cast(sums, self.dtype))

    def result(self) -> dict[str, Tensor]:
        """`loss`, `nll` and `accuracy`, float32 scalars."""
        sums = ops.convert_to_tensor(self.sums)
        means = ops.cast(ops.divide_no_nan(sums[:3], sums[3]), "float32")
        return {"loss": means[0], "nll": means[1], "accuracy": means[2]}


def _is_right(labels: Tensor, logits: Tensor, mask: Tensor) -> Tensor:
    best = ops.argmax(logits, axis=-1)
    return ops.cast(ops.logical_and(mask, ops.equal(best, ops.cast(labels, best.dtype))), "float32")

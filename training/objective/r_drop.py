"""R-Drop: two passes with other dropout must agree (Liang et al. 2021, arXiv 2106.14448)."""

from typing import Any, TypeAlias

import keras
from keras import ops

from .cross_entropy import live_mask

Tensor: TypeAlias = keras.KerasTensor


def twice(batch: Any) -> Any:
    """A batch with all its rows a second time behind them: (B, ...) -> (2B, ...)."""

    def both(x: Any) -> Any:
        return None if x is None else ops.concatenate([x, x], axis=0)

    return keras.tree.map_structure(both, batch)


def divergence(labels: Tensor, logits: Tensor) -> Tensor:
    """Half the symmetric KL divergence of the two passes at every place, (B, T), 0 at pads.

    (KL(p || q) + KL(q || p)) / 2 of a token, where p and q are the two passes' distributions. It
    is sum_v (p - q) (a - b) / 2 with their logits a and b, as the normalisers cancel.

    Args:
        labels: ids (2B, T), 0 = pad; the second half equal to the first.
        logits: (2B, T, V) of `twice` a batch, any float; the arithmetic is float32.

    >>> two = ops.array([[[2.0, 0.0]], [[0.0, 0.0]]])  # softmax 0.8808 and 0.5
    >>> f"{float(divergence(ops.array([[1], [1]]), two)[0, 0]):.4f}"  # (0.8808 - 0.5) * 2 / 2
    '0.3808'
    """
    first, second = ops.split(ops.cast(logits, "float32"), 2, axis=0)
    mask = ops.split(live_mask(ops.convert_to_tensor(labels), logits), 2, axis=0)[0]
    change = (ops.softmax(first) - ops.softmax(second)) * (first - second)
    return ops.where(mask, ops.sum(change, axis=-1) / 2, 0.0)

"""The only place where masks are made. bool, True = may attend / is a real token."""

import keras
from keras import ops

from tf_transformer.config import PAD_ID


def padding_mask(token_ids: keras.KerasTensor) -> keras.KerasTensor:
    """Which places hold a real token: (B, S) ids -> (B, S) bool.

    >>> padding_mask(ops.array([[7, 8, 0]])).numpy().tolist()
    [[True, True, False]]
    """
    return ops.not_equal(token_ids, PAD_ID)


def causal_mask(length: int) -> keras.KerasTensor:
    """Which keys a query may see, itself and earlier (section 3.2.3): (1, T, T) bool.

    >>> causal_mask(3).numpy().astype(int).tolist()
    [[[1, 0, 0], [1, 1, 0], [1, 1, 1]]]
    """
    place = ops.arange(length)
    return ops.expand_dims(ops.expand_dims(place, 1) >= ops.expand_dims(place, 0), 0)


def attention_mask(
    key_padding_mask: keras.KerasTensor | None, causal_length: int | None = None
) -> keras.KerasTensor | None:
    """One mask for attention out of its two reasons.

    Args:
        key_padding_mask: (B, S) bool, or None where every key is real.
        causal_length: T where a query must not see later keys (then S = T), else None.

    Returns:
        (B, 1, S), (B, T, T) or (1, T, T) bool, or None when nothing is hidden.
    """
    if key_padding_mask is None:
        return None if causal_length is None else causal_mask(causal_length)
    keys = ops.expand_dims(ops.cast(key_padding_mask, "bool"), 1)  # (B, 1, S)
    return keys if causal_length is None else ops.logical_and(keys, causal_mask(causal_length))

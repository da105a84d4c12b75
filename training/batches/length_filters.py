"""Pairs that are left out for their lengths: never cut, and counted."""

import logging

import numpy as np

from tf_transformer.errors import InputError

TOO_LONG, UNEQUAL = "too long", "too unequal"

_log = logging.getLogger(__name__)


def keep(
    lengths: tuple[np.ndarray, np.ndarray], limit: int, max_ratio: float | None, name: str
) -> tuple[np.ndarray, dict[str, int]]:
    """The numbers of the pairs that stay, and how many do not, by reason.

    Args:
        lengths: int (pairs,) each, the tokens of source and target, END counted.
        limit: most tokens of a side.
        max_ratio: most tokens of the longer side for each of the shorter; None for any.
        name: what messages call the corpus.

    Raises:
        InputError: none stays.
    """
    longer, shorter = np.maximum(*lengths), np.minimum(*lengths)
    too_long = longer > limit
    unequal = np.zeros_like(too_long) if max_ratio is None else longer > max_ratio * shorter
    unequal &= ~too_long
    kept = np.flatnonzero(~too_long & ~unequal)
    total = len(longer)
    dropped = {TOO_LONG: int(too_long.sum()), UNEQUAL: int(unequal.sum())}
    if not len(kept):
        raise InputError(
            f"{name}: no pair is left, all {total} have more than {limit} tokens on a side (the "
            "smaller of max_length and batch_tokens)"
            + (f" or {max_ratio:g} times as many as on the other." if unequal.any() else ".")
        )
    if dropped[TOO_LONG]:
        _log.info(
            "%s: %d of %d pairs have more than %d tokens on a side and are left out.",
            *(name, dropped[TOO_LONG], total, limit),
        )
    if dropped[UNEQUAL]:
        _log.info(
            "%s: %d of %d pairs are more than %g times as long on one side and are left out.",
            *(name, dropped[UNEQUAL], total, max_ratio),
        )
    return kept, {reason: count for reason, count in dropped.items() if count}

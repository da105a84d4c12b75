"""Requests for any signature, made from the types and shapes of its inputs alone."""

from typing import Any

import numpy as np
import tensorflow as tf

from .answers import Request
from .meta_graph import MetaGraph, different_signatures

TEXTS = [
    *(text.encode() for text in ("", " ", " \t ", "a", "a\0b", "Je suis étudiant.", "x" * 60)),
    *(text.encode() for text in ("Ωμέγα, 漢字 and 😀!", "one two three four five six, " * 6)),
    b"not \xff\xfe UTF-8",
]
_WIDTH = 5  # of an axis whose size is free


def probes(graph: MetaGraph) -> list[Request]:
    """For each signature many rows, one row and no row: texts of every kind, small numbers.

    Of signatures that are one function the first is asked.
    """
    return [
        Request(name, {key: _values(x, rows) for key, x in sorted(signature.inputs.items())})
        for name, signature in different_signatures(graph).items()
        for rows in (len(TEXTS), 1, 0)
    ]


def plain(request: Request) -> Request:
    """The same with zeros for numbers and one short text: what most models accept."""
    inputs = {
        key: np.full(x.shape, b"a", object) if x.dtype == object else np.zeros_like(x)
        for key, x in request.inputs.items()
    }
    return Request(request.signature, inputs)


def _values(tensor: Any, rows: int) -> np.ndarray:
    sizes = [dim.size for dim in tensor.tensor_shape.dim]
    if tensor.tensor_shape.unknown_rank:
        sizes = [-1]
    shape = [_WIDTH if size < 0 else size for size in sizes]
    if sizes and sizes[0] < 0:
        shape[0] = rows
    dtype = tf.dtypes.as_dtype(tensor.dtype)
    count = int(np.prod(shape))
    if dtype == tf.string:
        return np.array([TEXTS[place % len(TEXTS)] for place in range(count)], object).reshape(
            shape
        )
    if dtype.is_floating:
        return np.random.default_rng(0).normal(size=shape).astype(dtype.as_numpy_dtype)
    return (np.arange(count).reshape(shape) * 3 % 40).astype(dtype.as_numpy_dtype)

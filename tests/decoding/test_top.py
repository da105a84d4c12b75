"""Blocked top-k against TensorFlow's own, bit for bit."""

import numpy as np
import pytest
import tensorflow as tf

from tf_transformer.decoding.top import top_k


@pytest.mark.parametrize("k", [1, 8, 250])
@pytest.mark.parametrize("size", [8000, 4093, 300])  # 4093 is prime
@pytest.mark.parametrize("kind", ["spread", "ties", "mostly nothing"])
def test_it_is_tensorflows(kind, size, k):
    random = np.random.default_rng(size + k)
    values = random.normal(size=(13, size)).astype("float32")
    if kind == "ties":
        values = random.integers(0, 4, size=(13, size)).astype("float32")
        values[0], values[1, size // 2 :] = 1.0, 7.0
    elif kind == "mostly nothing":
        values[random.random(values.shape) < 0.999] = -np.inf
        values[0] = -np.inf
    found, expected = top_k(tf.constant(values), k), tf.math.top_k(tf.constant(values), k)
    np.testing.assert_array_equal(found[0], expected.values)
    is_any = expected.values.numpy() > -np.inf
    np.testing.assert_array_equal(found[1].numpy()[is_any], expected.indices.numpy()[is_any])
    assert (0 <= found[1].numpy()).all() and (found[1].numpy() < size).all()

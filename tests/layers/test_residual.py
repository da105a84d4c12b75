"""Section 3.1's residual connection and LayerNorm, and section 5.4's dropout in it."""

import keras
import numpy as np
import pytest

from tests import oracle
from tests.weights import fill_with_random, norm_weights
from tf_transformer.layers import Residual

B, T, D = 2, 4, 6


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def make_residual(**arguments):
    layer = Residual(**arguments)
    layer.build((None, None, D))
    fill_with_random(layer, 2)
    return layer


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.5])
@pytest.mark.parametrize("norm_first", [False, True])
def test_residual_equals_the_oracle(norm_first, epsilon):
    layer = make_residual(norm_first=norm_first, epsilon=epsilon)
    x, kernel = draw(B, T, D), draw(D, D, seed=1)
    expected = oracle.residual(
        x, lambda h: h @ kernel, norm_weights(layer.norm), norm_first, epsilon
    )
    output = layer(x, sublayer=lambda h: keras.ops.matmul(h, kernel))
    np.testing.assert_allclose(output, expected, atol=1e-5)


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_row_without_variance_stays_finite(norm_first):
    layer = make_residual(norm_first=norm_first)
    output = np.asarray(layer(np.full((1, 1, D), 7.0, "float32"), sublayer=lambda h: h * 0.0))
    assert np.isfinite(output).all()


def test_dropout_is_on_the_sublayer_output_and_not_on_x():
    layer = make_residual(dropout=0.5, norm_first=True)
    x = draw(B, T, D)
    np.testing.assert_array_equal(layer(x, sublayer=lambda h: h * 0.0, training=True), x)
    dropped = np.asarray(layer(x, sublayer=lambda h: h * 0.0 + 1.0, training=True)) - x
    assert set(np.round(np.unique(dropped), 4)) == {0.0, 2.0}
    np.testing.assert_allclose(layer(x, sublayer=lambda h: h * 0.0 + 1.0), x + 1.0, atol=1e-6)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_half_precision_stays_near_float32(policy):
    full, half = make_residual(), make_residual(dtype=policy)
    half.set_weights(full.get_weights())
    x = draw(B, T, D)
    output = half(x, sublayer=lambda h: h)
    assert output.dtype == policy.removeprefix("mixed_")
    np.testing.assert_allclose(
        np.asarray(output, "float32"), full(x, sublayer=lambda h: h), atol=2e-2, rtol=2e-2
    )


def test_config_and_shapes():
    layer = make_residual(dropout=0.2, norm_first=True, epsilon=1e-5, name="mine")
    again = Residual.from_config(layer.get_config())
    assert again.get_config() == layer.get_config()
    assert (again.dropout, again.norm_first, again.epsilon) == (0.2, True, 1e-5)
    assert layer.count_params() == 2 * D
    assert layer(keras.Input((None, D)), sublayer=lambda h: h).shape == (None, None, D)

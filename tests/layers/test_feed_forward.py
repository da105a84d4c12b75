"""Equation 2 and its variants against the oracle."""

import numpy as np
import pytest

from tests import oracle
from tests.layers.checks import check_layer
from tests.weights import feed_forward_weights, fill_with_random
from tf_transformer.layers import FeedForward

B, T, D, F = 2, 5, 6, 10


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def make_feed_forward(**arguments):
    layer = FeedForward(F, **arguments)
    layer.build((None, None, D))
    fill_with_random(layer, 2)
    return layer


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu", "swish"])
def test_feed_forward_equals_the_oracle(activation, gated):
    layer = make_feed_forward(activation=activation, gated=gated)
    x = draw(B, T, D)
    expected = oracle.feed_forward(x, feed_forward_weights(layer), activation)
    np.testing.assert_allclose(layer(x), expected, atol=1e-5)


def test_every_position_is_transformed_alone():
    layer = make_feed_forward()
    x = draw(B, T, D)
    alone = [np.asarray(layer(x[:, i : i + 1])) for i in range(T)]
    np.testing.assert_allclose(layer(x), np.concatenate(alone, axis=1), atol=1e-6)


def test_dropout_is_inside_and_in_training_only():
    layer, x = make_feed_forward(dropout=0.5), draw(B, T, D)
    np.testing.assert_array_equal(layer(x), make_feed_forward()(x))
    assert np.abs(np.asarray(layer(x, training=True)) - np.asarray(layer(x))).max() > 1e-2
    layer.outer.kernel.assign(np.zeros((F, D)))  # nothing behind the last projection is dropped
    np.testing.assert_array_equal(layer(x, training=True), layer(x))


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("activation", ["relu", "swish"])
def test_is_a_good_keras_layer(activation, gated, tmp_path):
    parameters = (D * F + F) * (2 if gated else 1) + F * D + D
    arguments = {"intermediate_dim": F, "activation": activation, "gated": gated, "dropout": 0.1}
    check_layer(FeedForward, arguments, {"x": draw(B, T, D)}, (B, T, D), parameters, tmp_path)


def test_a_wrong_width_is_refused_by_name():
    with pytest.raises(ValueError, match=r"(?s)inner.*6.*\(2, 5, 7\)"):
        make_feed_forward()(draw(B, T, D + 1))

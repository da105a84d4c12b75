"""Section 3.4: the factor sqrt(d_model), the shared table, the padded vocabulary."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import oracle
from tests.layers.checks import check_layer
from tests.weights import fill_with_random
from tf_transformer.layers import TokenEmbedding

IDS = np.array([[4, 9, 10, 0], [1, 2, 3, 7]], "int32")


def make_embedding(**arguments):
    layer = TokenEmbedding(**{"vocabulary_size": 11, "hidden_dim": 6, **arguments})
    layer.build((None, None))
    fill_with_random(layer, 3)
    return layer


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def test_embedding_equals_the_oracle():
    layer = make_embedding()
    expected = oracle.embed(IDS, np.asarray(layer.table.value))
    np.testing.assert_allclose(layer(IDS), expected, atol=1e-5)


@pytest.mark.parametrize("output_bias", [False, True])
@pytest.mark.parametrize("tie_weights", [False, True])
@pytest.mark.parametrize("pad_vocabulary_to", [1, 8])
def test_logits_equal_the_oracle(tie_weights, output_bias, pad_vocabulary_to):
    layer = make_embedding(
        tie_weights=tie_weights, output_bias=output_bias, pad_vocabulary_to=pad_vocabulary_to
    )
    table = np.asarray(layer.table.value if tie_weights else layer.projection.value.numpy().T)
    bias = np.asarray(layer.bias.value)[:11] if output_bias else 0.0
    states = draw(2, 3, 6)
    expected = oracle.logits(states, table[:11], bias)
    logits = np.asarray(layer(states, reverse=True))
    assert logits.shape == (2, 3, 11) and logits.dtype == np.float32
    np.testing.assert_allclose(logits, expected, atol=1e-5)


@pytest.mark.case("05")
@pytest.mark.parametrize("output_bias", [False, True])
def test_the_factor_is_on_the_embedding_and_not_on_the_logits(output_bias):
    layer = make_embedding(hidden_dim=16, output_bias=output_bias)
    table = layer.table.value.numpy()
    table[7] = 1.0
    layer.table.assign(table)
    np.testing.assert_array_equal(np.asarray(layer(np.array([[7]])))[0, 0], np.full(16, 4.0))
    logit = np.asarray(layer(np.ones((1, 1, 16), "float32"), reverse=True))[0, 0, 7]
    bias = layer.bias.value.numpy()[7] if output_bias else 0.0
    assert logit == pytest.approx(16.0 + bias, abs=1e-5)


def test_the_table_starts_with_a_spread_of_one_by_sqrt_of_the_width():
    layer = TokenEmbedding(2_000, 64)
    layer.build((None, None))
    table = layer.table.value.numpy()
    assert table.std() == pytest.approx(64**-0.5, rel=0.02)
    assert abs(table.mean()) < 1e-3
    assert np.asarray(layer(np.arange(2_000)[None])).std() == pytest.approx(1.0, rel=0.02)


@pytest.mark.parametrize("policy", ["float32", "mixed_float16", "mixed_bfloat16"])
def test_logits_are_float32_under_any_policy(policy):
    full, half = make_embedding(), make_embedding(dtype=policy)
    half.set_weights(full.get_weights())
    states = draw(2, 3, 6)
    logits = half(states, reverse=True)
    assert logits.dtype == tf.float32
    np.testing.assert_allclose(logits, full(states, reverse=True), atol=2e-2)
    inputs = keras.Input((None, 6))
    assert half(inputs, reverse=True).dtype == "float32"


def test_doubling_a_tied_table_doubles_embedding_and_logits():
    layer, states = make_embedding(), draw(1, 2, 6)
    rows, logits = np.asarray(layer(IDS)), np.asarray(layer(states, reverse=True))
    layer.table.assign(layer.table.value * 2.0)
    np.testing.assert_allclose(layer(IDS), 2 * rows, rtol=1e-6)
    np.testing.assert_allclose(layer(states, reverse=True), 2 * logits, rtol=1e-5)


@pytest.mark.parametrize("tie_weights", [False, True])
def test_padded_rows_are_there_and_never_trained(tie_weights):
    layer = make_embedding(pad_vocabulary_to=8, tie_weights=tie_weights, output_bias=True)
    assert layer.table.shape == (16, 6)
    with tf.GradientTape() as tape:
        logits = layer(layer(IDS), reverse=True)
        loss = tf.reduce_sum(tf.nn.log_softmax(logits)[..., 5])
    for gradient in tape.gradient(loss, layer.trainable_variables):
        gradient = np.asarray(tf.convert_to_tensor(gradient))
        extra = gradient[:, 11:] if gradient.shape == (6, 16) else gradient[11:]
        assert extra.size and not extra.any()


@pytest.mark.filterwarnings("ignore:Gradients do not exist")  # only ids go through
@pytest.mark.parametrize(
    ("arguments", "parameters"),
    [
        ({}, 11 * 6),
        ({"output_bias": True}, 11 * 6 + 11),
        ({"tie_weights": False}, 2 * 11 * 6),
        ({"tie_weights": False, "output_bias": True, "pad_vocabulary_to": 8}, 2 * 16 * 6 + 16),
    ],
)
def test_is_a_good_keras_layer(arguments, parameters, tmp_path):
    arguments = {"vocabulary_size": 11, "hidden_dim": 6, **arguments}
    check_layer(TokenEmbedding, arguments, {"inputs": IDS}, (2, 4, 6), parameters, tmp_path)


@pytest.mark.case("57")
@pytest.mark.parametrize("kind", [int, np.int64, np.float32, tf.constant])
def test_the_vocabulary_size_ends_as_a_plain_number(kind):
    config = TokenEmbedding(kind(11), kind(6)).get_config()
    assert type(config["vocabulary_size"]) is int and type(config["hidden_dim"]) is int
    json.dumps(config)


def test_states_of_the_wrong_width_are_refused_by_name():
    layer = make_embedding(name="my_table")
    with pytest.raises(ValueError, match=r"my_table.*6 wide.*\(1, 2, 5\)"):
        layer(np.zeros((1, 2, 5), "float32"), reverse=True)
    with pytest.raises(ValueError, match=r"my_table.*6 wide.*5\)"):
        layer(keras.Input((None, 5)), reverse=True)

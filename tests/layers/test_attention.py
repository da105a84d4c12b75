"""Equation 1 and section 3.2.2 against the oracle; masks, dropout and precision."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import oracle
from tests.layers.checks import check_layer
from tests.weights import attention_weights, fill_with_random
from tf_transformer.layers import MultiHeadAttention, scaled_dot_product_attention
from tf_transformer.layers.masks import attention_mask

B, T, S, D = 3, 5, 7, 12


def draw(*shape, seed=0, scale=1.0):
    return np.random.default_rng(seed).normal(0.0, scale, shape).astype("float32")


def random_mask(*shape, seed=0):
    """About half of the places hidden; some rows entirely."""
    mask = np.random.default_rng(seed).random(shape) < 0.5
    mask[0, 0] = False
    return mask


def make_attention(position=None, width=D, memory_width=None, seed=1, **arguments):
    """A built layer with random weights."""
    layer = MultiHeadAttention(position=position, **{"num_heads": 3, **arguments})
    layer.build((None, None, width), (None, None, memory_width or width))
    fill_with_random(layer, seed)
    return layer


def attend(layer, query, value, mask=None, training=False):
    """Output and weights of a layer, out of its public parts."""
    heads = layer.project_query(query), *layer.project_key_value(value)
    output, weights = layer.attend(*heads, mask, 0, training)
    return np.asarray(output), np.asarray(weights)


# Equation 1


@pytest.mark.parametrize("lengths", [(1, 1), (5, 5), (4, 9)])
@pytest.mark.parametrize("masked", [False, True])
def test_scaled_dot_product_attention_equals_the_oracle(lengths, masked):
    query, key = draw(B, 2, lengths[0], 6), draw(B, 2, lengths[1], 6, seed=1)
    value = draw(B, 2, lengths[1], 3, seed=2)
    mask = random_mask(B, *lengths) if masked else None
    context, weights = scaled_dot_product_attention(query, key, value, mask)
    expected = oracle.scaled_dot_product_attention(
        query, key, value, None if mask is None else mask[:, None]
    )
    np.testing.assert_allclose(context, expected[0], atol=1e-5)
    np.testing.assert_allclose(weights, expected[1], atol=1e-5)


def test_a_row_that_may_see_nothing_gives_zeros_and_finite_gradients():
    query = tf.Variable(draw(1, 1, 2, 4))
    mask = np.array([[[False, False, False], [True, False, True]]])
    with tf.GradientTape() as tape:
        context, weights = scaled_dot_product_attention(
            query, draw(1, 1, 3, 4), draw(1, 1, 3, 4), mask
        )
        loss = tf.reduce_sum(context**2)
    assert not np.asarray(context)[0, 0, 0].any()
    assert not np.asarray(weights)[0, 0, 0].any()
    gradient = np.asarray(tape.gradient(loss, query))
    assert np.isfinite(gradient).all() and not gradient[0, 0, 0].any() and gradient[0, 0, 1].any()


@pytest.mark.parametrize("huge", [1e4, 1e15])
def test_hidden_keys_change_nothing_whatever_they_hold(huge):
    query, key, value = draw(1, 1, 2, 4), draw(1, 1, 3, 4, seed=1), draw(1, 1, 3, 4, seed=2)
    mask = np.array([[[True, True, False]]])
    before, _ = scaled_dot_product_attention(query, key, value, mask)
    key[..., 2, :], value[..., 2, :] = huge, -huge
    after, weights = scaled_dot_product_attention(query, key, value, mask)
    np.testing.assert_array_equal(after, before)
    assert not np.asarray(weights)[..., 2].any()


def test_hidden_keys_that_overflow_float16_change_nothing():
    query, key, value = (draw(1, 1, 3, 8, seed=seed).astype("float16") for seed in range(3))
    mask = np.array([[[True, True, False]]])
    before, _ = scaled_dot_product_attention(query, key, value, mask)
    key[..., 2, :] = 6e4 * np.sign(query[..., :1, :].mean(-2))  # the product is inf
    after, _ = scaled_dot_product_attention(query, key, value, mask)
    np.testing.assert_array_equal(after, before)


# Section 3.2.2

ORACLE_VARIANTS = {
    "plain": {},
    "one head": {"num_heads": 1},
    "no bias": {"use_bias": False},
    "own head sizes": {"head_dim": 6, "value_dim": 5},
    "relative": {"position": "relative"},
    "relative, value size": {"position": "relative", "head_dim": 4, "value_dim": 4},
    "rotary": {"position": "rotary"},
}


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("variant", ORACLE_VARIANTS)
def test_self_attention_equals_the_oracle(variant, masked):
    layer = make_attention(**ORACLE_VARIANTS[variant])
    x = draw(B, T, D)
    mask = random_mask(B, T, T, seed=3) if masked else None
    output, weights = attend(layer, x, x, mask)
    position = ORACLE_VARIANTS[variant].get("position", "none")
    expected = oracle.multi_head_attention(x, x, attention_weights(layer), mask, position)
    np.testing.assert_allclose(output, expected[0], atol=1e-5)
    np.testing.assert_allclose(weights, expected[1], atol=1e-5)
    np.testing.assert_array_equal(layer(x, x, mask), output)


@pytest.mark.parametrize("variant", ["plain", "no bias", "own head sizes"])
def test_cross_attention_equals_the_oracle(variant):
    layer = make_attention(memory_width=8, **ORACLE_VARIANTS[variant])
    x, memory, mask = draw(B, T, D), draw(B, S, 8, seed=1), random_mask(B, T, S)
    output, weights = attend(layer, x, memory, mask)
    expected = oracle.multi_head_attention(x, memory, attention_weights(layer), mask)
    np.testing.assert_allclose(output, expected[0], atol=1e-5)
    np.testing.assert_allclose(weights, expected[1], atol=1e-5)


def test_relative_distances_past_the_clip_equal_the_oracle():
    position = {"class_name": "tf_transformer>RelativePositions", "config": {"max_distance": 2}}
    layer = make_attention(position=position)
    x = draw(2, 9, D)
    assert attention_weights(layer)["relative_keys"].shape == (5, 4)
    expected, _ = oracle.multi_head_attention(x, x, attention_weights(layer), None, "relative")
    np.testing.assert_allclose(layer(x, x), expected, atol=1e-5)


def test_a_fully_masked_row_leaves_only_the_output_bias():
    layer = make_attention()
    x = draw(2, T, D)
    mask = np.ones((2, T, T), bool)
    mask[1] = False
    output = np.asarray(layer(x, x, mask))
    bias = np.broadcast_to(np.asarray(layer.output_projection.bias), (T, D))
    np.testing.assert_array_equal(output[1], bias)
    np.testing.assert_array_equal(output[0], np.asarray(layer(x, x))[0])


@pytest.mark.case("03")
def test_head_size_is_the_width_by_the_heads():
    layer = MultiHeadAttention(num_heads=8)
    layer.build((None, None, 512), (None, None, 512))
    assert layer.count_params() == 1_050_624 == 4 * (512 * 512 + 512)


# Masks


@pytest.mark.case("07")
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("position", [None, "relative", "rotary"])
def test_the_future_changes_nothing_with_dropout(position, training, padded):
    layer = make_attention(position=position, dropout=0.1)
    live = np.array([[True, True, False, True, True]]) if padded else None
    mask = attention_mask(live, 5)
    before = draw(1, 5, D)
    after = before.copy()
    after[:, -1] += 100.0
    outputs = []
    for x in (before, after):
        layer.weight_dropout.seed_generator.state.assign([7, 7])
        outputs.append(attend(layer, x, x, mask, training))
    np.testing.assert_array_equal(outputs[0][0][:, :4], outputs[1][0][:, :4])
    assert np.abs(outputs[0][0][:, 4] - outputs[1][0][:, 4]).max() > 0.1
    for _, weights in outputs:
        assert not weights[:, :, ~np.tril(np.ones((5, 5), bool))].any()
        assert not padded or not weights[..., 2].any()


@pytest.mark.case("09")
@pytest.mark.parametrize("kind", ["bool", "float32", "int32"])
def test_true_or_one_means_look(kind):
    value = np.eye(5, dtype="float32")[None]  # one-hot by position
    layer = make_attention(num_heads=1, width=5)
    live = (np.array([[7, 8, 9, 0, 0]]) != 0).astype(kind)
    _, weights = attend(layer, value, value, attention_mask(live))
    assert not weights[..., 3:].any()
    np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-6)
    direct = attend(layer, value, value, np.broadcast_to(live[:, None], (1, 5, 5)))[1]
    np.testing.assert_array_equal(direct, weights)
    _, causal = attend(layer, value, value, attention_mask(None, 5))
    np.testing.assert_array_equal(causal[0, 0, 0], [1, 0, 0, 0, 0])
    assert (causal[0, 0][np.tril_indices(5)] > 0).all()
    assert not causal[0, 0][np.triu_indices(5, 1)].any()


# Dropout


def test_dropout_drops_weights_in_training_only():
    layer = make_attention(dropout=0.5)
    x = draw(B, T, D)
    calm, trained = np.asarray(layer(x, x)), np.asarray(layer(x, x, training=True))
    assert np.abs(calm - trained).max() > 1e-2
    np.testing.assert_array_equal(calm, layer(x, x, training=False))
    np.testing.assert_array_equal(make_attention()(x, x, training=True), make_attention()(x, x))


def test_dropout_keeps_the_expectation():
    layer = make_attention(dropout=0.3)
    x = np.repeat(draw(1, 4, D), 4000, axis=0)
    mean = np.asarray(layer(x, x, training=True)).mean(axis=0)
    np.testing.assert_allclose(mean, np.asarray(layer(x[:1], x[:1]))[0], atol=3e-2)


def test_dropout_reaches_the_relative_values_too():
    """z_i = sum_j w_ij (v_j + a^V_ij): one and the same w_ij, dropped or not."""
    layer = make_attention(position="relative", dropout=0.5)
    layer.value.kernel.assign(np.zeros(layer.value.kernel.shape))
    layer.value.bias.assign(np.zeros(layer.value.bias.shape))
    x = draw(B, T, D)
    calm, trained = np.asarray(layer(x, x)), np.asarray(layer(x, x, training=True))
    assert np.abs(calm - trained).max() > 1e-2


# Precision


@pytest.mark.case("13")
@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize("score", [-50.0, 50.0])
def test_half_precision_with_large_scores_stays_near_float32(policy, score):
    full = make_attention(width=8, num_heads=2)
    half = MultiHeadAttention(num_heads=2, dtype=policy)
    half.build((None, None, 8), (None, None, 8))
    direction = np.ones((8, 8), "float32") / 8  # every head's q . k / sqrt(4) is about the score
    for projection in ("query", "key"):
        dense = getattr(full, projection)
        dense.bias.assign(np.full(8, np.sign(score) if projection == "key" else 1.0))
        dense.kernel.assign(direction * 0.05 + np.eye(8) * 0.05)
    full.query.bias.assign(np.full(8, abs(score) / 2))
    half.set_weights(full.get_weights())
    x = draw(2, 6, 8)
    mask = attention_mask(np.array([[True] * 6, [True] * 4 + [False] * 2]), 6)
    query, key = full.project_query(x), full.project_key_value(x)[0]
    scores = np.asarray(query) @ np.asarray(key).swapaxes(-1, -2) / 2
    assert np.abs(scores - score).max() < 25 and np.abs(scores).max() > 50
    expected, expected_weights = attend(full, x, x, mask)
    with tf.GradientTape() as tape:
        heads = half.project_query(x), *half.project_key_value(x)
        output, weights = half.attend(*heads, mask, 0, True)
        loss = tf.reduce_sum(tf.cast(output, "float32") ** 2)
    assert weights.dtype == tf.float32  # the softmax is
    assert not np.asarray(weights)[1, ..., 4:].any()
    for gradient in tape.gradient(loss, half.trainable_variables):
        assert np.isfinite(np.asarray(gradient)).all()
    if policy == "mixed_float16":  # bfloat16 can't hold 50.1: the scores themselves are rounded
        np.testing.assert_allclose(np.asarray(output, "float32"), expected, atol=2e-2)
        np.testing.assert_allclose(weights, expected_weights, atol=2e-2)


# Keras


@pytest.mark.parametrize("variant", ORACLE_VARIANTS)
def test_is_a_good_keras_layer(variant, tmp_path):
    arguments = {"num_heads": 3, **ORACLE_VARIANTS[variant]}
    heads = arguments["num_heads"]
    key_size, value_size = (
        arguments.get("head_dim", D // heads),
        arguments.get("value_dim", D // heads),
    )
    inner = heads * (2 * key_size + value_size)
    parameters = D * inner + heads * value_size * D
    if arguments.get("use_bias", True):
        parameters += inner + D
    if arguments.get("position") == "relative":
        parameters += 2 * (2 * 16 + 1) * key_size
    check_layer(
        MultiHeadAttention,
        arguments,
        {"query": draw(B, T, D), "value": draw(B, T, D), "attention_mask": random_mask(B, T, T)},
        output_shape=(B, T, D),
        parameters=parameters,
        directory=tmp_path,
    )


def test_widths_that_do_not_fit_are_refused_by_name():
    with pytest.raises(ValueError, match=r"my_attention.*num_heads.*10.*num_heads=4"):
        MultiHeadAttention(num_heads=4, name="my_attention")(draw(1, 2, 10), draw(1, 2, 10))
    layer = make_attention()
    with pytest.raises(ValueError, match=r"(?s)query.*12.*\(1, 2, 10\)"):
        layer(draw(1, 2, 10), draw(1, 2, D))
    with pytest.raises(ValueError, match=r"(?s)key.*12.*\(1, 2, 10\)"):
        layer(draw(1, 2, D), draw(1, 2, 10))


def test_an_unknown_position_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"(?s)sinusoidal.*relative.*rotary.*'rotaty'"):
        MultiHeadAttention(num_heads=2, position="rotaty")


@pytest.mark.parametrize("position", ["sinusoidal", "learned"])
def test_a_position_that_would_do_nothing_is_refused(position):
    with pytest.raises(ValueError, match=f"my_attention.*relative or rotary.*'{position}'"):
        MultiHeadAttention(num_heads=2, position=position, name="my_attention")


@pytest.mark.filterwarnings("error")
def test_one_key_alone_gets_all_the_weight_without_a_warning():
    layer, x = make_attention(), draw(B, 1, D)
    assert (attend(layer, x, x)[1] == 1).all()
    assert not attend(layer, x, x, np.zeros((B, 1, 1), bool))[1].any()


def test_the_layer_composes_in_a_functional_model_and_trains():
    inputs = keras.Input((None, D))
    model = keras.Model(inputs, MultiHeadAttention(num_heads=2)(inputs, inputs))
    model.compile("adam", "mse")
    x = draw(8, 4, D)
    losses = model.fit(x, 0.5 * x, epochs=20, verbose=0).history["loss"]
    assert losses[-1] < losses[0]

"""Section 5.4: label smoothing over real tokens, against the oracle and literals."""

import json
import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import oracle
from training.objective.cross_entropy import token_cost
from training.objective.losses import SmoothedCrossEntropy

LOGITS_19 = np.array(
    [
        [[2, 0, 0, 0, 0], [0, 3, 0, 0, 0], [0, 0, 0, 0, 0], [9, 9, 9, 9, 9]],
        [[0, 0, 1, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0]],
    ],
    "float32",
)
LABELS_19 = np.array([[1, 1, 3, 0], [2, 0, 0, 0]])


def random_batch(B=3, T=6, V=11, seed=0):
    random = np.random.default_rng(seed)
    labels = random.integers(1, V, (B, T))
    labels[0, 4:] = labels[1, 2:] = 0
    return labels, random.normal(0, 3, (B, T, V)).astype("float32")


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5])
def test_loss_equals_the_oracle(epsilon):
    labels, logits = random_batch()
    losses = oracle.label_smoothed_cross_entropy(logits, labels, epsilon)
    loss = SmoothedCrossEntropy(epsilon)
    assert float(loss(labels, logits)) == pytest.approx(
        oracle.masked_mean(losses, labels), rel=1e-5
    )
    np.testing.assert_allclose(
        loss.call(labels, logits), np.where(labels != 0, losses, 0), atol=1e-5
    )


def test_loss_equals_keras_on_one_hot_labels():
    labels, logits = random_batch()
    live = labels != 0
    theirs = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1)
    expected = theirs(tf.one_hot(labels[live], 11), logits[live])
    assert float(SmoothedCrossEntropy(0.1)(labels, logits)) == pytest.approx(
        float(expected), rel=1e-5
    )


def test_gradient_is_the_softmax_less_the_smoothed_target():
    labels, logits = random_batch()
    live = (labels != 0)[..., None]
    variable = tf.Variable(logits)
    with tf.GradientTape() as tape:
        loss = SmoothedCrossEntropy(0.1)(labels, variable)
    target = 0.9 * np.eye(11)[labels] + 0.1 / 11
    expected = np.where(live, oracle.softmax(logits.astype("float64")) - target, 0) / live.sum()
    np.testing.assert_allclose(tape.gradient(loss, variable), expected, atol=1e-6)


@pytest.mark.case("19")
@pytest.mark.parametrize("width", [4, 40])
def test_the_mean_is_over_real_tokens(width):
    labels = np.pad(LABELS_19, ((0, 0), (0, width - 4)))
    logits = np.pad(LOGITS_19, ((0, 0), (0, width - 4), (0, 0)))
    loss = SmoothedCrossEntropy(0.0)
    tokens = np.asarray(loss.call(labels, logits))
    np.testing.assert_allclose(
        tokens[labels != 0], [2.432653, 0.181612, 1.609438, 0.904832], atol=1e-6
    )
    assert tokens.sum() == pytest.approx(5.128535, abs=1e-5)
    assert float(loss(labels, logits)) == pytest.approx(1.282134, abs=1e-6)


class CarriesMask(keras.layers.Layer):
    """Gives its input on with a Keras mask, as mask_zero embeddings do."""

    def __init__(self, mask, **kwargs):
        super().__init__(**kwargs)
        self.mask = mask
        self.supports_masking = True

    def call(self, inputs):
        return inputs

    def compute_mask(self, inputs, previous_mask=None):
        return self.mask


@pytest.mark.case("19")
def test_a_mask_that_keras_carries_is_not_applied_twice():
    logits = CarriesMask(tf.constant(LABELS_19 != 0))(tf.constant(LOGITS_19))
    assert logits._keras_mask is not None
    loss = SmoothedCrossEntropy(0.0)
    assert float(loss(LABELS_19, logits)) == pytest.approx(1.282134, abs=1e-6)


@pytest.mark.case("19")
@pytest.mark.parametrize("run_eagerly", [False, True])
def test_the_loss_in_fit_is_the_mean_over_real_tokens(run_eagerly):
    inputs = keras.Input((None, 5))
    model = keras.Model(inputs, CarriesMask(None)(inputs))
    model.compile("sgd", SmoothedCrossEntropy(0.0), run_eagerly=run_eagerly)
    loss = model.evaluate(LOGITS_19, LABELS_19, batch_size=2, verbose=0)
    assert loss == pytest.approx(1.282134, abs=1e-6)
    weight = (LABELS_19 != 0).astype("float32")
    weighted = model.evaluate(LOGITS_19, LABELS_19, batch_size=2, sample_weight=weight, verbose=0)
    assert weighted == pytest.approx(1.282134, abs=1e-6)


@pytest.mark.case("21")
@pytest.mark.parametrize(("epsilon", "expected"), [(0.0, 0.089069), (0.1, 0.409069)])
def test_label_smoothing_is_epsilon_by_v_on_all_classes(epsilon, expected):
    # The label of the case is 0, which is PAD here: the classes are moved by one.
    logits = np.array([[[-1.0, 4.0, 1.0, 0.0, 0.0]]], "float32")
    assert float(SmoothedCrossEntropy(epsilon)([[1]], logits)) == pytest.approx(expected, abs=1e-6)


@pytest.mark.case("21")
@pytest.mark.parametrize(("size", "floor"), [(8_000, 1.223650), (37_000, 1.376913)])
def test_the_lowest_reachable_loss(size, floor):
    right, other = 1 - 0.1 + 0.1 / size, 0.1 / size
    logits = np.full((1, 1, size), math.log(other), "float32")
    logits[..., 5] = math.log(right)
    loss = SmoothedCrossEntropy(0.1)
    assert float(loss([[5]], logits)) == pytest.approx(floor, abs=2e-5)
    logits[..., 5] += 3.0
    assert float(loss([[5]], logits)) > floor


def embedding_model():
    ids = keras.Input((None,), dtype="int32")
    return keras.Model(ids, keras.layers.Embedding(5, 5)(ids))


@pytest.mark.case("23")
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_batch_without_a_token_changes_nothing(optimizer):
    model = embedding_model()
    model.compile(keras.optimizers.get(optimizer), SmoothedCrossEntropy(0.1))
    before = model.get_weights()
    ids = np.array([[1, 2, 3, 4]])
    assert model.train_on_batch(ids, np.zeros((1, 4), "int32")) == 0.0
    np.testing.assert_array_equal(model.get_weights()[0], before[0])
    loss = model.train_on_batch(ids, np.array([[1, 1, 2, 2]]))
    assert np.isfinite(loss) and loss > 0
    assert np.isfinite(model.get_weights()[0]).all()
    assert (model.get_weights()[0] != before[0]).any()


@pytest.mark.case("23")
@pytest.mark.parametrize("poison", [math.nan, math.inf, -math.inf])
def test_what_stands_at_pads_reaches_neither_loss_nor_gradient(poison):
    labels, logits = random_batch()
    clean = tf.Variable(logits)
    dirty = tf.Variable(np.where((labels != 0)[..., None], logits, np.float32(poison)))
    results = []
    for variable in (clean, dirty):
        with tf.GradientTape() as tape:
            loss = SmoothedCrossEntropy(0.1)(labels, variable)
        results.append((float(loss), np.asarray(tape.gradient(loss, variable))))
    assert results[0][0] == results[1][0]
    np.testing.assert_array_equal(results[0][1], results[1][1])


def test_the_arithmetic_is_float32_for_logits_in_half_precision():
    labels, logits = random_batch()
    half = tf.constant(logits * 20, "float16")  # their exponentials overflow float16
    expected = oracle.masked_mean(
        oracle.label_smoothed_cross_entropy(np.asarray(half, "float64"), labels, 0.1), labels
    )
    loss = SmoothedCrossEntropy(0.1)(labels, half)
    assert loss.dtype == tf.float32 and float(loss) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("shape", [(3,), (3, 1), (3, 6)])
def test_sample_weights_weigh_tokens(shape):
    labels, logits = random_batch()
    weight = np.random.default_rng(1).random(shape).astype("float32")
    losses = oracle.label_smoothed_cross_entropy(logits, labels, 0.1)
    each = np.broadcast_to(weight.reshape(3, -1), (3, 6)) * (labels != 0)
    expected = (losses * each).sum() / each.sum()
    given = float(SmoothedCrossEntropy(0.1)(labels, logits, weight))
    assert given == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("reduction", ["sum", "none", None])
def test_other_reductions(reduction):
    labels, logits = random_batch()
    losses = np.where(labels != 0, oracle.label_smoothed_cross_entropy(logits, labels, 0.1), 0)
    given = np.asarray(SmoothedCrossEntropy(0.1, reduction=reduction)(labels, logits))
    np.testing.assert_allclose(given, losses.sum() if reduction == "sum" else losses, rtol=1e-5)


def test_the_cost_of_a_token_is_not_smoothed_by_default():
    labels, logits = random_batch()
    expected = oracle.label_smoothed_cross_entropy(logits, labels, 0.0)
    given = token_cost(labels, logits, labels != 0)
    np.testing.assert_allclose(given, np.where(labels != 0, expected, 0), atol=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_gradient_is_the_formula_and_zero_at_pads(smoothing):
    """softmax - (1 - eps) one-hot - eps / V, written out; NaN at a pad does not get through."""
    labels, logits = random_batch()
    size = logits.shape[-1]
    softmax = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    expected = softmax - (1 - smoothing) * np.eye(size)[labels] - smoothing / size
    weights = np.arange(1.0, 1 + labels.size).reshape(labels.shape)
    expected = np.where((labels != 0)[..., None], expected * weights[..., None], 0)
    given = tf.Variable(np.where((labels != 0)[..., None], logits, np.nan), dtype="float32")
    with tf.GradientTape() as tape:
        cost = token_cost(labels, given, labels != 0, smoothing)
        total = tf.reduce_sum(cost * tf.constant(weights, tf.float32))
    np.testing.assert_allclose(tape.gradient(total, given), expected, rtol=1e-4, atol=1e-4)


def test_config_round_trip_and_refusal():
    loss = SmoothedCrossEntropy(0.2, name="mine", reduction="sum")
    config = json.loads(json.dumps(keras.losses.serialize(loss)))
    again = keras.losses.deserialize(config)
    assert isinstance(again, SmoothedCrossEntropy)
    assert (again.label_smoothing, again.name, again.reduction) == (0.2, "mine", "sum")
    for wrong in (1.0, -0.1):
        with pytest.raises(ValueError, match=rf"`label_smoothing`.*below 1.*{wrong}"):
            SmoothedCrossEntropy(wrong)


def test_no_one_hot_of_the_vocabulary_is_made():
    """In float32 it would be 3.2 GB a step for 25,000 tokens and 32,000 pieces."""
    graph = (
        tf.function(SmoothedCrossEntropy(0.1))
        .get_concrete_function(
            tf.TensorSpec((2, 3), tf.int32), tf.TensorSpec((2, 3, 7), tf.float32)
        )
        .graph
    )
    assert "OneHot" not in {operation.type for operation in graph.get_operations()}

"""Metrics are sums over real tokens, unsmoothed, whatever the batches."""

import json
import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import oracle
from training.objective.losses import SmoothedCrossEntropy
from training.objective.metrics import Perplexity, TokenAccuracy, TokenNLL

METRICS = [TokenNLL, Perplexity, TokenAccuracy]


def random_batch(B, T, live, seed, V=9):
    random = np.random.default_rng(seed)
    labels = np.where(np.arange(T) < live, random.integers(1, V, (B, T)), 0)
    return labels, random.normal(0, 2, (B, T, V)).astype("float32")


# Batches of unequal sizes, lengths and shares of pads.
BATCHES = [random_batch(4, 6, 6, 0), random_batch(1, 3, 1, 1), random_batch(2, 9, 2, 2)]


def expected():
    """NLL, perplexity and accuracy of the tokens of all batches together."""
    nll, right = [], []
    for labels, logits in BATCHES:
        live = labels != 0
        nll.extend(oracle.label_smoothed_cross_entropy(logits, labels, 0.0)[live])
        right.extend(logits.argmax(-1)[live] == labels[live])
    return {
        TokenNLL: np.mean(nll),
        Perplexity: math.exp(np.mean(nll)),
        TokenAccuracy: np.mean(right),
    }


@pytest.mark.case("21")
@pytest.mark.parametrize("metric_class", METRICS)
def test_metric_equals_the_oracle_over_batches_of_any_size(metric_class):
    metric = metric_class()
    for labels, logits in BATCHES:
        metric.update_state(labels, logits)
    assert float(metric.result()) == pytest.approx(expected()[metric_class], rel=1e-5)


def test_the_epoch_value_in_keras_is_weighted_by_tokens():
    inputs = keras.Input((None, 9))
    model = keras.Model(inputs, keras.layers.Identity()(inputs))
    model.compile(loss=SmoothedCrossEntropy(), metrics=[metric() for metric in METRICS])
    data = tf.data.Dataset.from_generator(
        lambda: ((logits, labels) for labels, logits in BATCHES),
        output_signature=(
            tf.TensorSpec((None, None, 9), tf.float32),
            tf.TensorSpec((None, None), tf.int32),
        ),
    )
    logged = model.evaluate(data, steps=len(BATCHES), return_dict=True, verbose=0)
    for metric_class, value in expected().items():
        assert logged[metric_class().name] == pytest.approx(value, rel=1e-5)


@pytest.mark.case("21")
def test_perplexity_is_of_the_unsmoothed_loss():
    """A model that is sure and right has perplexity 1, which no smoothed loss reaches."""
    metric = Perplexity()
    metric.update_state(np.array([[3]]), np.eye(9, dtype="float32")[None, [3]] * 50)
    assert float(metric.result()) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.case("23")
@pytest.mark.parametrize("metric_class", METRICS)
def test_batches_without_a_token_and_nan_at_pads_do_no_harm(metric_class):
    metric = metric_class()
    labels, logits = BATCHES[0]
    metric.update_state(np.zeros_like(labels), logits)
    assert np.isfinite(float(metric.result()))
    for labels, logits in BATCHES:
        metric.update_state(labels, np.where((labels != 0)[..., None], logits, np.nan))
    assert float(metric.result()) == pytest.approx(expected()[metric_class], rel=1e-5)


@pytest.mark.parametrize("metric_class", METRICS)
def test_reset_and_config(metric_class):
    metric = metric_class(name="mine")
    metric.update_state(*BATCHES[0])
    metric.reset_state()
    for labels, logits in BATCHES:
        metric.update_state(labels, logits)
    assert float(metric.result()) == pytest.approx(expected()[metric_class], rel=1e-5)
    config = json.loads(json.dumps(keras.metrics.serialize(metric)))
    again = keras.metrics.deserialize(config)
    assert type(again) is metric_class and again.name == "mine"

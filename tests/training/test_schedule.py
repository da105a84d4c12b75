"""The learning rate of section 5.3: the oracle, literals, and what the optimizer really applies."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import oracle
from training.schedule import TransformerSchedule

# n-th update: rate, for d_model 512 and 4000 warm-up steps.
RATES = {
    1: 1.746928e-07,
    2: 3.493856e-07,
    100: 1.746928e-05,
    4_000: 6.987712e-04,
    4_001: 6.986839e-04,
    16_000: 3.493856e-04,
    100_000: 1.397542e-04,
}


@pytest.mark.parametrize("hidden_dim", [128, 512, 1024])
@pytest.mark.parametrize("warmup_steps", [1, 400, 4_000])
def test_schedule_equals_the_oracle(hidden_dim, warmup_steps):
    schedule = TransformerSchedule(hidden_dim, warmup_steps)
    updates = [1, 2, 3, 399, 400, 401, 4_000, 100_000]
    expected = [oracle.learning_rate(n, hidden_dim, warmup_steps) for n in updates]
    np.testing.assert_allclose([float(schedule(n - 1)) for n in updates], expected, rtol=1e-6)


@pytest.mark.case("15")
@pytest.mark.parametrize("update", RATES)
def test_the_rates_of_the_paper(update):
    assert float(TransformerSchedule(512)(update - 1)) == pytest.approx(RATES[update], rel=1e-6)


STEPS = {
    "int": int,
    "numpy int64": np.int64,
    "int32": lambda step: tf.constant(step, "int32"),
    "int64": lambda step: tf.constant(step, "int64"),
    "float32": lambda step: tf.constant(step, "float32"),
    "tf.Variable": lambda step: tf.Variable(step, dtype="int64"),
    "keras.Variable": lambda step: keras.Variable(step, dtype="int64"),
}


@pytest.mark.case("15")
@pytest.mark.parametrize("kind", STEPS)
def test_a_step_of_any_kind(kind):
    schedule = TransformerSchedule(512)
    for update, rate in RATES.items():
        given = schedule(STEPS[kind](update - 1))
        assert given.dtype == tf.float32
        assert float(given) == pytest.approx(rate, rel=1e-6)


@pytest.mark.case("15")
def test_no_step_gives_nan_inf_or_a_negative_rate():
    schedule = TransformerSchedule(512)
    for step in (0, 1, 2**31, 2**40, -1):
        assert np.isfinite(float(schedule(step))) and float(schedule(step)) >= 0
    assert float(schedule(0)) > 0  # the first batch isn't thrown away


@pytest.mark.case("15")
@pytest.mark.parametrize("run_eagerly", [False, True])
def test_the_rate_that_the_optimizer_applies(run_eagerly):
    optimizer = keras.optimizers.SGD(TransformerSchedule(512))
    variable = keras.Variable([0.0])
    optimizer.build([variable])

    def update():
        optimizer.apply([tf.constant([1.0])], [variable])

    step = update if run_eagerly else tf.function(update)
    applied = {}
    for first in (1, 4_000):
        optimizer.iterations.assign(first - 1)
        for number in (first, first + 1):
            variable.assign([0.0])
            step()
            applied[number] = -float(variable.value[0])
    for number in (1, 2, 4_000, 4_001):
        assert applied[number] == pytest.approx(RATES[number], rel=1e-6)


def test_the_scale_multiplies_the_whole():
    plain, double = TransformerSchedule(512), TransformerSchedule(512, scale=2.0)
    for step in (0, 3_999, 50_000):
        assert float(double(step)) == pytest.approx(2 * float(plain(step)), rel=1e-6)


@pytest.mark.case("17")
@pytest.mark.parametrize("kind", [int, np.int32, np.float32, tf.constant])
def test_the_config_holds_plain_numbers(kind):
    config = TransformerSchedule(kind(512), kind(400), kind(2)).get_config()
    assert {type(value) for value in config.values()} <= {int, float}
    again = TransformerSchedule.from_config(json.loads(json.dumps(config)))
    assert again.get_config() == config
    assert float(again(77)) == float(TransformerSchedule(512, 400, 2.0)(77))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"hidden_dim": 0}, r"`hidden_dim`.*at least 1.*0"),
        ({"hidden_dim": 512, "warmup_steps": 0}, r"`warmup_steps`.*at least 1.*0"),
    ],
)
def test_wrong_numbers_are_refused_by_name(arguments, message):
    with pytest.raises(ValueError, match=message):
        TransformerSchedule(**arguments)

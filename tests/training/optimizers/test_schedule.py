"""The learning rate of section 5.3: the oracle, literals, and what the optimizer really applies.

Then the other schedules, by formulas of their own, in all that the paper's owes.
"""

import json
import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import oracle
from training.compiling import make_optimizer, make_schedule
from training.optimizers.schedule import SCHEDULES, TransformerSchedule
from training.settings.sections import TrainingSettings

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


ARGUMENTS = {
    "transformer": dict(hidden_dim=512, warmup_steps=4000),
    "inverse_sqrt": dict(peak=0.003, warmup_steps=400),
    "linear": dict(peak=0.003, warmup_steps=400, decay_steps=2000),
    "cosine": dict(peak=0.003, warmup_steps=400, decay_steps=2000),
    "constant": dict(peak=0.003, warmup_steps=400),
}
ALL = pytest.mark.parametrize("name", SCHEDULES)


def expected_rate(name, n):
    """The rate of update n in plain Python."""
    if name == "transformer":
        return oracle.learning_rate(n, 512, 4000)
    if n <= 400:
        return 0.003 * n / 400
    if name in ("linear", "cosine") and n > 2000:
        return 0.0
    done = (n - 400) / (2000 - 400)
    return (
        0.003
        * {
            "inverse_sqrt": math.sqrt(400 / n),
            "linear": 1 - done,
            "cosine": (1 + math.cos(math.pi * done)) / 2,
            "constant": 1.0,
        }[name]
    )


UPDATES = (1, 2, 100, 399, 400, 401, 1200, 1999, 2000, 2001, 4000, 4001, 100_000)


@pytest.mark.case("15")
@ALL
@pytest.mark.parametrize("kind", STEPS)
def test_a_step_of_any_kind(name, kind):
    schedule = SCHEDULES[name](**ARGUMENTS[name])
    for n in UPDATES:
        given = schedule(STEPS[kind](n - 1))
        assert given.dtype == tf.float32
        assert float(given) == pytest.approx(expected_rate(name, n), rel=2e-6, abs=1e-9), n


@pytest.mark.case("15")
@ALL
@pytest.mark.parametrize("floatx", ["float16", "bfloat16", "float64"])
def test_the_precision_of_keras_changes_no_rate(name, floatx):
    before = keras.config.floatx()
    keras.config.set_floatx(floatx)
    try:
        schedule = SCHEDULES[name](**ARGUMENTS[name])
        rates = [schedule(tf.constant(n - 1, "int64")) for n in UPDATES]
    finally:
        keras.config.set_floatx(before)
    assert {rate.dtype for rate in rates} == {tf.float32}
    expected = [expected_rate(name, n) for n in UPDATES]
    np.testing.assert_allclose([float(rate) for rate in rates], expected, rtol=2e-6, atol=1e-9)


@pytest.mark.case("15")
@ALL
def test_no_step_gives_nan_inf_or_a_negative_rate(name):
    schedule = SCHEDULES[name](**ARGUMENTS[name])
    for step in (0, 1, 2**31, 2**40, -1):
        assert np.isfinite(float(schedule(step))) and float(schedule(step)) >= 0
    assert float(schedule(0)) > 0  # the first batch isn't thrown away


@pytest.mark.case("15")
@ALL
@pytest.mark.parametrize("run_eagerly", [False, True])
def test_the_rate_that_the_optimizer_applies(name, run_eagerly):
    optimizer = keras.optimizers.SGD(SCHEDULES[name](**ARGUMENTS[name]))
    variable = keras.Variable([0.0])
    optimizer.build([variable])

    def update():
        optimizer.apply([tf.constant([1.0])], [variable])

    step = update if run_eagerly else tf.function(update)
    for first in (1, 400, 4_000):
        optimizer.iterations.assign(first - 1)
        for n in (first, first + 1):
            variable.assign([0.0])
            step()
            applied = -float(variable.value[0])
            assert applied == pytest.approx(expected_rate(name, n), rel=2e-6, abs=1e-9)
            assert float(optimizer.learning_rate) == pytest.approx(
                expected_rate(name, n + 1), rel=2e-6, abs=1e-9
            )


@pytest.mark.case("15")
@pytest.mark.parametrize("skipped", [1, 3])
def test_a_step_that_loss_scaling_skips_is_no_update(skipped):
    settings = TrainingSettings(precision="mixed_float16")
    optimizer = make_optimizer(settings, 512)
    variable = keras.Variable([0.0])
    optimizer.build([variable])
    for gradient in [np.inf] * skipped + [2.0**15]:  # that much is the scale
        optimizer.apply([tf.constant([gradient])], [variable])
    assert int(optimizer.iterations.value) == 1
    assert float(variable.value[0]) == pytest.approx(-RATES[1], rel=1e-5)  # Adam's first step
    assert float(optimizer.learning_rate) == pytest.approx(RATES[2], rel=1e-6)


def test_the_scale_multiplies_the_whole():
    plain, double = TransformerSchedule(512), TransformerSchedule(512, scale=2.0)
    for step in (0, 3_999, 50_000):
        assert float(double(step)) == pytest.approx(2 * float(plain(step)), rel=1e-6)


@pytest.mark.case("17")
@ALL
@pytest.mark.parametrize("kind", [float, np.float32, tf.constant])
def test_the_config_holds_plain_numbers(name, kind):
    arguments = {key: kind(value) for key, value in ARGUMENTS[name].items()}
    schedule = SCHEDULES[name](**arguments)
    config = schedule.get_config()
    assert {type(value) for value in config.values()} <= {int, float}
    assert config.keys() >= arguments.keys()
    saved = json.loads(json.dumps(keras.saving.serialize_keras_object(schedule)))
    again = keras.saving.deserialize_keras_object(saved)
    assert type(again) is SCHEDULES[name] and again.get_config() == config
    assert [float(again(step)) for step in UPDATES] == [float(schedule(step)) for step in UPDATES]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("transformer", {"hidden_dim": 0}, r"`hidden_dim`.*at least 1.*0"),
        ("transformer", {"hidden_dim": 512, "warmup_steps": 0}, r"`warmup_steps`.*at least 1.*0"),
        ("constant", {"peak": 0.1, "warmup_steps": 0}, r"`warmup_steps`.*at least 1.*0"),
        ("inverse_sqrt", {"peak": 0.0}, r"`peak`.*above 0.*0.0"),
        ("inverse_sqrt", {"peak": math.nan}, r"`peak`.*above 0.*nan"),
        ("linear", {"peak": 0.1, "warmup_steps": 9, "decay_steps": 9}, r"`decay_steps`.*above"),
        ("cosine", {"peak": 0.1, "warmup_steps": 9, "decay_steps": 8}, r"`decay_steps`.*above"),
    ],
)
def test_wrong_numbers_are_refused_by_name(name, arguments, message):
    with pytest.raises(ValueError, match=message):
        SCHEDULES[name](**arguments)


@ALL
def test_the_schedule_of_a_recipe(name):
    rate = {} if name == "transformer" else {"learning_rate": 0.003, "warmup_steps": 400}
    end = {"decay_steps": 2000} if name in ("linear", "cosine") else {}
    schedule = make_schedule(TrainingSettings(schedule=name, **rate, **end), hidden_dim=512)
    assert type(schedule) is SCHEDULES[name]
    for n in UPDATES:
        expected = expected_rate(name, n)
        assert float(schedule(n - 1)) == pytest.approx(expected, rel=2e-6, abs=1e-9)

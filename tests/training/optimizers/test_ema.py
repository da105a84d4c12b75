"""The moving average of the weights: its formula, who gets it, and that it is given back."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import h5py
import keras
import numpy as np
import pytest
import tensorflow as tf

from training.callbacks.validation import Validation
from training.corpora.corpus import Corpus
from training.keeping.checkpoints import Checkpoints
from training.optimizers.ema import averaged_weights
from training.optimizers.optimizer import OPTIMIZERS
from training.settings.sections import EvaluationSettings

X = np.random.default_rng(0).normal(size=(6, 4)).astype("float32")
Y = np.random.default_rng(1).normal(size=(6, 3)).astype("float32")


def ema(weights, d):
    average = 0.0
    for n, weight in enumerate(weights, 1):
        share = max(1 - d, 10 / (n + 9))
        average = (1 - share) * average + share * weight
    return average


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("strategy", [None, "/cpu:0"])
@pytest.mark.parametrize("d", [0.3, 0.999])
def test_the_average_is_its_formula(name, strategy, d):
    random = np.random.default_rng(4)
    place = tf.distribute.OneDeviceStrategy(strategy) if strategy else tf.distribute.get_strategy()
    with place.scope():
        weight = keras.Variable(random.normal(size=(3, 2)).astype("float32"))
        optimizer = OPTIMIZERS[name](0.1, use_ema=True, ema_momentum=d)
        optimizer.build([weight])
    step = tf.function(lambda g: place.run(lambda g: optimizer.apply([g], [weight]), (g,)))
    seen = []
    for _ in range(30):
        step(tf.constant(random.normal(size=(3, 2)), tf.float32))
        seen.append(np.asarray(weight, "float64"))
    (average,) = optimizer._model_variables_moving_average
    np.testing.assert_allclose(np.asarray(average), ema(seen, d), rtol=1e-5, atol=1e-6)


def small_trainer(use_ema=True, loss_scale=False):
    keras.utils.set_random_seed(2)
    x = keras.Input((4,))
    trainer = keras.Model(x, keras.layers.Dense(3)(x))
    optimizer = OPTIMIZERS["adam"](0.1, use_ema=use_ema, ema_momentum=0.9)
    if loss_scale:
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    trainer.compile(optimizer, "mse", jit_compile=False)
    return trainer


def averages_of(trainer):
    optimizer = getattr(trainer.optimizer, "inner_optimizer", trainer.optimizer)
    return [np.asarray(average) for average in optimizer._model_variables_moving_average]


def assert_equal(ours, theirs):
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(mine, other)


def assert_differ(ours, theirs):
    assert all(not np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("loss_scale", [False, True])
def test_the_average_is_lent_and_given_back_to_the_bit(loss_scale):
    trainer = small_trainer(loss_scale=loss_scale)
    untrained = trainer.get_weights()
    trainer.optimizer.build(trainer.trainable_variables)
    with averaged_weights(trainer):  # there is none yet
        assert_equal(trainer.get_weights(), untrained)
    trainer.fit(X, Y, epochs=5, verbose=0)
    raw, averages = trainer.get_weights(), averages_of(trainer)
    assert_differ(raw, averages)
    with averaged_weights(trainer):
        assert_equal(trainer.get_weights(), averages)
    assert_equal(trainer.get_weights(), raw)
    with pytest.raises(KeyboardInterrupt), averaged_weights(trainer):
        raise KeyboardInterrupt
    assert_equal(trainer.get_weights(), raw)


def test_fit_ends_with_the_weights_not_with_their_average():
    """Keras's own would write the average over them, and the next epoch would begin there."""
    once, twice = small_trainer(), small_trainer()
    once.fit(X, Y, epochs=4, verbose=0, shuffle=False)
    for _ in range(2):
        twice.fit(X, Y, epochs=2, verbose=0, shuffle=False)
    assert_equal(twice.get_weights(), once.get_weights())
    assert_equal(averages_of(twice), averages_of(once))


def looked_at(trainer, stop=False):
    """What one validation measures and translates with."""
    seen = []

    def translate(texts):
        seen.append(trainer.get_weights())
        if stop:
            raise KeyboardInterrupt
        return list(texts)

    translator = SimpleNamespace(model=trainer, with_options=lambda **_: translate)

    class OneBatch:
        def dataset(self, first_step):
            return tf.data.Dataset.from_tensors((X, Y))

        def __len__(self):
            return 1

    settings = EvaluationSettings(bleu="greedy", samples=1)
    validation = Validation(translator, OneBatch(), Corpus(["a"], ["b"]), settings)
    return validation()["val_loss"], seen


def test_whoever_looks_at_the_model_sees_the_average(tmp_path):
    """Validation, its translations and the weights that are kept; the state keeps both."""
    trainer = small_trainer()
    trainer.fit(X, Y, epochs=3, verbose=0)
    raw, averages = trainer.get_weights(), averages_of(trainer)
    loss, seen = looked_at(trainer)
    kernel, bias = averages
    assert loss == pytest.approx(np.mean((X @ kernel + bias - Y) ** 2), rel=1e-5)
    assert_equal(seen[0], averages)
    assert_equal(trainer.get_weights(), raw)

    checkpoints = Checkpoints(tmp_path, trainer)
    checkpoints.save_state()
    checkpoints.save_weights()
    with h5py.File(checkpoints.weights()[-1]) as file:
        found = []
        file.visititems(lambda _, item: found.append(item[()]) if hasattr(item, "dtype") else None)
    assert_equal(sorted(found, key=np.size), sorted(averages, key=np.size))
    again = small_trainer()
    Checkpoints(tmp_path, again).restore()
    assert_equal(again.get_weights(), raw)
    assert_equal(averages_of(again), averages)


def test_a_stop_while_validating_keeps_the_weights_not_the_average():
    trainer = small_trainer()
    trainer.fit(X, Y, epochs=2, verbose=0)
    raw = trainer.get_weights()
    with pytest.raises(KeyboardInterrupt):
        looked_at(trainer, stop=True)
    assert_equal(trainer.get_weights(), raw)
    assert_differ(trainer.get_weights(), averages_of(trainer))


def test_without_an_average_all_see_the_weights():
    trainer = small_trainer(use_ema=False)
    trainer.fit(X, Y, epochs=2, verbose=0)
    raw = trainer.get_weights()
    with averaged_weights(trainer):
        assert_equal(trainer.get_weights(), raw)


def test_two_replicas_have_the_average_of_one_device():
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-m", "tests.training.optimizers.average_on_two_replicas"],
        cwd=root,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    report = json.loads(done.stdout.splitlines()[-1])
    assert list(report) == list(OPTIMIZERS)
    for name, found in report.items():
        assert found["weights"] < 1e-5 and found["averages"] < 1e-5, name
        assert found["copies"] == [0.0, 0.0], name
        assert found["lent"] > 1e-3, name

"""FusedAdam is Keras's Adam, step for step."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from training.optimizer import FusedAdam
from training.schedule import TransformerSchedule

SETTINGS = dict(beta_1=0.9, beta_2=0.98, epsilon=1e-9)


def weights_after(optimizer, steps=20, sparse=False):
    """A dense and a looked-up weight after `steps` updates with gradients of every size."""
    random = np.random.default_rng(1)
    dense = keras.Variable(random.normal(size=(5, 3)).astype("float32"))
    table = keras.Variable(random.normal(size=(7, 3)).astype("float32"))
    optimizer.build([dense, table])

    @tf.function
    def step(slope, ids):
        with tf.GradientTape() as tape:
            rows = tf.gather(table.value if sparse else tf.identity(table.value), ids)
            # Linear: gradients that depend on the weights would blow up what rounding differs in.
            loss = tf.reduce_sum(slope * dense.value) + tf.reduce_sum(slope[:4] * rows)
        variables = [dense.value, table.value]
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, [dense, table], strict=True))

    for _ in range(steps):
        slope = 10.0 ** random.uniform(-6, 3) * random.normal(size=(5, 3))
        step(tf.constant(slope, tf.float32), tf.constant(random.permutation(7)[:4]))
    return [np.asarray(dense), np.asarray(table), int(optimizer.iterations)]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "options", [{}, {"global_clipnorm": 1.0}, {"weight_decay": 0.01}, {"amsgrad": True}], ids=str
)
def test_it_makes_the_updates_of_keras(options, sparse):
    def made(kind):
        return weights_after(kind(TransformerSchedule(16, 10), **SETTINGS, **options), 20, sparse)

    ours, keras_own = made(FusedAdam), made(keras.optimizers.Adam)
    assert ours[2] == keras_own[2] == 20
    for mine, theirs in zip(ours[:2], keras_own[:2], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=2e-6)


def test_the_first_update_is_the_formula():
    """m / (1 - b1) = g and v / (1 - b2) = g^2: a step of the rate against the gradient's sign."""
    weight = keras.Variable(np.array([1.0, 2.0], "float32"))
    optimizer = FusedAdam(0.1, **SETTINGS)
    optimizer.apply_gradients([(tf.constant([3.0, -0.5]), weight)])
    np.testing.assert_allclose(np.asarray(weight), [0.9, 2.1], rtol=1e-6)


def test_a_row_looked_up_twice_has_the_square_of_the_sum():
    """Keras's Adam squares each of the two before it adds them up."""
    table = keras.Variable(np.zeros((3, 1), "float32"))
    optimizer = FusedAdam(0.1, **SETTINGS)
    optimizer.build([table])
    m = v = 0.0
    expected = 0.0
    for update, (first, second) in enumerate([(1.0, 2.0), (-3.0, 1.0)], 1):
        slices = tf.IndexedSlices(tf.constant([[first], [second]]), tf.constant([1, 1]), (3, 1))
        optimizer.apply_gradients([(slices, table)])
        m, v = 0.9 * m + 0.1 * (first + second), 0.98 * v + 0.02 * (first + second) ** 2
        expected -= 0.1 * (m / (1 - 0.9**update)) / np.sqrt(v / (1 - 0.98**update))
    np.testing.assert_allclose(np.asarray(table), [[0], [expected], [0]], rtol=1e-5)


def test_config_round_trip():
    optimizer = FusedAdam(TransformerSchedule(16, 10), **SETTINGS)
    config = json.loads(json.dumps(keras.optimizers.serialize(optimizer)))
    again = keras.optimizers.deserialize(config)
    assert type(again) is FusedAdam
    assert again.get_config() == optimizer.get_config()


def test_under_a_strategy_it_is_keras_own():
    with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
        ours = three_updates(FusedAdam)
    np.testing.assert_allclose(ours, three_updates(keras.optimizers.Adam), rtol=1e-6)


def three_updates(kind):
    weight = keras.Variable(np.ones((2, 2), "float32"))
    optimizer = kind(0.1, **SETTINGS)
    optimizer.build([weight])
    strategy = tf.distribute.get_strategy()
    for gradient in (1.0, -2.0, 0.5):
        pairs = [(tf.fill([2, 2], gradient), weight)]
        strategy.run(optimizer.apply_gradients, (pairs,))
    return np.asarray(weight)

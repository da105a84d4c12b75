"""FusedAdam is Keras's Adam, step for step; the others are their papers, in NumPy."""

import json
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from training.compiling import make_optimizer
from training.keeping.checkpoints import Checkpoints
from training.optimizers.adafactor import Adafactor
from training.optimizers.optimizer import OPTIMIZERS, FusedAdam, FusedAdamW
from training.optimizers.schedule import CosineDecay, InverseSquareRoot, TransformerSchedule
from training.settings.sections import TrainingSettings

ALL = pytest.mark.parametrize("name", OPTIMIZERS)
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


@ALL
def test_config_round_trip(name):
    """All that a recipe can set is in it."""
    own = {"adam": SETTINGS, "adamw": {**SETTINGS, "weight_decay": 0.03}}
    arguments = {**own.get(name, {"relative_step": False}), "use_ema": True, "ema_momentum": 0.9}
    optimizer = OPTIMIZERS[name](CosineDecay(0.1, 5, 10), global_clipnorm=2.0, **arguments)
    config = json.loads(json.dumps(keras.optimizers.serialize(optimizer)))
    again = keras.optimizers.deserialize(config)
    assert type(again) is OPTIMIZERS[name]
    assert again.get_config() == optimizer.get_config()
    for key, value in {**arguments, "global_clipnorm": 2.0}.items():
        assert again.get_config()[key] == value
    assert again.get_config()["learning_rate"]["config"]["decay_steps"] == 10


def test_under_a_strategy_it_is_keras_own():
    with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
        ours = three_updates(FusedAdam)
    np.testing.assert_allclose(ours, three_updates(keras.optimizers.Adam), rtol=1e-6)


# AdamW: Loshchilov and Hutter 2019, algorithm 2, with the rate for its schedule multiplier.


def test_adamw_shrinks_matrices_and_nothing_else():
    random = np.random.default_rng(2)
    start = [random.normal(size=shape).astype("float32") for shape in ((4, 3), (3,))]
    gradients = [[random.normal(size=value.shape) for value in start] for _ in range(6)]
    variables = [keras.Variable(value) for value in start]
    optimizer = FusedAdamW(InverseSquareRoot(0.01, 3), weight_decay=0.2, **SETTINGS)
    for pair in gradients:
        optimizer.apply([tf.constant(g, tf.float32) for g in pair], variables)
    for place, (weight, decay) in enumerate(zip(start, (0.2, 0.0), strict=True)):
        weight, m, v = weight.astype("float64"), 0.0, 0.0
        for n, pair in enumerate(gradients, 1):
            rate, gradient = 0.01 * min(n / 3, (3 / n) ** 0.5), pair[place]
            m, v = 0.9 * m + 0.1 * gradient, 0.98 * v + 0.02 * gradient**2
            adam = (m / (1 - 0.9**n)) / (np.sqrt(v / (1 - 0.98**n)) + 1e-9)
            weight = weight - rate * (adam + decay * weight)
        np.testing.assert_allclose(np.asarray(variables[place]), weight, rtol=2e-5)


def test_what_adamw_leaves_alone_is_not_forgotten_by_a_config():
    optimizer = keras.optimizers.deserialize(keras.optimizers.serialize(FusedAdamW(0.5)))
    bias, kernel = keras.Variable([2.0]), keras.Variable([[2.0]])
    optimizer.apply([tf.zeros([1]), tf.zeros([1, 1])], [bias, kernel])
    assert float(bias.value[0]) == 2.0
    assert float(kernel.value[0, 0]) == pytest.approx(2.0 * (1 - 0.5 * 0.01))


# Adafactor: algorithms 4 (matrices) and 5 (vectors) of arXiv 1804.04235.


def adafactor(weight, gradients, rate, relative=True, d=1.0):
    """The weight after all updates, in float64, with the paper's sums."""
    x, e1, e2 = weight.astype("float64"), 1e-30, 1e-3
    r = np.zeros(x.shape[:1]) if x.ndim == 2 else None
    c = np.zeros(x.shape[1:]) if x.ndim == 2 else None
    v = np.zeros(x.shape)
    for t, gradient in enumerate(gradients, 1):
        beta = 1 - t**-0.8
        g = np.asarray(gradient, "float64")
        if x.ndim == 2:
            ones_n, ones_m = np.ones(x.shape[0]), np.ones(x.shape[1])
            r = beta * r + (1 - beta) * (g**2 + e1) @ ones_m
            c = beta * c + (1 - beta) * ones_n @ (g**2 + e1)
            v = np.outer(r, c) / (ones_n @ r)
        else:
            v = beta * v + (1 - beta) * (g**2 + e1)
        u = g / np.sqrt(v)
        u = u / max(1.0, np.sqrt(np.mean(u**2)) / d)
        alpha = rate(t) * (max(e2, np.sqrt(np.mean(x**2))) if relative else 1.0)
        x = x - alpha * u
    return x


@pytest.mark.parametrize("relative", [True, False])
@pytest.mark.parametrize("d", [1.0, 0.5])
def test_adafactor_is_its_paper(relative, d):
    random = np.random.default_rng(3)
    start = [
        random.normal(size=(5, 3)),
        random.normal(size=4),
        np.zeros(2),
        1e-5 * random.normal(size=(2, 6)),
    ]
    variables = [keras.Variable(value.astype("float32")) for value in start]
    gradients = [
        [10.0 ** random.uniform(-4, 4) * random.normal(size=value.shape) for value in start]
        for _ in range(12)
    ]
    optimizer = Adafactor(InverseSquareRoot(0.01, 4), relative_step=relative, clip_threshold=d)
    step = tf.function(lambda given: optimizer.apply(given, variables))
    for given in gradients:
        step([tf.constant(g, tf.float32) for g in given])
    for place, value in enumerate(start):
        of_this = [given[place] for given in gradients]
        rate = lambda t: 0.01 * min(t / 4, (4 / t) ** 0.5)  # noqa: E731
        expected = adafactor(value, of_this, rate, relative, d)
        np.testing.assert_allclose(np.asarray(variables[place]), expected, rtol=2e-5, atol=1e-7)


def test_adafactor_and_keras_own_agree_where_both_are_right():
    """A constant rate below 1 / sqrt(t)."""

    def made(kind):
        return weights_after(kind(0.01), steps=15)

    for ours, theirs in zip(made(Adafactor), made(keras.optimizers.Adafactor), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=1e-6)


def test_adafactor_adds_up_a_row_that_is_looked_up_twice():
    table, dense = (keras.Variable(np.ones((3, 2), "float32")) for _ in range(2))
    slices = tf.IndexedSlices(tf.constant([[1.0, 2], [3, 4]]), tf.constant([1, 1]), (3, 2))
    for variable, gradient in ((table, slices), (dense, tf.constant([[0.0, 0], [4, 6], [0, 0]]))):
        Adafactor(0.1).apply([gradient], [variable])
    np.testing.assert_array_equal(np.asarray(table), np.asarray(dense))
    assert float(table.value[0, 0]) == 1.0 and np.isfinite(np.asarray(table)).all()


def test_adafactor_keeps_one_number_a_row_and_a_column():
    optimizer = Adafactor(0.1)
    optimizer.build([keras.Variable(np.zeros((50, 30))), keras.Variable(np.zeros(7))])
    moments = sum(int(np.prod(v.shape)) for v in optimizer.variables if len(v.shape))
    assert moments == 50 + 30 + 7


def test_clipping_is_to_the_norm_of_all_gradients():
    settings = TrainingSettings(clip_norm=1.0, beta_1=0.0, beta_2=0.0, epsilon=1.0)
    optimizer = make_optimizer(settings, 512)
    weights = [keras.Variable([0.0]), keras.Variable([0.0])]
    optimizer.apply([tf.constant([3.0]), tf.constant([4.0])], weights)
    rate = 512**-0.5 * 4000**-1.5
    for weight, clipped in zip(weights, (0.6, 0.8), strict=True):
        expected = -rate * clipped / (clipped + 1.0)
        assert float(weight.value[0]) == pytest.approx(expected, rel=1e-5)


# A run that is gone on with.


def small_model(name="adam", **settings):
    x = keras.Input((4,))
    model = keras.Model(x, keras.layers.Dense(3)(keras.layers.Dropout(0.3)(x)))
    given = TrainingSettings(optimizer=name, warmup_steps=10, **settings)
    model.compile(make_optimizer(given, hidden_dim=16), "mse", jit_compile=False)
    return model


def train_steps(model, first, last):
    """Updates first + 1 to last, each on a batch of its own."""
    for step in range(first, last):
        random = np.random.default_rng(step)
        model.train_on_batch(random.normal(size=(6, 4)), random.normal(size=(6, 3)))


@pytest.mark.case("79")
@pytest.mark.parametrize(
    ("name", "precision"), [*((name, "float32") for name in OPTIMIZERS), ("adam", "mixed_float16")]
)
def test_twelve_updates_and_eight_are_twenty(name, precision, tmp_path: Path):
    """Counter, rate, moments, averages, dropout and loss scale, to the last bit."""
    settings = dict(ema_decay=0.9, precision=precision, clip_norm=1.0)
    unbroken = small_model(name, **settings)
    first = unbroken.get_weights()
    stopped = small_model(name, **settings)
    stopped.set_weights(first)
    for ours, theirs in zip(stopped.variables, unbroken.variables, strict=True):
        ours.assign(theirs.value)  # dropout's seed too
    train_steps(unbroken, 0, 20)
    train_steps(stopped, 0, 12)
    checkpoints = Checkpoints(tmp_path, stopped)
    checkpoints.state.step = 12
    checkpoints.save_state()
    keras.utils.set_random_seed(99)
    again = small_model(name, **settings)
    assert Checkpoints(tmp_path, again).restore() == int(again.optimizer.iterations) == 12
    assert float(again.optimizer.learning_rate) == pytest.approx(0.25 * 13**-0.5, rel=1e-6)
    for ours, theirs in zip(again.optimizer.variables, stopped.optimizer.variables, strict=True):
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))
    train_steps(again, 12, 20)
    assert int(again.optimizer.iterations.value) == 20
    for ours, theirs in zip(
        [*again.variables, *again.optimizer.variables],
        [*unbroken.variables, *unbroken.optimizer.variables],
        strict=True,
    ):
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


def three_updates(kind):
    weight = keras.Variable(np.ones((2, 2), "float32"))
    optimizer = kind(0.1, **SETTINGS)
    optimizer.build([weight])
    strategy = tf.distribute.get_strategy()
    for gradient in (1.0, -2.0, 0.5):
        pairs = [(tf.fill([2, 2], gradient), weight)]
        strategy.run(optimizer.apply_gradients, (pairs,))
    return np.asarray(weight)

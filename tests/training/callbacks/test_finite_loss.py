"""training/callbacks/finite_loss.py: a loss that is no number stops the run, with its batch."""

import math
from pathlib import Path

import keras
import numpy as np
import pytest

from tests.tiny_run import TRAIN
from tf_transformer.config import END_ID, PAD_ID, START_ID
from tf_transformer.errors import InputError
from training.callbacks.finite_loss import FiniteLoss
from training.keeping.checkpoints import Checkpoints
from training.keeping.run_state import RunState

RATE = "training.learning_rate=1e30"  # weights of 1e27 after one update, which overflow in the next


@pytest.fixture(scope="module")
def broken(tiny_run, tmp_path_factory):
    """The directory of a run that cannot go well, and what was said."""
    run = tmp_path_factory.mktemp("broken") / "run"
    with pytest.raises(InputError) as caught:
        tiny_run.place.train(run, RATE, "training.save_every_minutes=1e-9")
    return run, str(caught.value)


def test_it_names_the_update_and_the_rate(broken):
    run, said = broken
    assert said.startswith("The ") and "\n" not in said
    assert " at update 2, with a learning rate of " in said
    # Equation 3 in update 2 of 20: 1e30 x 16^-0.5 x 2 x 20^-1.5
    assert f"{1e30 * 16**-0.5 * 2 * 20**-1.5:.3g}" in said
    assert "lower training.learning_rate" in said and str(run / "bad_batch.txt") in said


def test_the_batch_is_that_of_the_update(broken, tiny_run):
    run, _ = broken
    with np.load(run / "bad_batch.npz") as found:
        arrays = dict(found)
    assert arrays["step"] == 2
    lines = (run / "bad_batch.txt").read_text(encoding="utf-8").splitlines()
    pairs = [tuple(line.split("\t")) for line in lines]
    assert pairs and set(pairs) <= set(TRAIN) and len(pairs) == len(arrays["labels"])
    encode = tiny_run.place.translator.tokenizers.source.encode
    for row, (source, target) in enumerate(pairs):
        for name, ids in (
            ("encoder_token_ids", [*encode([source])[0], END_ID]),
            ("decoder_token_ids", [START_ID, *encode([target])[0]]),
            ("labels", [*encode([target])[0], END_ID]),
        ):
            found = arrays[name][row]
            np.testing.assert_array_equal(found, ids + [PAD_ID] * (len(found) - len(ids)), name)


def test_what_is_on_disk_is_of_before(broken, tiny_run):
    run, said = broken
    (state,) = (run / "checkpoints/state").iterdir()
    assert state.name == "step-1.npz"
    with np.load(state) as arrays:
        assert all(np.isfinite(arrays[name]).all() for name in arrays if name != "facts.json")
    with pytest.raises(InputError) as again:  # the same command ends at the same place
        tiny_run.place.train(run, RATE, "training.save_every_minutes=1e-9")
    assert str(again.value) == said


class Tried(FiniteLoss):
    """Without a batch to keep."""

    def __init__(self, optimizer="adam", lag=0):
        updates = type("Updates", (), {"state": RunState(step=41), "learning_rate": 0.125})
        super().__init__(Path("run"), updates, type("Translator", (), {"tokenizers": None}))
        model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
        model.compile(optimizer, "mse")
        self.set_model(model)
        self._lag = lag

    def _keep_batch(self, step):
        pass

    def after(self, **logs):
        self.updates.state.step += 1
        self.on_train_batch_end(0, logs)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    ("key", "name"), [("loss", "The loss"), ("gradient_norm", "The norm of the gradient")]
)
def test_both_are_looked_at(value, key, name):
    finite = Tried()
    finite.after(loss=3.0, gradient_norm=1.0)
    with pytest.raises(InputError, match=f"{name} is {value} at update 43, with .* rate of 0.125"):
        finite.after(**{"loss": 3.0, "gradient_norm": 1.0, key: value})


def test_gradients_in_float16_may_overflow():
    finite = Tried(keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam()))
    finite.after(loss=3.0, gradient_norm=math.inf)
    with pytest.raises(InputError, match="loss is nan at update 43"):
        finite.after(loss=math.nan)


def test_a_gpu_is_not_waited_for_but_nothing_bad_is_saved():
    finite = Tried(lag=1)
    finite.after(loss=3.0)
    finite.after(loss=math.nan)  # not yet looked at
    with pytest.raises(InputError, match="at update 43"):
        finite.check()  # before a save
    finite = Tried(lag=1)
    finite.after(loss=math.nan)
    with pytest.raises(InputError, match="at update 42"):
        finite.after(loss=math.nan)


def test_a_state_with_a_nan_is_not_written(tmp_path):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    checkpoints = Checkpoints(tmp_path, model)
    checkpoints.save_state()
    checkpoints.state.step = 1
    model.set_weights([np.full_like(weight, np.nan) for weight in model.get_weights()])
    with pytest.raises(InputError, match="step-1.npz is not written: a weight is NaN"):
        checkpoints.save_state()
    checkpoints.state.step = 0
    assert Checkpoints(tmp_path, model).restore() == 0
    assert [path.name for path in (tmp_path / "checkpoints/state").glob("*.npz")] == ["step-0.npz"]

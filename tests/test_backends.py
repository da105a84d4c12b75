"""layers/ and model.py use keras.ops only: the same model trains on Keras's other backends."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.three_steps import losses

TESTS = Path(__file__).parent


@pytest.mark.parametrize("position", ["sinusoidal", "relative", "rotary"])
@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_three_steps_of_training_have_the_losses_of_tensorflow(backend, position):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} isn't installed: Keras's {backend} backend was not tried")
    done = subprocess.run(
        [sys.executable, str(TESTS / "three_steps.py"), position],
        env={**os.environ, "KERAS_BACKEND": backend, "PYTHONPATH": str(TESTS.parent)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["backend"] == backend
    # The third loss is of weights that float32 already moved a little differently.
    assert report["losses"] == pytest.approx(losses(position), rel=2e-4)
    assert report["losses"][0] == pytest.approx(losses(position)[0], rel=1e-5)

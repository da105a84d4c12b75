"""Two devices and two processes make the updates of one device, and only one process writes."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np
import pytest

from tests.tiny_run import PAIRS, Place, write_corpus
from tf_transformer.errors import InputError
from training.devices.distribution import Distribution, read_tf_config
from training.settings.sections import TrainingSettings

ROOT = Path(__file__).parents[3]
STEPS = 20
# So that 20 updates make no great error of a rounding one: no biases of keys, whose gradients are
# nothing else, an epsilon that is larger than such, and LayerNorms before the sublayers.
RECIPE = """
[tokenizer]
vocabulary_size = 50
[model]
num_layers = 1
hidden_dim = 16
num_heads = 2
intermediate_dim = 32
dropout = 0.0
attention_bias = false
norm_first = true
[training]
max_steps = 20
batch_tokens = 160
warmup_steps = 10
epsilon = 1e-2
save_every_minutes = 1e-9
[decoding]
num_beams = 2
extra_length = 5
[evaluation]
samples = 0
bleu = "greedy"
"""
ALONE = tuple(" ".join([side, *[word] * 60]) for side, word in (("le", "chat"), ("the", "cat")))
IN_PARTS = ["training.update_tokens=300"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Sentences of uneven lengths; one is a batch of its own, so that a replica has none."""
    place = Place(tmp_path_factory.mktemp("distribution"))
    place.recipe.write_text(RECIPE, encoding="utf-8")
    write_corpus(place.data, train=[*PAIRS[:50], ALONE], valid=PAIRS[60:65])
    return place


@pytest.fixture(scope="module")
def one_device(place):
    place.train(place.folder / "one")
    return place.folder / "one"


def weights_at(run, step=STEPS):
    arrays = {}
    with h5py.File(run / f"checkpoints/step-{step}.weights.h5") as file:
        file.visititems(lambda name, item: arrays.update({name: item}) if is_array(item) else None)
        return {name: item[()] for name, item in arrays.items() if item.dtype.kind == "f"}


def is_array(item):
    return isinstance(item, h5py.Dataset)


def history(run):
    return [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]


def names(run):
    return {path.relative_to(run).as_posix() for path in run.rglob("*") if "logs" not in path.parts}


def assert_the_same_training(run, reference):
    assert len(history(run)) == len(history(reference)) > 1
    for line, expected in zip(history(run), history(reference), strict=True):
        assert line["step"] == expected["step"]
        for name in ("loss", "nll", "accuracy", "val_loss", "val_nll", "val_accuracy", "val_bleu"):
            assert line[name] == pytest.approx(expected[name], rel=1e-5), (name, line["step"])
    ours, theirs = weights_at(run), weights_at(reference)
    assert ours.keys() == theirs.keys() and len(ours) > 20
    for name, values in theirs.items():
        error = np.linalg.norm(ours[name] - values) / np.linalg.norm(values)
        assert error < 1e-5, (name, error)
    assert names(run) == names(reference)


def environment(**more):
    known = {"PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    return {**os.environ, **known, **more}


@pytest.fixture(scope="module")
def two_devices(place):
    """What on_two_devices.py found, and its runs."""
    half = ["precision=mixed_float16", "r_drop=2.0", "clip_norm=1.0", "ema_decay=0.9"]
    settings = {
        "mirrored": IN_PARTS,
        "half": ["training.max_steps=2", "model.dropout=0.3", *(f"training.{x}" for x in half)],
    }
    (place.folder / "settings.json").write_text(json.dumps(settings))
    script = ROOT / "tests/training/devices/on_two_devices.py"
    subprocess.run([sys.executable, script, place.folder], env=environment(), check=True)
    return json.loads((place.folder / "report.json").read_text())


def test_two_devices_make_the_updates_of_one(two_devices, place):
    place.train(place.folder / "in_parts", *IN_PARTS)
    assert_the_same_training(place.folder / "mirrored", place.folder / "in_parts")


def test_half_precision_on_two_devices(two_devices, place):
    (line,) = history(place.folder / "half")
    assert line["step"] == 2 and np.isfinite(line["loss"]) and np.isfinite(line["val_loss"])


@pytest.mark.case("75")
@pytest.mark.parametrize("kind", ["trainer", "keras"])
def test_a_token_counts_the_same_in_every_replica(two_devices, kind):
    found = two_devices[kind]
    assert found["loss"] == pytest.approx(1.432653, abs=1e-6)
    change = np.array(found["change"])
    assert change[1, 1] == pytest.approx(0.08780, abs=1e-5)
    assert change[4, [2, 4]] == pytest.approx([0.22805, -0.16220], abs=1e-5)


@pytest.mark.case("77")
def test_five_sentences_in_batches_of_two_on_two_replicas(two_devices):
    """All tokens of the five: 2 sentences of three, 3 of one."""
    costs = -np.log(np.exp([2, 0]) / (np.exp(2) + 4))  # label on the diagonal, label elsewhere
    expected = (2 * (2 * costs[0] + costs[1]) + 3 * costs[1]) / 9
    found = two_devices["five"]
    assert found["evaluate"]["nll"] == pytest.approx(expected, rel=1e-5)
    assert found["evaluate"]["accuracy"] == pytest.approx(4 / 9)
    assert np.isfinite([values[0] for values in found["fit"].values()]).all()


class Workers:
    """Two processes of `tf-transformer train`; the second is given another run directory."""

    def __init__(self, place, run):
        with socket.socket() as one, socket.socket() as two:
            for port in (one, two):
                port.bind(("127.0.0.1", 0))
            hosts = [f"127.0.0.1:{port.getsockname()[1]}" for port in (one, two)]
        self.own = [Path(tempfile.mkdtemp(dir=place.folder)) for _ in range(2)]
        self.processes = []
        for index, directory in enumerate((run, place.folder / "not_there")):
            task = {"type": "worker", "index": index}
            config = json.dumps({"cluster": {"worker": hosts}, "task": task})
            command = ["-m", "tf_transformer", "train", place.recipe, "--data", place.data]
            self.processes.append(
                subprocess.Popen(
                    [sys.executable, *command, "--run", directory, "--strategy", "multi_worker"],
                    env=environment(TF_CONFIG=config, TMPDIR=str(self.own[index])),
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
            )

    def kill(self):
        for process in self.processes:
            process.kill()
            process.communicate()

    def wait(self):
        try:
            printed = [process.communicate(timeout=900)[0] for process in self.processes]
        finally:
            self.kill()
        assert [process.returncode for process in self.processes] == [0, 0], printed
        return printed


def wait_for_step(run, step):
    for _ in range(6000):
        saved = [int(path.stem[5:]) for path in run.glob("checkpoints/state/step-*.npz")]
        if saved and max(saved) >= step:
            return
        time.sleep(0.1)
    pytest.fail(f"{run} has no update {step} after 10 minutes")


def test_two_workers_make_the_updates_of_one_device(place, one_device):
    """The chief is killed on the way; the same command again goes on where it was."""
    run = place.folder / "workers"
    broken = Workers(place, run)
    try:
        wait_for_step(run, 7)
    finally:
        broken.processes[0].send_signal(signal.SIGKILL)
        broken.kill()
    assert not (run / "translator.json").exists()
    workers = Workers(place, run)
    printed = workers.wait()
    assert "Going on from update" in printed[0] and "epoch" not in printed[1]
    assert_the_same_training(run, one_device)
    assert not (place.folder / "not_there").exists()
    assert not [path for path in workers.own[1].iterdir() if path.is_dir()]


@pytest.mark.parametrize(
    "text",
    [
        None,
        "worker 0",
        '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}}',
        '{"cluster": {"worker": ["a:1"]}, "task": {"type": "ps", "index": 0}}',
        '{"cluster": {"worker": ["a:1"]}}',
    ],
)
def test_a_wrong_tf_config_is_refused(monkeypatch, text):
    if text is None:
        monkeypatch.delenv("TF_CONFIG", raising=False)
    else:
        monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(InputError, match="TF_CONFIG"):
        Distribution.open(TrainingSettings(strategy="multi_worker"))


def test_a_chief_has_a_place_of_its_own(monkeypatch):
    cluster = {"chief": ["a:1"], "worker": ["b:1", "c:1"]}
    config = {"cluster": cluster, "task": {"type": "worker", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    assert read_tf_config() == ("worker", 0, 3)


def test_a_cpu_that_is_in_use_cannot_be_divided():
    import tensorflow as tf

    tf.constant(0)
    with pytest.raises(InputError, match=r"training\.replicas"):
        Distribution.open(TrainingSettings(strategy="mirrored", replicas=2))

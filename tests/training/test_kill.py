"""A run that is killed goes on as if it had not been. `make resume-test` does it 20 times."""

import itertools
import random
import shutil
import zipfile
from pathlib import Path

import pytest
import tensorflow as tf

from tests.kill_and_resume import Training, differences, kill_and_resume, last_step
from tests.tiny_run import SETTINGS
from tf_transformer.errors import InputError
from training.keeping.state_file import damage


@pytest.fixture
def killed(tiny_run, tmp_path):
    """The directory as a process leaves it that is killed at its end."""
    return Path(shutil.copytree(tiny_run.run, tmp_path / "run"))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.case("79")
def test_three_kills_change_nothing(tiny_run, tmp_path):
    if tf.config.list_physical_devices("GPU"):
        pytest.skip("a GPU adds in any order: two unbroken runs differ as well")
    place, run = tiny_run.place, tmp_path / "run"

    def start():
        return Training(place.recipe, place.data, run, SETTINGS)

    moments = itertools.chain(["writing", "validating"], itertools.repeat("ending"))
    assert len(kill_and_resume(start, moments, 3, random.Random(0))) == 3
    assert differences(run, tiny_run.run) == []


def test_what_a_kill_or_a_power_cut_leaves_is_not_picked_up(tiny_run, killed, caplog):
    checkpoints = killed / "checkpoints"
    cut(checkpoints / "state/step-30.npz")
    for name in ("writing.step-40.weights.h5", "step-40.weights.h5", "state/step-40.npz.writing"):
        (checkpoints / name).write_bytes(b"half of")
    for name in ("writing.model.weights.h5", "translator.json.writing"):
        (killed / name).write_bytes(b"half of")
    (killed / "history.jsonl").write_text('{"step": 99')
    tiny_run.place.train(killed, *SETTINGS)
    assert "step-30.npz cannot be restored" in caplog.text
    assert "Going on from step-29.npz instead" in caplog.text
    assert differences(killed, tiny_run.run) == []


def test_damage_is_seen_wherever_it_is(tiny_run, tmp_path):
    content = (tiny_run.run / "checkpoints/state/step-30.npz").read_bytes()
    file = tmp_path / "state.npz"
    file.write_bytes(content)
    assert damage(file) is None
    with zipfile.ZipFile(file) as archive:
        members = sorted(archive.infolist(), key=lambda member: member.header_offset)
    for place in (0, 1, len(content) // 2, len(content) - 1):
        file.write_bytes(content[:place])
        assert damage(file), f"cut at {place}"
    for member in members[1::20]:  # the byte before it is data
        changed = bytearray(content)
        changed[member.header_offset - 1] ^= 1
        file.write_bytes(changed)
        assert "is damaged" in damage(file)


def test_a_start_that_was_killed_is_begun_again(tiny_run, killed, tmp_path):
    """Before the recipe is there, the directory is no run, but its files are ours."""
    run = tmp_path / "begun"
    run.mkdir()
    for name in ("source.model", "model.json", "corpus.json"):
        shutil.copy(killed / name, run)
    (run / "config.toml.writing").write_text("[dat")
    tiny_run.place.train(run, *SETTINGS)
    assert differences(run, tiny_run.run) == []
    (killed / "config.toml").unlink()
    with pytest.raises(InputError, match="config.toml is missing"):
        tiny_run.place.train(killed, *SETTINGS)


def test_all_states_broken_is_said(tiny_run, killed):
    assert last_step(killed) == 30
    for file in (killed / "checkpoints/state").iterdir():
        cut(file)
    with pytest.raises(InputError, match=r"step-30.npz cannot be restored: .*zip"):
        tiny_run.place.train(killed, *SETTINGS)

"""tf_transformer/rooms.py: the rooms of this very installation, never a folder of somebody else."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tf_transformer.rooms import need, room

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ["training", "export"]
# Without site-packages, so that it does not matter what is installed there.
SCRIPT = """
import sys
sys.argv[0] = "tf-transformer"
sys.path[:0] = {path!r}
{before}
from tf_transformer.rooms import room
found = room({name!r})
print(found and found.__name__, found and found.__file__)
"""


def ask(name: str, *path: Path, before: str = "") -> tuple[str, str]:
    """Name and file of the room in a process that looks for modules in `path`."""
    script = SCRIPT.format(path=[str(each) for each in path], before=before, name=name)
    command = [sys.executable, "-S", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, cwd=path[0])
    assert done.returncode == 0, done.stderr
    called, _, file = done.stdout.strip().partition(" ")
    return called, file


def foreign(folder: Path, kind: str) -> Path:
    """A folder with somebody else's `training`."""
    if kind == "module":
        (folder / "training.py").write_text("raise SystemExit('somebody else runs')")
        return folder
    (folder / "training").mkdir()
    (folder / "training" / "notes.txt").write_text("mine")
    if kind == "package":
        (folder / "training" / "__init__.py").write_text("raise SystemExit('somebody else runs')")
    return folder


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """The layout of site-packages: the rooms inside the package."""
    site = tmp_path / "site"
    shutil.copytree(ROOT / "tf_transformer", site / "tf_transformer")
    for name in ROOMS:
        shutil.copytree(ROOT / name, site / "tf_transformer" / name)
    return site


@pytest.mark.parametrize("name", ["training", "training.recipe", "export", "export.result"])
def test_a_room_of_the_checkout_is_called_as_its_folder(name):
    found = room(name)
    assert found is need(name) is sys.modules[name]
    assert Path(found.__file__).is_relative_to(ROOT / name.partition(".")[0])


def test_a_room_is_found_where_nothing_is_installed():
    assert ask("training", ROOT) == ("training", str(ROOT / "training" / "__init__.py"))


def test_a_room_of_a_wheel_is_inside_the_package(wheel):
    file = wheel / "tf_transformer" / "training" / "__init__.py"
    assert ask("training", wheel) == ("tf_transformer.training", str(file))
    # Even where a checkout is the working directory, and its folders come first.
    first = wheel.parent / "checkout"
    shutil.copytree(ROOT / "training", first / "training")
    assert ask("training", first, wheel) == ("tf_transformer.training", str(file))


@pytest.mark.parametrize("kind", ["package", "module", "folder"])
def test_what_somebody_else_calls_training_is_never_taken(tmp_path, wheel, kind):
    """Not run, either: in a wheel ours is found, in a checkout it is hidden, or found."""
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    foreign(theirs, kind)
    assert ask("training", theirs, wheel)[0] == "tf_transformer.training"
    called, file = ask("training", theirs, ROOT)
    assert called == "None" or Path(file).is_relative_to(ROOT), (called, file)


def test_a_foreign_module_that_is_loaded_already_is_not_taken(tmp_path, wheel):
    (tmp_path / "training.py").write_text("x = 1")
    for site in (wheel, ROOT):
        called, file = ask("training", tmp_path, site, before="import training")
        assert not file.startswith(str(tmp_path / "training.py"))
        assert called in ("None", "tf_transformer.training")


@pytest.mark.case("57")
def test_a_program_run_with_m_has_the_keras_classes(tmp_path):
    """Only our own command does without them, and `python -m` hides who is running."""
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "__init__.py").write_text("import tf_transformer")
    (tmp_path / "program" / "__main__.py").write_text(
        "import keras; print(sorted(keras.saving.get_custom_objects()))"
    )
    command = [sys.executable, "-m", "program", "tf-transformer"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for name in ("SmoothedCrossEntropy", "TransformerSchedule", "MultiHeadAttention"):
        assert f"'tf_transformer>{name}'" in done.stdout


def test_a_room_that_is_nowhere():
    assert room("cellar") is None
    with pytest.raises(ImportError, match="'cellar'"):
        need("cellar")

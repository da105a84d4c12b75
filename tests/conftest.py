"""What every test has: quiet TensorFlow, fixed seeds, cases by number, real text where it is."""

import os
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import numpy as np
import pytest

if TYPE_CHECKING:
    from tests.tiny_run import TinyRun

# Before TensorFlow is imported, here and in the processes that tests start.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
if "PYTEST_XDIST_WORKER" in os.environ:
    # As many workers as cores: threads of one would only wait for those of the others.
    os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")

hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--case", metavar="ID", help="only the tests of this case, such as 05")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    # Doctests are the rooms'. Here files of another name are scripts, and are not to be imported.
    is_script = collection_path.suffix == ".py" and not collection_path.name.startswith("test_")
    return True if is_script else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = config.getoption("--case")
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        cases = [mark.args for mark in item.iter_markers("case")]
        for case in cases:
            if len(case) != 1 or not re.fullmatch(r"\d\d", str(case[0])):
                raise pytest.UsageError(f'{item.nodeid}: a case is named "05". Received: {case}')
        (kept if not wanted or (wanted,) in cases else left_out).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


@pytest.fixture(autouse=True)
def seeds() -> None:
    """The same random numbers in every run and whatever ran before."""
    random.seed(0)
    np.random.seed(0)
    # Only where a test already has them: the import costs seconds.
    if keras := sys.modules.get("keras"):
        keras.utils.set_random_seed(0)


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> "TinyRun":
    """One trained run for all tests that only look at it; copy its folder to change it."""
    from tests.tiny_run import make_run

    return make_run(tmp_path_factory.mktemp("tiny_run"))


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Path]:
    """`shared_data("multi30k-en-de")`: that folder of real text, or a skip that says why."""

    def folder(name: str) -> Path:
        path = SHARED_DATA / name
        if not path.is_dir():
            pytest.skip(f"no real text at {path}: this test needs ../shared/data/{name}")
        return path

    return folder

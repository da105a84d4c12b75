"""Every picture of the docs is drawn by docs/pictures.py, from our own code."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
SCRIPT = DOCS / "pictures.py"
LARGEST = 60_000  # bytes; a picture is loaded with the page
LINK = re.compile(r"!\[[^\]]+\]\(([^)\s]+)\)")  # one without a description is no link here


def load_script():
    """The script as a module; it needs matplotlib only to draw."""
    spec = importlib.util.spec_from_file_location("pictures", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def referenced():
    """Files that the pages show, as paths."""
    return {
        (page.parent / link).resolve()
        for page in [ROOT / "README.md", *DOCS.rglob("*.md")]
        for link in LINK.findall(page.read_text(encoding="utf-8"))
        if "://" not in link
    }


def needs_matplotlib():
    if importlib.util.find_spec("matplotlib") is None:
        pytest.skip("matplotlib isn't installed (extra `plots`): no picture was drawn")


def test_the_pages_show_what_the_script_draws():
    drawn = {DOCS / "pictures" / name for name in load_script().PICTURES}
    assert referenced() == drawn
    assert drawn == set((DOCS / "pictures").iterdir())


def test_every_picture_has_a_description():
    for page in DOCS.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        assert text.count("![") == len(LINK.findall(text)), page


def test_pictures_are_small_and_bear_no_date():
    for path in (DOCS / "pictures").iterdir():
        assert path.stat().st_size < LARGEST, path
        text = path.read_text(encoding="utf-8")
        assert text.startswith("<?xml") and text.rstrip().endswith("</svg>"), path
        assert "dc:date" not in text and "matplotlib.org" not in text, path


@pytest.mark.slow
def test_the_script_draws_them_all(tmp_path):
    needs_matplotlib()
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path / "new")],
        cwd=tmp_path,  # it must not matter where it is called
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    made = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert made == sorted(path.name for path in (DOCS / "pictures").iterdir())
    assert done.stdout.split() == [str(tmp_path / "new" / name) for name in load_script().PICTURES]


@pytest.mark.parametrize("name", ["positions.svg", "masks.svg", "schedule.svg"])
def test_a_picture_is_the_same_each_time(name, tmp_path):
    """The same versions write the same bytes, so that a change of a picture is a change of ours."""
    needs_matplotlib()
    script = load_script()
    written = []
    for folder in (tmp_path / "first", tmp_path / "second"):
        folder.mkdir()
        written.append(script.draw(name, folder).read_bytes())
        assert [path.name for path in folder.iterdir()] == [name]  # nothing left beside it
    assert written[0] == written[1]
    assert written[0].count(b"<path") > 10

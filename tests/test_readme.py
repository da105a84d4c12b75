"""The code blocks of README.md and docs/ run, as a reader would run them.

All Python blocks of a file are one program, all shell blocks one script, in one directory, shell
first. It is empty but for `runs/m30k`, where the pages have trained: a run that has learnt nothing.
A block that can't run here says why in a comment in the line before it:

    <!-- not run: it trains for half an hour -->
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiny_translator import make_config, make_translator

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
SHELL, PYTHON = ("bash", "sh", "console"), ("python",)
BLOCK = re.compile(
    r"^(?P<skip><!-- not run: [^\n]+ -->\n+)?```(?P<language>\w+)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
SECONDS = 600


def program(page: str, languages: tuple[str, ...]) -> str:
    """The page with all but these blocks blanked, so that a traceback has the page's line numbers.

    Of a console block, only what follows a prompt `$ ` is kept.
    """
    lines = [""] * (page.count("\n") + 1)
    for block in BLOCK.finditer(page):
        if block["language"] in languages and not block["skip"]:
            first = page.count("\n", 0, block.start("code"))
            for offset, line in enumerate(block["code"].splitlines()):
                if block["language"] == "console":
                    line = line[2:] if line.startswith("$ ") else ""
                lines[first + offset] = line
    return "\n".join(lines)


def run_page(page: Path, languages: tuple[str, ...], folder: Path) -> None:
    """Runs a page's program in `folder`; fails with its output."""
    source = program(page.read_text(encoding="utf-8"), languages)
    if not source.strip():
        return
    script = folder / page.name
    script.write_text(source, encoding="utf-8")
    command = [sys.executable] if languages == PYTHON else ["bash", "-euo", "pipefail"]
    # The command line of this environment, as after `pip install`.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [*command, str(script)],
        cwd=folder,
        env={**os.environ, "PATH": path},
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=SECONDS,
    )
    assert done.returncode == 0, f"{page.name}, {'/'.join(languages)} blocks:\n{done.stdout}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_run(page: Path, tmp_path: Path) -> None:
    make_translator().save(tmp_path / "runs" / "m30k", make_config())
    run_page(page, SHELL, tmp_path)
    run_page(page, PYTHON, tmp_path)


PAGE = """# Title
```python
x = 1
```
<!-- not run: it is wrong -->
```python
raise SystemExit(3)
```
```console
$ echo $((1 + 1)) > two.txt
2
```
```python
y = x + 1
assert open("two.txt").read() == f"{y}\\n"
```
"""


def test_blocks_keep_their_lines_and_share_names(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    lines = program(PAGE, PYTHON).split("\n")
    assert (lines[2], lines[13]) == ("x = 1", "y = x + 1")
    (tmp_path / "run").mkdir()
    run_page(page, SHELL, tmp_path / "run")
    run_page(page, PYTHON, tmp_path / "run")


@pytest.mark.parametrize(
    ("languages", "code"), [(PYTHON, "raise SystemExit(3)"), (SHELL, "false\ntrue")]
)
def test_a_block_that_fails_is_seen(languages: tuple[str, ...], code: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"```{languages[0]}\n{code}\n```\n")
    (tmp_path / "run").mkdir()
    with pytest.raises(AssertionError, match=f"page.md, {languages[0]}"):
        run_page(page, languages, tmp_path / "run")

"""docs/design.md says what is proven of each layer: the tests that it names are there."""

import ast
import re
from pathlib import Path

import tf_transformer.layers
from tf_transformer.layers import POSITIONS

TESTS = Path(__file__).parent
TITLE = "## What is proven of each layer\n"
SECTION = (TESTS.parent / "docs" / "design.md").read_text(encoding="utf-8").split(TITLE)[1]
SECTION = SECTION.split("\n## ")[0]
NAMED = re.compile(r"`(test_\w+)`")


def names_in(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def table():
    """The rows as cells, without the two lines of the head."""
    lines = [line for line in SECTION.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[1:]]


def test_every_public_name_has_a_row():
    rows = {name for row in table() for name in re.findall(r"`([^`]+)`", row[0])}
    schemes = {f'POSITIONS["{name}"]' for name in POSITIONS}
    public = {name for name in tf_transformer.layers.__all__ if name != "POSITIONS"}
    assert rows == public | schemes | {"build_transformer"}


def test_every_row_names_tests_of_its_file():
    assert len(table()) > 15 and {len(row) for row in table()} == {7}
    for name, file, *cells in table():
        named = NAMED.findall(" ".join(cells))
        link = re.search(r"\(\.\./tests/([\w/.]+)\)", file)
        assert not named or set(named) <= names_in(TESTS / link[1]), name


def test_what_is_named_outside_the_table_is_there():
    everything = set().union(*(names_in(path) for path in TESTS.rglob("test_*.py")))
    prose = [line for line in SECTION.splitlines() if not line.startswith("| ")]
    named = NAMED.findall("\n".join(prose))
    assert len(named) > 8 and set(named) <= everything

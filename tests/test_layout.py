"""The house rules that no linter knows. docs/design.md says why they are rules."""

import ast
import configparser
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("tf_transformer", "training", "export")
ROOM_FILES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
ALL_FILES = sorted(
    [*ROOM_FILES, *(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
)
MAX_FILE_LINES = 220
MAX_FUNCTION_LINES = 50
ATTICS = {"base", "common", "helper", "helpers", "misc", "shared", "util", "utils"}
# Methods whose meaning is Keras's or TensorFlow's, told there.
INHERITED = {
    "build", "call", "compute_mask", "compute_output_shape", "compute_output_spec",
    "from_config", "get_config", "on_epoch_begin", "on_epoch_end", "on_train_batch_begin",
    "on_train_batch_end", "on_train_begin", "on_train_end", "reset_state", "result",
    "test_step", "train_step", "update_state",
}  # fmt: skip
Function = ast.FunctionDef | ast.AsyncFunctionDef


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def where(path: Path, node: ast.AST | None = None) -> str:
    return f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"


def imported(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Every name that an import statement of a file may bind a module to."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((node, f"{node.module}.{alias.name}") for alias in node.names)


def public(owner: ast.Module | ast.ClassDef) -> Iterator[ast.ClassDef | Function]:
    """Public classes, functions and methods, without those whose meaning is told elsewhere."""
    for node in owner.body:
        if isinstance(node, (ast.ClassDef, Function)) and not node.name.startswith("_"):
            if isinstance(owner, ast.Module) or node.name not in INHERITED:
                yield node
            if isinstance(node, ast.ClassDef):
                yield from public(node)


def code_length(node: Function) -> int:
    """Lines of a function from `def` to its end, without its docstring."""
    length = (node.end_lineno or node.lineno) - node.lineno + 1
    if ast.get_docstring(node):
        length -= (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
    return length


def none(wrong: list[str], rule: str) -> None:
    """Fails with the rule and every place that breaks it."""
    assert not wrong, "\n".join([rule, *wrong])


def setup_cfg() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return parser


def test_the_rooms_are_found() -> None:
    """The other tests would pass on nothing."""
    assert {path.relative_to(ROOT).parts[0] for path in ROOM_FILES} == set(ROOMS)


def test_a_room_has_one_name() -> None:
    mapped = re.compile(r"tf_transformer\.(training|export)(\.|$)")
    wrong = [
        f"{where(path, node)}: {name}"
        for path in ALL_FILES
        for node, name in imported(parse(path))
        if mapped.match(name)
    ]
    none(wrong, "in the checkout the rooms are called `training` and `export`")


def test_no_attic() -> None:
    wrong = [
        where(path) for path in ROOM_FILES if {path.stem.strip("_"), path.parent.name} & ATTICS
    ]
    none(wrong, "a file is called by what it holds")


def test_files_are_short() -> None:
    lengths = {where(path): path.read_text("utf-8").count("\n") for path in ROOM_FILES}
    wrong = [f"{name} has {lines}" for name, lines in lengths.items() if lines > MAX_FILE_LINES]
    none(wrong, f"a file has at most {MAX_FILE_LINES} lines")


def test_functions_are_short() -> None:
    wrong = [
        f"{where(path, node)}: {node.name} has {code_length(node)} lines"
        for path in ROOM_FILES
        for node in ast.walk(parse(path))
        if isinstance(node, Function) and code_length(node) > MAX_FUNCTION_LINES
    ]
    none(wrong, f"a function has at most {MAX_FUNCTION_LINES} lines without its docstring")


def test_public_names_have_docstrings() -> None:
    wrong = [where(path) for path in ROOM_FILES if not ast.get_docstring(parse(path))]
    wrong += [
        f"{where(path, node)}: {node.name}"
        for path in ROOM_FILES
        for node in public(parse(path))
        if not ast.get_docstring(node)
    ]
    none(wrong, "modules and what is public in them have docstrings")


def test_every_package_is_listed_and_mapped() -> None:
    options = setup_cfg()["options"]
    listed = set(options["packages"].split())
    pairs = (line.split("=") for line in options["package_dir"].strip().splitlines())
    mapped = {name.strip(): folder.strip() for name, folder in pairs}
    folders = {path.parent.relative_to(ROOT).as_posix() for path in ROOM_FILES}
    names = {
        folder: ("" if folder.startswith("tf_transformer") else "tf_transformer.")
        + folder.replace("/", ".")
        for folder in folders
    }
    assert set(names.values()) == listed
    assert {name: folder for folder, name in names.items() if name in mapped} == mapped
    outside = {name for folder, name in names.items() if not folder.startswith("tf_transformer")}
    assert outside == set(mapped)
    no_init = [folder for folder in folders if not (ROOT / folder / "__init__.py").is_file()]
    assert not no_init, f"these folders need an __init__.py: {no_init}"


def test_the_version_is_said_once() -> None:
    version = setup_cfg()["metadata"]["version"]
    for node in parse(ROOT / "tf_transformer" / "__init__.py").body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__version__":
            assert ast.literal_eval(node.value) == version
            break
    else:
        pytest.fail("tf_transformer/__init__.py assigns no literal __version__")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## \[(\d[^\]]*)\]", changelog, re.MULTILINE)
    assert not released or version == released[0], "CHANGELOG.md's newest release is another"


def test_text_and_tensorflow_have_one_minor_version() -> None:
    """tensorflow-text's ops are compiled against one TensorFlow; 2.21.0 can't be imported."""
    required = setup_cfg()["options"]["install_requires"]
    (tensorflow,) = re.findall(r"^tensorflow ~=(\d+\.\d+)\.", required, re.MULTILINE)
    (text,) = re.findall(r"^tensorflow-text >=(\d+\.\d+)\.[1-9]", required, re.MULTILINE)
    assert tensorflow == text

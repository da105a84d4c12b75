"""Meets the wheel as a stranger does: built, installed outside the checkout, imported, run.

    python tests/wheel_check.py

A package that setup.cfg forgets still works in an editable install and is silently missing from
the wheel; this is the check that sees it. Heavy dependencies are not downloaded again: the clean
environment borrows the site-packages of the Python that runs this.
"""

import json
import os
import shutil
import site
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Where each room of the checkout is in the wheel.
ROOMS = {
    "tf_transformer": "tf_transformer",
    "training": "tf_transformer/training",
    "export": "tf_transformer/export",
}
BUILD_FILES = ("setup.cfg", "pyproject.toml", "README.md", "LICENSE")
HEAVY = {"tensorflow", "tensorflow_text", "keras"}

IMPORT_ALL = """
import importlib, json, sys
home, names = json.loads(sys.argv[1])
for name in names:
    origin = importlib.import_module(name).__file__
    if not origin.startswith(home):
        sys.exit(f"{name} came from {origin}, not from the wheel in {home}")
"""


def main() -> None:
    """Runs every check; the first that fails ends the process with one sentence."""
    files = tracked_files()
    with tempfile.TemporaryDirectory(prefix="wheel_check_") as folder:
        wheel = build_wheel(files, Path(folder))
        check_contents(wheel, files)
        environment = Path(folder, "environment")
        site_packages = install(wheel, environment)
        elsewhere = Path(folder, "elsewhere")
        elsewhere.mkdir()
        modules = check_imports(wheel, environment, site_packages, elsewhere)
        check_command(environment, elsewhere)
    print(f"{wheel.name}: {len(files)} files, {modules} modules import, `tf-transformer` runs")


def tracked_files() -> list[Path]:
    """The rooms' files, relative to the root: those git knows or would add, or all without git."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", *ROOMS]
    try:
        listing = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        found = [Path(name) for name in listing.stdout.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        found = []
    found = found or [path.relative_to(ROOT) for room in ROOMS for path in (ROOT / room).rglob("*")]
    return sorted(
        path for path in set(found) if (ROOT / path).is_file() and "__pycache__" not in path.parts
    )


def build_wheel(files: list[Path], folder: Path) -> Path:
    """Builds from a copy, so that no stale build/ can add a file and none is left behind."""
    source = folder / "source"
    for path in [*files, *(Path(name) for name in BUILD_FILES)]:
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, source / path)
    # No isolation: setuptools is an extra of the tests, and nothing is downloaded.
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", source)
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel


def check_contents(wheel: Path, files: list[Path]) -> None:
    """The wheel holds the rooms' files, each at its place, and nothing else."""
    expected = {"/".join([ROOMS[path.parts[0]], *path.parts[1:]]) for path in files}
    actual = {
        name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info" not in name.split("/")[0]
    }
    if expected != actual:
        sys.exit(
            f"The wheel is not the checkout. Missing: {sorted(expected - actual)}. "
            f"Too much: {sorted(actual - expected)}. Is each package and data file in setup.cfg?"
        )


def install(wheel: Path, environment: Path) -> str:
    """A clean environment with the wheel; returns its site-packages."""
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel)
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site_packages = run(python, "-c", where).strip()
    landed = {path.name for path in Path(site_packages).iterdir()} - {"__pycache__"}
    landed -= {name for name in landed if name.startswith(("pip", "setuptools", "_distutils_hack"))}
    landed -= {"pkg_resources", "distutils-precedence.pth"}
    if {name for name in landed if not name.endswith(".dist-info")} != {"tf_transformer"}:
        sys.exit(f"Only `tf_transformer` may land in site-packages. Found: {sorted(landed)}")
    # A path in a .pth is searched but its own .pth files are not run: the packages of the present
    # environment are seen and its editable install of this project is not.
    Path(site_packages, "borrowed.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    return site_packages


def check_imports(wheel: Path, environment: Path, site_packages: str, elsewhere: Path) -> int:
    """Imports every module from a foreign directory; returns how many there are."""
    names = [
        name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name in zipfile.ZipFile(wheel).namelist()
        if name.endswith(".py") and not name.endswith("__main__.py")
    ]
    python = environment / "bin" / "python"
    run(python, "-c", IMPORT_ALL, json.dumps([site_packages, sorted(names)]), cwd=elsewhere)
    return len(names)


def check_command(environment: Path, elsewhere: Path) -> None:
    """`tf-transformer --help` answers, and answers without loading TensorFlow."""
    python, command = environment / "bin" / "python", environment / "bin" / "tf-transformer"
    if "Usage" not in run(command, "--help", cwd=elsewhere):
        sys.exit("`tf-transformer --help` does not print its usage.")
    imported = run(python, "-X", "importtime", command, "--help", cwd=elsewhere)
    modules = {line.rpartition("|")[2].strip() for line in imported.splitlines()}
    if "tf_transformer.cli" not in modules or modules & HEAVY:
        sys.exit(f"`tf-transformer --help` loads {sorted(modules & HEAVY)}, which takes seconds.")


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """Output of a command, errors included; a failure ends the check and shows all of it."""
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode:
        sys.exit(f"{done.stdout}\nThe wheel check failed at: {' '.join(map(str, command))[:200]}")
    return done.stdout


if __name__ == "__main__":
    main()

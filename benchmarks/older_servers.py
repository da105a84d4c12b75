"""An export in the C++ libraries of the TensorFlow versions that model servers are built from.

    python benchmarks/older_servers.py models/en-de --wheels wheels

TensorFlow Serving has no package that this could install, but its servers are built from the same
libraries as TensorFlow's wheels: the same loader of SavedModels, the same registry of operations.
Each version's wheels (250 MB, kept in --wheels) are unpacked, not installed; the export is asked
with every probe of `tf-transformer check` through the C library of each, in a process without
Python's TensorFlow, and compared with the installed version. 2.12.1 is there since servers up to
2.19 link the tensorflow_text of that version.

What is printed of the registries is what `export/servers.py` has in its tables.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

TAGS = ["manylinux2014_x86_64", "manylinux_2_17_x86_64"]
# TensorFlow and tensorflow_text; of 2.19 the wheels of text hold one library that loads.
VERSIONS = {"2.12.1": "2.12.1", "2.16.1": "2.16.1", "2.17.0": "2.17.0", "2.18.0": "2.18.0"}
VERSIONS |= {"2.19.1": "2.19.0", "2.20.0": "2.20.0"}
REGISTRY = """
import ctypes, sys
libraries = [ctypes.CDLL(path, ctypes.RTLD_GLOBAL) for path in sys.argv[1:3]]
tensorflow = libraries[1]
class Buffer(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("length", ctypes.c_size_t)]
tensorflow.TF_NewStatus.restype = ctypes.c_void_p
tensorflow.TF_GetAllOpList.restype = ctypes.POINTER(Buffer)
for path in sys.argv[3:]:
    tensorflow.TF_LoadLibrary(path.encode(), ctypes.c_void_p(tensorflow.TF_NewStatus()))
found = tensorflow.TF_GetAllOpList().contents
sys.stdout.buffer.write(ctypes.string_at(found.data, found.length))
"""
NEEDED = ("_sentencepiece_tokenizer.so", "_fast_wordpiece_tokenizer.so")


def main() -> None:
    """Asks every version, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("export", type=Path)
    parser.add_argument("--wheels", type=Path, default=Path("wheels"))
    arguments = parser.parse_args()
    requests, expected, operations = ask_installed(arguments.export)
    before: set[str] = set()
    print("| TensorFlow | graph version | operations | the export's, missing | requests answered |")
    print("|---|---|---|---|---|")
    for version, text in VERSIONS.items():
        folder = unpacked(arguments.wheels, version, text)
        names = registry(folder)
        found = ask(folder, arguments.export, requests)
        alike = sum(is_alike(*pair) for pair in zip(found, expected, strict=False))
        columns = version, graph_version(folder), len(names), ", ".join(sorted(operations - names))
        print("|", *(f"{column} |" for column in columns), f"{alike} of {len(requests)} alike |")
        if before:
            print(f"new in {version}: {', '.join(sorted(names - before))}", file=sys.stderr)
        before = names


def ask_installed(export: Path) -> tuple[list, list, set[str]]:
    """Requests in the form of `c_library`, the installed version's answers, the operations."""
    from export.answers import as_program_input
    from export.meta_graph import all_nodes, read_meta_graph
    from export.probes import probes
    from tf_transformer.saved import find_saved_model

    folder = find_saved_model(export)
    if folder is None:
        sys.exit(f"{export} is no SavedModel")
    graph = read_meta_graph(folder)
    requests = [as_program_input(graph, request) for request in probes(graph)]
    functions = {function.signature.name for function in graph.graph_def.library.function}
    operations = {node.op for node in all_nodes(graph)} - functions
    return requests, ask(None, folder, requests), operations


def ask(libraries: Path | None, export: Path, requests: list) -> list:
    """Answers of the C library in a folder of unpacked wheels, or of the installed one."""
    from export import c_library
    from tf_transformer.saved import find_saved_model

    done = subprocess.run(
        [
            sys.executable,
            *(["-S"] if libraries else []),
            c_library.__file__,
            find_saved_model(export),
        ],
        input=json.dumps(requests),
        env={**os.environ, **({"PYTHONPATH": str(libraries)} if libraries else {})},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        return [done.stderr.strip().splitlines()[-1]]
    return json.loads(done.stdout)


def is_alike(found: Any, expected: Any) -> bool:
    """Equal, numbers within 1e-4."""
    if isinstance(expected, float):
        return isinstance(found, float) and math.isclose(
            found, expected, rel_tol=1e-4, abs_tol=1e-4
        )
    if isinstance(expected, dict):
        return set(found) == set(expected) and all(is_alike(found[x], expected[x]) for x in found)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(is_alike, found, expected))
    return found == expected


def unpacked(wheels: Path, version: str, text: str) -> Path:
    """A folder from which both packages' libraries can be loaded."""
    folder = wheels.absolute() / version
    if (folder / "tensorflow" / "__init__.py").is_file():
        return folder
    for name, of in (("tensorflow-cpu", version), ("tensorflow-text", text)):
        tags = [word for tag in TAGS for word in ("--platform", tag)]
        tags += ["--python-version", "3.11", "--only-binary=:all:", "--no-deps", "--quiet"]
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            *tags,
            "--dest",
            wheels,
            f"{name}=={of}",
        ]
        subprocess.run(command, check=True)
        (wheel,) = wheels.glob(f"{name.replace('-', '_')}-{of}-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.namelist():
                if "/libtensorflow" in member or member.endswith((*NEEDED, "public/version.h")):
                    archive.extract(member, folder)
    (folder / "tensorflow_text" / "__init__.py").touch()
    drop_what_does_not_load(folder)
    (folder / "tensorflow" / "__init__.py").touch()
    return folder


def drop_what_does_not_load(folder: Path) -> None:
    """A wheel of tensorflow_text whose TensorFlow is another build has libraries without it."""
    for library in (folder / "tensorflow_text").rglob("_*.so"):
        load = "import ctypes, sys; [ctypes.CDLL(x, ctypes.RTLD_GLOBAL) for x in sys.argv[1:]]"
        needs = [folder / "tensorflow" / f"libtensorflow_{x}.so.2" for x in ("framework", "cc")]
        done = subprocess.run([sys.executable, "-c", load, *needs, library], capture_output=True)
        if done.returncode:
            library.unlink()
            print(f"{library.name} of {folder.name} does not load and is left out", file=sys.stderr)


def registry(folder: Path) -> set[str]:
    """All operations that the libraries in a folder know, in a process that has no others."""
    from tensorflow.core.framework import op_def_pb2

    libraries = [folder / "tensorflow" / f"libtensorflow_{x}.so.2" for x in ("framework", "cc")]
    more = sorted((folder / "tensorflow_text").rglob("_*.so"))
    command = [sys.executable, "-S", "-c", REGISTRY, *libraries, *more]
    done = subprocess.run(command, check=True, capture_output=True)
    return {op.name for op in op_def_pb2.OpList.FromString(done.stdout).op}


def graph_version(folder: Path) -> str:
    """TF_GRAPH_DEF_VERSION."""
    (header,) = folder.rglob("version.h")
    lines = header.read_text().splitlines()
    return next(x.split()[2] for x in lines if x.startswith("#define TF_GRAPH_DEF_VERSION "))


if __name__ == "__main__":
    main()

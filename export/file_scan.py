"""What can be seen in a SavedModel's files beside the graph: how big they are, whether they are
what was exported."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import tensorflow as tf

from tf_transformer.saved import METADATA_FILE

from .meta_graph import MetaGraph, Node, reachable_nodes
from .result import CheckResult

_VARIABLE_OPS = {"VarHandleOp", "VariableV2", "Variable"}
_OVERHEAD = 1 << 16  # bytes that may be there beside the weights: step counters and the like


def check_size(folder: Path, graph: MetaGraph) -> CheckResult:
    """The variables are those that the signatures use, each once: no copy, no optimizer."""
    prefix = folder / "variables" / "variables"
    if not prefix.with_name("variables.index").is_file():
        return CheckResult("size", True, "no variables")
    reader = tf.train.load_checkpoint(str(prefix))
    types, shapes = reader.get_variable_to_dtype_map(), reader.get_variable_to_shape_map()
    stored = sum(
        _bytes(types[name], shape) for name, shape in shapes.items() if types[name] != tf.string
    )
    used = sum(_node_bytes(node) for node in reachable_nodes(graph) if node.op in _VARIABLE_OPS)
    fine = stored <= 1.1 * used + _OVERHEAD
    return CheckResult(
        "size", fine, f"{_mib(stored)} of variables stored, {_mib(used)} used by signatures"
    )


def check_metadata(folder: Path, graph: MetaGraph) -> CheckResult:
    """The files are those whose digests the export noted."""
    path = folder / METADATA_FILE
    if not path.is_file():
        return CheckResult("metadata", True, f"skipped: there is no {METADATA_FILE}")
    try:
        metadata = json.loads(path.read_text(encoding="utf-8"))
        noted, versions = metadata["files_sha256"], metadata["versions"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        return CheckResult("metadata", False, f"{METADATA_FILE} is broken: {error!r}")
    found = file_digests(folder)
    wrong = [name for name in sorted({*noted, *found}) if noted.get(name) != found.get(name)]
    if wrong:
        detail = f"not the file that was exported: {', '.join(wrong)}"
        return CheckResult("metadata", False, detail)
    made_by = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
    return CheckResult("metadata", True, f"{len(found)} files as exported by {made_by}")


FILE_SCANS: list[Callable[[Path, MetaGraph], CheckResult]] = [check_size, check_metadata]


def file_digests(folder: Path) -> dict[str, str]:
    """SHA-256 of each file that a server loads, by its path in the version folder."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    names = [path.relative_to(folder).as_posix() for path in files]
    return {
        name: _sha256(path)
        for name, path in zip(names, files, strict=True)
        if not name.startswith("assets.extra/")
    }


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _node_bytes(node: Node) -> int:
    return _bytes(
        tf.dtypes.as_dtype(node.attr["dtype"].type), [x.size for x in node.attr["shape"].shape.dim]
    )


def _bytes(dtype: tf.DType, shape: list[int]) -> int:
    return int(np.prod(shape, dtype=np.int64)) * dtype.size


def _mib(count: int) -> str:
    return f"{count / (1 << 20):,.2f} MiB"

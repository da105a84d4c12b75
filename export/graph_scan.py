"""What can be seen in a SavedModel without running it: its operations, signatures and strings.

`tf.saved_model.load` accepts much that a server refuses or that fails at the first request.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import saved_model_pb2

from tf_transformer.errors import InputError

from .result import CheckResult

MetaGraph = Any  # tensorflow.MetaGraphDef

_PYTHON_OPS = {"PyFunc", "EagerPyFunc", "PyFuncStateless"}
# TF Serving 2.12 to 2.19 link tensorflow_text 2.12.1, whose library of ops lacks these.
_TOO_NEW_OPS = {"TFText>Utf8Binarize", "TFText>RoundRobinTrim", "TFText>RoundRobinGenerateMasks"}
_RANDOM_OPS = re.compile(
    "Random|Multinomial|TruncatedNormal|StandardNormal|StatefulUniform|StatelessShuffle"
    "|NonDeterministicInts|CandidateSampler|SampleDistorted|^Rng"
)


def read_meta_graph(saved_model: Path) -> MetaGraph:
    """The graph that servers load, the one tagged "serve".

    Raises:
        InputError: the file cannot be read, or holds no such graph.
    """
    path = saved_model / "saved_model.pb"
    try:
        content = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    except (OSError, DecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    for graph in content.meta_graphs:
        if list(graph.meta_info_def.tags) == ["serve"]:
            return graph
    raise InputError(f'{path} has no graph with the tag "serve".')


def signatures(graph: MetaGraph) -> dict[str, Any]:
    """The signatures that clients can call, by name."""
    return {k: v for k, v in sorted(graph.signature_def.items()) if not k.startswith("__")}


def check_operations(graph: MetaGraph) -> CheckResult:
    """No op that only Python has or that stock servers lack, nothing compiled with XLA."""
    used = {node.op for node in _all_nodes(graph)}
    problems = [f"{op} runs in Python only" for op in sorted(used & _PYTHON_OPS)]
    problems += [f"{op} is unknown to TF Serving before 2.20" for op in sorted(used & _TOO_NEW_OPS)]
    # Servers have XLA off: such a function fails at the first request, and strings in it anyway.
    compiled = {f.signature.name for f in graph.graph_def.library.function if _is_compiled(f)}
    compiled |= {node.name for node in _all_nodes(graph) if _is_compiled(node)}
    problems += [f"{name} must be compiled with XLA" for name in sorted(compiled)]
    return _result("operations", problems, f"{len(used)} kinds, none that a stock server lacks")


def check_signatures(graph: MetaGraph) -> CheckResult:
    """Every tensor is dense with a free first dimension, so that a server can batch requests."""
    problems = [] if "serving_default" in signatures(graph) else ["there is no serving_default"]
    for name, signature in signatures(graph).items():
        for side, tensors in (("input", signature.inputs), ("output", signature.outputs)):
            for key, tensor in sorted(tensors.items()):
                problem = _tensor_problem(tensor)
                if problem:
                    problems.append(f"{name}: {side} `{key}` {problem}")
    return _result("signatures", problems, ", ".join(signatures(graph)))


def check_randomness(graph: MetaGraph) -> CheckResult:
    """Nothing random is on the way to an output: dropout and sampling are off."""
    found = {node.op for node in _reachable_nodes(graph) if _RANDOM_OPS.search(node.op)}
    return _result("randomness", [f"{op} is used" for op in sorted(found)], "no random operation")


def check_paths(graph: MetaGraph) -> CheckResult:
    """No string of the graph is a path of this machine: the model works wherever it is copied."""
    here = [os.path.abspath(os.curdir), os.path.expanduser("~"), sys.prefix]
    folders = [os.fsencode(folder) for folder in here if folder.count(os.sep) > 1]
    found = {text for text in _strings(graph) if _is_local_path(text, folders)}
    problems = [f"{os.fsdecode(text)!r} is a path of this machine" for text in sorted(found)]
    return _result("paths", problems, "no path of this machine")


SCANS: list[Callable[[MetaGraph], CheckResult]] = [
    check_operations,
    check_signatures,
    check_randomness,
    check_paths,
]


def _result(name: str, problems: list[str], fine: str) -> CheckResult:
    return CheckResult(name, not problems, "; ".join(problems) or fine)


def _all_nodes(graph: MetaGraph) -> Iterator[Any]:
    yield from graph.graph_def.node
    for function in graph.graph_def.library.function:
        yield from function.node_def


def _reachable_nodes(graph: MetaGraph) -> Iterator[Any]:
    """The nodes that the signatures' outputs need, and all of every function they call."""
    nodes = {node.name: node for node in graph.graph_def.node}
    outputs = [t for s in signatures(graph).values() for t in s.outputs.values()]
    names, found = [tensor.name for tensor in outputs], {}
    while names:
        name = names.pop().lstrip("^").partition(":")[0]
        if name in nodes and name not in found:
            found[name] = nodes[name]
            names += nodes[name].input
    yield from found.values()
    functions = {f.signature.name: f for f in graph.graph_def.library.function}
    called = [name for node in found.values() for name in _called_functions(node)]
    while called:
        function = functions.pop(called.pop(), None)
        for node in function.node_def if function else ():
            yield node
            called += _called_functions(node)


def _called_functions(node: Any) -> Iterator[str]:
    for value in node.attr.values():
        if value.HasField("func"):
            yield value.func.name
        yield from (function.name for function in value.list.func)


def _is_compiled(item: Any) -> bool:
    return item.attr["_XlaMustCompile"].b if "_XlaMustCompile" in item.attr else False


def _tensor_problem(tensor: Any) -> str:
    if tensor.WhichOneof("encoding") != "name":
        return "is ragged or sparse"
    shape = tensor.tensor_shape
    if shape.unknown_rank:
        return "has an unknown rank"
    if not shape.dim:
        return "is a scalar"
    return "" if shape.dim[0].size == -1 else f"has the fixed batch size {shape.dim[0].size}"


def _strings(graph: MetaGraph) -> Iterator[bytes]:
    yield from (os.fsencode(asset.filename) for asset in graph.asset_file_def)
    for node in _all_nodes(graph):
        if node.op != "SentencepieceOp":  # its model holds the pieces of any text
            for value in node.attr.values():
                yield from (value.s, *value.list.s, *value.tensor.string_val)


def _is_local_path(text: bytes, folders: list[bytes]) -> bool:
    if any(folder in text for folder in folders):
        return True
    return text.startswith(b"/") and len(text) > 1 and b"\0" not in text and os.path.exists(text)

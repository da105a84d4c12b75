"""What can be seen in a SavedModel without running it: its operations, signatures and strings.

`tf.saved_model.load` accepts much that a server refuses or that fails at the first request.
"""

import hashlib
import os
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from . import servers
from .meta_graph import MetaGraph, Node, all_nodes, reachable_nodes, signatures
from .result import CheckResult

_RANDOM_OPS = re.compile(
    "Random|Multinomial|TruncatedNormal|StandardNormal|StatefulUniform|StatelessShuffle"
    "|NonDeterministicInts|CandidateSampler|SampleDistorted|^Rng"
)
_TRAINING_OPS = re.compile("^(Resource)?(Sparse)?Apply[A-Z]|^ResourceScatter|^Assign")
_FILE_OPS = re.compile(
    "^(ReadFile|WriteFile|MatchingFiles|SaveSlices|RestoreSlice|LoadDataset|SnapshotDataset"
    "|(TextLine|TFRecord|FixedLengthRecord)Dataset|(TextLine|TFRecord|WholeFile)Reader"
    "|InitializeTableFromTextFile|GenerateVocabRemapping|LoadAndRemapMatrix|SimpleMLLoad)"
)


def check_operations(graph: MetaGraph) -> CheckResult:
    """No op that only Python has or that no stock server links, nothing compiled with XLA."""
    kinds = len({node.op for node in all_nodes(graph)})
    return _result("operations", servers.unservable(graph), f"{kinds} kinds, all in stock servers")


def check_servers(graph: MetaGraph, versions: Iterable[str] = servers.SERVERS) -> CheckResult:
    """Each of these versions of TensorFlow Serving has what the graph needs."""
    found = servers.missing(graph, versions)
    problems = [
        f"TensorFlow Serving {version} {what}" for version, lacks in found.items() for what in lacks
    ]
    return _result("servers", problems, f"TensorFlow Serving {', '.join(found)}")


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
    found = {node.op for node in reachable_nodes(graph) if _RANDOM_OPS.search(node.op)}
    return _result("randomness", [f"{op} is used" for op in sorted(found)], "no random operation")


def check_training(graph: MetaGraph) -> CheckResult:
    """No request changes the model: nothing that trains or writes is on the way to an output."""
    found = {node.op for node in reachable_nodes(graph) if _TRAINING_OPS.search(node.op)}
    problems = [f"{op} changes the model at a request" for op in sorted(found)]
    return _result("training", problems, "no request changes a variable")


def check_tokenizers(graph: MetaGraph) -> CheckResult:
    """Every SentencePiece model has a name of its own.

    By that name it is held when the graph runs: of two models under one, one is used for both
    (tensorflow/text #1304).
    """
    models = defaultdict(set)
    for node in all_nodes(graph):
        if node.op == "SentencepieceOp":
            name = node.attr["shared_name"].s.decode() or node.name
            models[name].add(hashlib.sha256(node.attr["model"].s).hexdigest())
    problems = [
        f"{len(found)} SentencePiece models are called {name}, and one is used for all"
        for name, found in sorted(models.items())
        if len(found) > 1
    ]
    different = len({digest for found in models.values() for digest in found})
    return _result("tokenizers", problems, f"{different} SentencePiece models kept apart")


def check_paths(graph: MetaGraph) -> CheckResult:
    """No file outside is opened, and no string names a folder of this machine."""
    problems = [
        f"{os.fsdecode(path)!r} is opened by {op}" for op, path in sorted(_opened_files(graph))
    ]
    opened = {path for _, path in _opened_files(graph)}
    here = [re.compile(rb"(?<![\w/])%s(?![\w.-])" % re.escape(x)) for x in _folders()]
    named = {text for text in _strings(graph) if any(x.search(text) for x in here)} - opened
    problems += [f"{os.fsdecode(text)!r} is a path of this machine" for text in sorted(named)]
    return _result("paths", problems, "no path of this machine")


SCANS: list[Callable[[MetaGraph], CheckResult]] = [
    check_operations,
    check_signatures,
    check_randomness,
    check_training,
    check_tokenizers,
    check_paths,
]


def _result(name: str, problems: list[str], fine: str) -> CheckResult:
    return CheckResult(name, not problems, "; ".join(problems) or fine)


def _tensor_problem(tensor: Any) -> str:
    if tensor.WhichOneof("encoding") != "name":
        return "is ragged or sparse"
    shape = tensor.tensor_shape
    if shape.unknown_rank:
        return "has an unknown rank"
    if not shape.dim:
        return "is a scalar"
    return "" if shape.dim[0].size == -1 else f"has the fixed batch size {shape.dim[0].size}"


def _folders() -> Iterator[bytes]:
    """Folders that are this machine's or its user's own; others have their /usr/local too."""
    folders = [os.path.abspath(os.curdir), os.path.expanduser("~")]
    if sys.prefix != sys.base_prefix:  # a virtual environment
        folders.append(sys.prefix)
    yield from (os.fsencode(folder) for folder in folders if folder.count(os.sep) > 1)


def _opened_files(graph: MetaGraph) -> Iterator[tuple[str, bytes]]:
    """Operations that open files, with the absolute paths that the graph holds for them."""
    bodies = [graph.graph_def.node, *(f.node_def for f in graph.graph_def.library.function)]
    for body in bodies:
        nodes = {node.name: node for node in body}
        for node in body:
            if _FILE_OPS.search(node.op):
                yield from ((node.op, path) for path in _constants(node, nodes))


def _constants(node: Node, nodes: dict[str, Node]) -> set[bytes]:
    """Absolute paths among the strings that a node's inputs are made of, within one body."""
    names, seen, found = list(node.input), set(), set()
    while names:
        name = names.pop().lstrip("^").partition(":")[0]
        if name in nodes and name not in seen:
            seen.add(name)
            names += nodes[name].input
            found |= {text for text in _attributes(nodes[name]) if re.match(b"/.", text)}
    return found


def _strings(graph: MetaGraph) -> Iterator[bytes]:
    yield from (os.fsencode(asset.filename) for asset in graph.asset_file_def)
    for node in all_nodes(graph):
        if node.op != "SentencepieceOp":  # its model holds the pieces of any text
            yield from _attributes(node)


def _attributes(node: Node) -> Iterator[bytes]:
    for value in node.attr.values():
        yield from (value.s, *value.list.s, *value.tensor.string_val)

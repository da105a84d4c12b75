"""Which TensorFlow Serving can run a graph: what its operations need, and what each server has.

A server's core operations are those of the TensorFlow it is built from. The tables are the
differences between the registries of its pip wheels (`TF_GetAllOpList`); what they say of our own
exports is tried with these very libraries in `benchmarks/older_servers.py`. Of tensorflow_text
stock servers up to 2.19 link 2.12.1 and 2.20 links 2.20.0; they link the inference of
tensorflow_decision_forests as well (`SUPPORTED_TENSORFLOW_OPS` of tensorflow_serving).
"""

import re
from collections.abc import Iterable, Iterator

import tensorflow_text  # noqa: F401  (registers its ops)
from tensorflow.python.framework import op_def_registry

from .meta_graph import MetaGraph, Node, all_nodes

# Version -> TF_GRAPH_DEF_VERSION, the newest kind of graph that it reads.
SERVERS = {"2.16": 1766, "2.17": 1882, "2.18": 1994, "2.19": 2129, "2.20": 2288}
_NONE = "none"  # in no stock server

_NEW_OPS = {
    "2.17": """
        CalibrationStatisticsSaver ComputeDedupDataSizeV2 ComputeDedupDataTupleMaskV2
        ConvertToListOfSparseCoreCooTensors ConvertToSparseCoreCsrWrappedCooTensor
        FinalizeTPUEmbeddingV2 GetStatsFromListOfSparseCoreCooTensors GetTpuTaskId
        GlobalShuffleDataset IndexFlatMapDataset IteratorGetModelProto
        SortListOfSparseCoreCooTensors UpdateTaskIdAndGlobalCoreArray WeightedFlatMapDataset""",
    "2.18": "CheckPinned",
    "2.20": """
        DecodeWebP TPUDummyInput XlaSparseActivationsUnstack XlaSparseGradientsStack
        TFText>RoundRobinGenerateMasks TFText>RoundRobinTrim TFText>Utf8Binarize""",
    _NONE: "DecodeJxl",
}
_FIRST_SERVER = {op: version for version, ops in _NEW_OPS.items() for op in ops.split()}
# An older server refuses an attribute that it does not know, even with its default.
_NEW_ATTRIBUTES = [
    ("2.17", "mixed_priority_policy", "BatchFunction"),
    ("2.17", "num_bins", "CustomAggregator"),
    ("2.17", "bad_indices_policy", "GatherNd"),
    ("2.18", "bad_indices_policy", "(Resource|Tensor)?Scatter(Nd)?.*"),
    ("2.18", "batch_padding_policy", "BatchFunction"),
    ("2.18", "force_synchronous", "(Experimental)?MapDataset"),
    ("2.18", "use_unbounded_threadpool", "ParallelMapDatasetV2"),
    ("2.20", "use_shardy_partitioner", ".*"),
    (_NONE, "Tshape", "TensorListGetItem"),
]
_PYTHON_OPS = {"PyFunc", "EagerPyFunc", "PyFuncStateless"}
_FOREST_OPS = re.compile("SimpleML(Inference|LoadModel|CreateModel)")


def missing(graph: MetaGraph, servers: Iterable[str] = SERVERS) -> dict[str, list[str]]:
    """What each server has not got of a graph; nothing where it can run it."""
    needed = {need for node in all_nodes(graph) for need in _needs(node)}
    found = {}
    for server in servers:
        lacks = [f"lacks {what}" for what, first in sorted(needed) if _is_before(server, first)]
        if graph.graph_def.versions.min_consumer > SERVERS[server]:
            lacks.append(f"reads no graph that needs {graph.graph_def.versions.min_consumer}")
        found[server] = lacks
    return found


def unservable(graph: MetaGraph) -> list[str]:
    """What no stock server can run."""
    functions = {function.signature.name for function in graph.graph_def.library.function}
    used = {node.op for node in all_nodes(graph)} - functions
    problems = [f"{op} runs in Python only" for op in sorted(used & _PYTHON_OPS)]
    problems += [f"{op} is in no stock server" for op in sorted(used) if _is_foreign(op)]
    # Servers have XLA off: such a function fails at the first request, and strings in it anyway.
    compiled = {f.signature.name for f in graph.graph_def.library.function if _is_compiled(f)}
    compiled |= {node.name for node in all_nodes(graph) if _is_compiled(node)}
    return problems + [f"{name} must be compiled with XLA" for name in sorted(compiled)]


def _needs(node: Node) -> Iterator[tuple[str, str]]:
    """What of a node came after the oldest server, and the first server that has it."""
    if node.op in _FIRST_SERVER:
        yield node.op, _FIRST_SERVER[node.op]
    for first, attribute, ops in _NEW_ATTRIBUTES:
        if attribute in node.attr and re.fullmatch(ops, node.op):
            yield f"{node.op}.{attribute}", first


def _is_before(server: str, first: str) -> bool:
    return first == _NONE or list(SERVERS).index(server) < list(SERVERS).index(first)


def _is_foreign(op: str) -> bool:
    return op_def_registry.get(op) is None and not _FOREST_OPS.match(op)


def _is_compiled(item: Node) -> bool:
    return item.attr["_XlaMustCompile"].b if "_XlaMustCompile" in item.attr else False

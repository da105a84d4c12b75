"""Reading what a SavedModel's graph is made of, without running it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import saved_model_pb2

from tf_transformer.errors import InputError

MetaGraph = Any  # tensorflow.MetaGraphDef
Node = Any  # tensorflow.NodeDef


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


def different_signatures(graph: MetaGraph) -> dict[str, Any]:
    """The same without those that only call another's function, as `serving_default` does."""
    different: dict[str, tuple[str, Any]] = {}
    for name, signature in signatures(graph).items():
        different.setdefault(_function_of(graph, signature) or name, (name, signature))
    return dict(different.values())


def all_nodes(graph: MetaGraph) -> Iterator[Node]:
    """Every node of the graph and of its functions."""
    yield from graph.graph_def.node
    for function in graph.graph_def.library.function:
        yield from function.node_def


def reachable_nodes(graph: MetaGraph) -> Iterator[Node]:
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


def _function_of(graph: MetaGraph, signature: Any) -> str:
    """The function inside the wrapper that TensorFlow writes for a signature, if it has one."""
    outputs = {tensor.name.partition(":")[0] for tensor in signature.outputs.values()}
    wrappers = {
        x for node in graph.graph_def.node if node.name in outputs for x in _called_functions(node)
    }
    inner = [
        x
        for function in graph.graph_def.library.function
        if function.signature.name in wrappers
        for node in function.node_def
        for x in _called_functions(node)
    ]
    return inner[0] if len(outputs) == len(inner) == 1 else ""


def _called_functions(node: Node) -> Iterator[str]:
    for value in node.attr.values():
        if value.HasField("func"):
            yield value.func.name
        yield from (function.name for function in value.list.func)

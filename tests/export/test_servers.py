"""export/servers.py: what each TensorFlow Serving has of a graph."""

from typing import Any

import pytest
from tensorflow.core.protobuf import meta_graph_pb2

from export.graph_scan import check_operations, check_servers
from export.servers import SERVERS, missing, unservable


def graph_of(*ops: str, min_consumer: int = 12, **attributes: str) -> Any:
    """A graph of these operations, the first with these attributes."""
    graph = meta_graph_pb2.MetaGraphDef()
    graph.graph_def.versions.min_consumer = min_consumer
    for place, op in enumerate(ops):
        graph.graph_def.node.add(name=f"n{place}", op=op)
    for key, value in attributes.items():
        graph.graph_def.node[0].attr[key].s = value.encode()
    return graph


def lacking(graph: Any) -> list[str]:
    return [server for server, lacks in missing(graph).items() if lacks]


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (graph_of("MatMul", "SentencepieceOp", "SentencepieceTokenizeOp", "While"), []),
        (graph_of("TFText>RoundRobinTrim"), ["2.16", "2.17", "2.18", "2.19"]),
        (graph_of("WeightedFlatMapDataset"), ["2.16"]),
        (graph_of("DecodeJxl"), list(SERVERS)),
        (graph_of("GatherNd"), []),
        (graph_of("GatherNd", bad_indices_policy="IGNORE"), ["2.16"]),
        (graph_of("TensorScatterUpdate", bad_indices_policy="IGNORE"), ["2.16", "2.17"]),
        (graph_of("TensorListGetItem", Tshape="?"), list(SERVERS)),
        (graph_of("MatMul", min_consumer=2000), ["2.16", "2.17", "2.18"]),
    ],
    ids=str,
)
def test_which_servers_lack_something(graph: Any, expected: list[str]) -> None:
    assert lacking(graph) == expected


def test_what_no_server_has() -> None:
    graph = graph_of("MatMul", "Addons>Fancy", "PyFunc", "SimpleMLInferenceOpWithHandle", "twice")
    graph.graph_def.library.function.add().signature.name = "twice"  # called by its name
    assert unservable(graph) == ["PyFunc runs in Python only", "Addons>Fancy is in no stock server"]
    assert not check_operations(graph).ok
    assert not unservable(graph_of("MatMul", "SentencepieceOp"))


def test_a_version_can_be_chosen() -> None:
    graph = graph_of("TFText>Utf8Binarize")
    assert not check_servers(graph).ok
    assert check_servers(graph, ["2.20"]).ok
    assert "TensorFlow Serving 2.19 lacks TFText>Utf8Binarize" in check_servers(graph).detail

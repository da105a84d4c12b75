"""What a stock TensorFlow Serving needs beside the versions of a model: `serving/` among them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf
from google.protobuf import descriptor_pb2
from tensorflow_serving.apis import model_service_pb2, prediction_service_pb2

from tf_transformer.errors import InputError

from .meta_graph import MetaGraph, signatures
from .servers import SERVERS

KIT_FOLDER = "serving"
BATCH_SIZES = (1, 2, 4, 8, 16, 32)  # that a server makes of its clients' requests
IMAGE = "2.19.1"  # of tensorflow/serving on Docker Hub
_TEMPLATES = Path(__file__).parent / "serving_kit"
_PROTOCOL = "prediction_service.protoset"
_ROOM = 1 << 30  # bytes for the server itself and the batches in work


def model_name(directory: Path, name: str | None = None) -> str:
    """What the model is called by clients: the folder's name, unless it is given.

    Raises:
        InputError: a URL cannot hold it.
    """
    chosen = name or directory.absolute().name
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", chosen):
        raise InputError(
            "The name of a served model has letters, digits, '-', '_' and '.' only; name the "
            f"folder so or give `name`. Received: {chosen!r}"
        )
    return chosen


def write_kit(directory: Path, name: str, graph: MetaGraph, size: int) -> list[Path]:
    """Writes what is not there yet: a file of the kit that exists is its owner's, and stays.

    Args:
        directory: of the versions.
        name: from `model_name`.
        graph: of a version, for the table of its signatures.
        size: bytes of its weights.

    Returns:
        The files written.
    """
    folder = directory / KIT_FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    values = _values(name, graph, size)
    contents = {path.name: _filled(path, values) for path in sorted(_TEMPLATES.iterdir())}
    contents[_PROTOCOL] = protocol()
    written = []
    for file, content in contents.items():
        if not (folder / file).exists():
            (folder / file).write_bytes(content)
            written.append(folder / file)
    return written


def protocol() -> bytes:
    """PredictionService and ModelService as a FileDescriptorSet, what `protoc -o` would write."""
    files: dict[str, Any] = {}

    def add(descriptor: Any) -> None:
        for needed in descriptor.dependencies:
            add(needed)
        if descriptor.name not in files:  # what is needed comes first
            files[descriptor.name] = descriptor_pb2.FileDescriptorProto()
            descriptor.CopyToProto(files[descriptor.name])

    for module in (prediction_service_pb2, model_service_pb2):
        add(module.DESCRIPTOR)
    return descriptor_pb2.FileDescriptorSet(file=files.values()).SerializeToString()


def _values(name: str, graph: MetaGraph, size: int) -> dict[str, str]:
    # Weights, as much again while a new version is loaded beside the old one, and room.
    mebibytes = -(-(3 * size + _ROOM) // (256 << 20)) * 256
    return {
        "model": name,
        "host": re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-"),
        "image": IMAGE,
        "servers": f"{min(SERVERS)} to {max(SERVERS)}",
        "largest": str(BATCH_SIZES[-1]),
        "allowed": "\n".join(f"allowed_batch_sizes: {size}" for size in BATCH_SIZES),
        "memory": f"{mebibytes}Mi",
        "signatures": "\n".join(_table(graph)),
    }


def _filled(path: Path, values: dict[str, str]) -> bytes:
    text = path.read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda found: values[found[1]], text).encode()


def _table(graph: MetaGraph) -> Iterator[str]:
    yield "| signature | inputs | outputs |"
    yield "|---|---|---|"
    for name, signature in signatures(graph).items():
        sides = (signature.inputs, signature.outputs)
        yield " | ".join(["| `" + name + "`", *map(_tensors, sides)]) + " |"


def _tensors(tensors: Any) -> str:
    return "<br>".join(
        f"`{key}` {tf.dtypes.as_dtype(tensor.dtype).name} ({_sizes(tensor)})"
        for key, tensor in sorted(tensors.items())
    )


def _sizes(tensor: Any) -> str:
    sizes = [str(dim.size) for dim in tensor.tensor_shape.dim]
    return ", ".join(["B", *("any" if size == "-1" else size for size in sizes[1:])])

"""A development server in a test, and requests to it."""

import shutil
import socket
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

MODEL = "tiny"


def free_port() -> int:
    """Nobody has it now; a server that is started again needs one that is known before."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def predict_request(texts: Iterable[Any], **spec: Any) -> predict_pb2.PredictRequest:
    """To `serving_default` of the model, or as `spec` says."""
    version = spec.pop("version", None)
    request = predict_pb2.PredictRequest()
    for key, value in {"name": MODEL, **spec}.items():
        setattr(request.model_spec, key, value)
    if version is not None:
        request.model_spec.version.value = version
    values = np.array([x.encode() if isinstance(x, str) else x for x in texts], object)
    request.inputs["text"].CopyFrom(tf.make_tensor_proto(values, dtype=tf.string))
    return request


def stub(port: int) -> Any:
    return prediction_service_pb2_grpc.PredictionServiceStub(
        grpc.insecure_channel(f"127.0.0.1:{port}")
    )


def refusal(call: Callable[[], Any]) -> tuple[grpc.StatusCode, str]:
    """What a call over gRPC is refused with."""
    try:
        call()
    except grpc.RpcError as error:
        return error.code(), error.details()
    raise AssertionError("it was answered")


def in_threads(work: Callable[[Any], Any], items: list, threads: int = 16) -> list:
    """All at the same time, as far as may be."""
    barrier = threading.Barrier(threads)

    def one(place: int) -> list:
        barrier.wait(30)
        return [(n, work(items[n])) for n in range(place, len(items), threads)]

    with ThreadPoolExecutor(threads) as pool:
        found = [pair for part in pool.map(one, range(threads)) for pair in part]
    return [answer for _, answer in sorted(found, key=lambda pair: pair[0])]


def put_version(exported: Path, models: Path, number: int) -> Path:
    """A copy as a version, put there in one step as `export` does."""
    models.mkdir(exist_ok=True)
    aside = models.parent / f"{models.name}-{number}"
    shutil.copytree(exported, aside)
    return aside.rename(models / str(number))

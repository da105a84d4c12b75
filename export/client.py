"""Asks a model server over gRPC, TensorFlow Serving or ours: any number of texts, in order."""

import itertools
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any

import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

Arrays = dict[str, np.ndarray]
Row = dict[str, Any]
# A server that starts again, or has a full queue, is asked again; gRPC adds the jitter.
_RETRIES = {
    "methodConfig": [
        {
            "name": [{}],
            "retryPolicy": {
                "maxAttempts": 5,  # the most that gRPC takes
                "initialBackoff": "0.2s",
                "maxBackoff": "5s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        }
    ]
}


class ServerError(Exception):
    """A request that got no answer; the message is the server's, or says that there is none."""


class LineClient:
    """What the clients of both protocols share: any number of texts, a few requests at a time."""

    def ask(self, texts: Sequence[str]) -> list[Row]:
        """What `serving_default` says of each text, in one request."""
        raise NotImplementedError

    def close(self) -> None:
        """Frees the connections."""
        raise NotImplementedError

    def translate(self, texts: Iterable[str], **options: int) -> list[str]:
        """The translations of any number of texts; options as `stream`."""
        return [row["text"] for row in self.stream(texts, **options)]

    def stream(
        self, texts: Iterable[str], batch: int = 32, requests_in_flight: int = 4
    ) -> Iterator[Row]:
        """What `serving_default` says of each text, `text` and `score` at least, in order.

        Args:
            texts: any number of them; no more are taken than are asked for.
            batch: texts of one request.
            requests_in_flight: at the same time; more are not held either.

        Raises:
            ServerError: a request got no answer, after all retries.
        """
        texts, waiting = iter(texts), deque[Future[list[Row]]]()
        with ThreadPoolExecutor(requests_in_flight) as pool:
            try:
                while chunk := list(itertools.islice(texts, batch)):
                    waiting.append(pool.submit(self._rows, chunk))
                    if len(waiting) == requests_in_flight:
                        yield from waiting.popleft().result()
                while waiting:
                    yield from waiting.popleft().result()
            finally:
                for one in waiting:
                    one.cancel()

    def _rows(self, texts: Sequence[str]) -> list[Row]:
        rows = self.ask(texts)
        if not all(isinstance(row, dict) and "text" in row for row in rows):
            raise ServerError("The model is no translator: serving_default has no output `text`.")
        if len(rows) != len(texts):
            raise ServerError(f"{len(texts)} texts got {len(rows)} answers.")
        return rows

    def __enter__(self) -> Any:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Client(LineClient):
    """Over gRPC, on TensorFlow Serving's own stubs. Any number of threads may ask.

    Args:
        address: HOST:PORT; TensorFlow Serving's port is 8500.
        model: its name at the server.
        version: a number; default the server's newest.
        timeout: seconds for one answer, with all retries and the wait for a server that starts.
        tls: True for an encrypted connection, or the `grpc.ChannelCredentials` for one.
    """

    def __init__(
        self,
        address: str,
        model: str = "model",
        *,
        version: int | None = None,
        timeout: float = 60.0,
        tls: bool | grpc.ChannelCredentials = False,
    ) -> None:
        options = [
            ("grpc.service_config", json.dumps(_RETRIES)),
            ("grpc.max_receive_message_length", -1),
            ("grpc.max_reconnect_backoff_ms", 2000),
        ]
        if tls:
            credentials = grpc.ssl_channel_credentials() if tls is True else tls
            self._channel = grpc.secure_channel(address, credentials, options)
        else:
            self._channel = grpc.insecure_channel(address, options)
        self._address, self._model, self._version = address, model, version
        self._how: dict[str, Any] = {"timeout": timeout, "wait_for_ready": True}
        self._predict = prediction_service_pb2_grpc.PredictionServiceStub(self._channel)
        self._models = model_service_pb2_grpc.ModelServiceStub(self._channel)

    def predict(self, inputs: Arrays, signature: str = "serving_default") -> Arrays:
        """The outputs of a signature; strings are bytes in arrays of objects.

        Raises:
            ServerError: no answer.
        """
        request = predict_pb2.PredictRequest()
        request.model_spec.signature_name = signature
        for key, value in inputs.items():
            dtype = tf.string if value.dtype == object else None
            request.inputs[key].CopyFrom(tf.make_tensor_proto(value, dtype=dtype))
        response = self._call(self._predict.Predict, request)
        return {key: tf.make_ndarray(value) for key, value in response.outputs.items()}

    def status(self) -> dict[int, str]:
        """The state of each version: AVAILABLE, LOADING, ...; ServerError if there is none."""
        response = self._call(
            self._models.GetModelStatus, get_model_status_pb2.GetModelStatusRequest()
        )
        name = get_model_status_pb2.ModelVersionStatus.State.Name
        return {one.version: name(one.state) for one in response.model_version_status}

    def signatures(self) -> dict[str, Any]:
        """Name -> SignatureDef; ServerError if there is no such model."""
        request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
        response = self._call(self._predict.GetModelMetadata, request)
        found = get_model_metadata_pb2.SignatureDefMap()
        response.metadata["signature_def"].Unpack(found)
        return dict(found.signature_def)

    def close(self) -> None:
        """Frees the connection."""
        self._channel.close()

    def _call(self, method: Callable[..., Any], request: Any) -> Any:
        request.model_spec.name = self._model
        if self._version is not None:
            request.model_spec.version.value = self._version
        try:
            return method(request, **self._how)
        except grpc.RpcError as error:
            told = f"{error.code().name}: {error.details()}"
            if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
                told = f"no answer within {self._how['timeout']:g} s; is a server there?"
            raise ServerError(f"{self._address}: {told}") from error

    def ask(self, texts: Sequence[str]) -> list[Row]:
        """What `serving_default` says of each text, in one request."""
        outputs = self.predict({"text": np.array([text.encode() for text in texts], object)})
        columns = {key: _readable(value) for key, value in outputs.items()}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _readable(values: np.ndarray) -> list[Any]:
    return [
        one.decode("utf-8", "replace") if isinstance(one, bytes) else one for one in values.tolist()
    ]

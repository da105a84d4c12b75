"""Asks a model server over gRPC, TensorFlow Serving or ours: any number of texts, in order."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import tensorflow as tf
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from .line_client import LineClient, Row, ServerError

Arrays = dict[str, np.ndarray]
_NOT_TOLD = (grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.NOT_FOUND)  # of a model's health
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


class Client(LineClient):
    """Over gRPC, on TensorFlow Serving's own stubs. Any number of threads may ask.

    Args:
        address: HOST:PORT; TensorFlow Serving's port is 8500.
        model: its name at the server.
        version: a number; default the server's newest.
        timeout: seconds for one answer, with all retries and the wait for a server that starts.
        tls: True for an encrypted connection, or the `grpc.ChannelCredentials` for one.
        ca: a PEM file with who signed the server's certificate, for an encrypted connection;
            default gRPC's own.

    Raises:
        OSError: `ca` can't be read.
    """

    def __init__(
        self,
        address: str,
        model: str = "model",
        *,
        version: int | None = None,
        timeout: float = 60.0,
        tls: bool | grpc.ChannelCredentials = False,
        ca: str | os.PathLike[str] | None = None,
    ) -> None:
        options = [
            ("grpc.service_config", json.dumps(_RETRIES)),
            ("grpc.max_receive_message_length", -1),
            ("grpc.max_reconnect_backoff_ms", 2000),
        ]
        if tls or ca is not None:
            roots = None if ca is None else Path(ca).read_bytes()
            own = grpc.ssl_channel_credentials(roots)
            credentials = own if isinstance(tls, bool) else tls
            self._channel = grpc.secure_channel(address, credentials, options)
        else:
            self._channel = grpc.insecure_channel(address, options)
        self._address, self._model, self._version = address, model, version
        self._how: dict[str, Any] = {"timeout": timeout, "wait_for_ready": True}
        self._predict = prediction_service_pb2_grpc.PredictionServiceStub(self._channel)
        self._models = model_service_pb2_grpc.ModelServiceStub(self._channel)
        self._health = health_pb2_grpc.HealthStub(self._channel)

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

    def is_healthy(self) -> bool:
        """Whether the model can be asked: by gRPC's health service, else by its `status`.

        A server may have none, or know itself only and not its models, as TensorFlow Serving does.
        """
        asked = health_pb2.HealthCheckRequest(service=self._model)
        try:
            found = self._health.Check(asked, **self._how)
            return found.status == health_pb2.HealthCheckResponse.SERVING
        except grpc.RpcError as error:
            return error.code() in _NOT_TOLD and super().is_healthy()

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

"""PredictionService and ModelService of TensorFlow Serving, on its own stubs."""

import math
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

from .errors import RequestError, invalid
from .metrics import Metrics
from .models import Models

DEFAULT = "serving_default"
MOST_VALUES = 1 << 22  # of one input


class PredictionService(prediction_service_pb2_grpc.PredictionServiceServicer):
    """Predict and GetModelMetadata."""

    def __init__(self, models: Models, metrics: Metrics) -> None:
        self._models, self._metrics = models, metrics

    def Predict(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """The outputs of a signature."""
        with self._metrics.request("grpc"):
            try:
                return self._predict(request)
            except RequestError as error:
                context.abort(error.code, str(error))

    def GetModelMetadata(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """The signatures."""
        try:
            found = self._models.find(*_which(request))
            _check_fields(list(request.metadata_field))
        except RequestError as error:
            context.abort(error.code, str(error))
        response = get_model_metadata_pb2.GetModelMetadataResponse()
        response.model_spec.name = self._models.name
        response.model_spec.version.value = found.number
        signatures = get_model_metadata_pb2.SignatureDefMap(signature_def=found.signatures)
        response.metadata["signature_def"].Pack(signatures)
        return response

    def _predict(self, request: Any) -> Any:
        name = request.model_spec.signature_name or DEFAULT
        which = _which(request)
        known = self._models.find(*which).signature(name).outputs
        for key in request.output_filter:
            if key not in known:
                raise invalid(
                    f"output tensor alias not found in signature: {key} Outputs expected to be in "
                    f"the set {{{','.join(sorted(known))}}}."
                )
        inputs = {key: _array(key, value) for key, value in request.inputs.items()}
        found, outputs = self._models.predict(*which, name, inputs)
        signature = found.signature(name)
        wanted = list(request.output_filter) or list(outputs)
        response = predict_pb2.PredictResponse()
        response.model_spec.name = self._models.name
        response.model_spec.signature_name = name
        response.model_spec.version.value = found.number
        for key in wanted:
            dtype = tf.dtypes.as_dtype(signature.outputs[key].dtype)
            response.outputs[key].CopyFrom(tf.make_tensor_proto(outputs[key], dtype=dtype))
        return response


class ModelService(model_service_pb2_grpc.ModelServiceServicer):
    """GetModelStatus."""

    def __init__(self, models: Models) -> None:
        self._models = models

    def GetModelStatus(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """AVAILABLE and the version."""
        try:
            found = self._models.state(*_which(request))
        except RequestError as error:
            context.abort(error.code, str(error))
        response = get_model_status_pb2.GetModelStatusResponse()
        state = get_model_status_pb2.ModelVersionStatus.AVAILABLE
        response.model_version_status.add(version=found.number, state=state)
        return response


def _array(key: str, tensor: Any) -> np.ndarray:
    sizes = [dim.size for dim in tensor.tensor_shape.dim]
    # A few bytes may claim any shape: one value then stands for all, and would be written out.
    if math.prod(sizes) > MOST_VALUES:
        raise invalid(f"{key} must have at most {MOST_VALUES} values. Received: shape {sizes}")
    try:
        return tf.make_ndarray(tensor)
    except (ValueError, TypeError, KeyError) as error:
        raise invalid(f"Tensor {key} of the request can't be read: {error}") from error


def _check_fields(names: list[str]) -> None:
    if not names:
        raise invalid("GetModelMetadataRequest must specify at least one metadata_field")
    for name in names:
        if name != "signature_def":
            raise invalid(f"Metadata field {name} is not supported")


def _which(request: Any) -> tuple[str, int | None]:
    if not request.HasField("model_spec"):
        raise invalid("Missing ModelSpec")
    spec = request.model_spec
    if spec.version_label:
        raise invalid(f"Unrecognized servable version label: {spec.version_label}")
    return spec.name, spec.version.value if spec.HasField("version") else None


def add_services(server: grpc.Server, models: Models, metrics: Metrics) -> None:
    """Puts both services on a server."""
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(
        PredictionService(models, metrics), server
    )
    model_service_pb2_grpc.add_ModelServiceServicer_to_server(ModelService(models), server)

"""The REST API of TensorFlow Serving (v1) as a WSGI application, and a page to try it."""

import base64
import binascii
import html
import json
import logging
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf import json_format
from tensorflow_serving.apis import get_model_metadata_pb2
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Request, Response

from .errors import RequestError, invalid
from .grpc_api import DEFAULT
from .metrics import PATH, Metrics
from .models import Models, Version

_URL = re.compile(r"/v1/models/(?P<name>[^/:]+)(?:/versions/(?P<version>[0-9]+))?(?P<verb>[:/].*)?")
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'"
)
_log = logging.getLogger(__name__)
_PAGE = Path(__file__).parent / "page.html"


class RestApi:
    """Answers `/v1/models/...`, `/monitoring/prometheus/metrics` and `/`.

    Args:
        models: what is served.
        metrics: what is counted.
        max_bytes: of a request's body; more is refused with 413.
    """

    def __init__(self, models: Models, metrics: Metrics, max_bytes: int) -> None:
        self._models, self._metrics, self._max_bytes = models, metrics, max_bytes

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        request = Request(environ)
        request.max_content_length = self._max_bytes
        try:
            response = self._answer(request)
        except RequestError as error:
            response = _json({"error": str(error)}, error.http_status)
        except HTTPException as error:  # too large, above all
            response = _json({"error": error.description}, error.code or 500)
        except Exception as error:
            _log.exception("A request failed.")
            response = _json({"error": str(error)}, 500)
        return response(environ, start)

    def _answer(self, request: Request) -> Response:
        if request.path == "/" and request.method == "GET":
            page = _PAGE.read_text(encoding="utf-8")
            page = page.replace("MODEL_NAME", html.escape(self._models.name))
            return Response(
                page, mimetype="text/html", headers={"Content-Security-Policy": _POLICY}
            )
        if request.path == PATH and request.method == "GET":
            return Response(self._metrics.text(), mimetype="text/plain; version=0.0.4")
        match = _URL.fullmatch(request.path)
        asked = (request.method, match["verb"] or "") if match else None
        if match is None or asked not in (("GET", ""), ("GET", "/metadata"), ("POST", ":predict")):
            status = 400 if request.path.startswith("/v1/") else 404
            return _json({"error": f"Malformed request: {request.method} {request.path}"}, status)
        version = int(match["version"]) if match["version"] else None
        if asked == ("POST", ":predict"):
            with self._metrics.request("rest"):
                return self._predict(match["name"], version, request.get_data())
        if asked == ("GET", ""):
            return _json(_status(self._models.state(match["name"], version)))
        return _json(self._metadata(self._models.find(match["name"], version)))

    def _predict(self, name: str, version: int | None, body: bytes) -> Response:
        try:
            asked = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise invalid(f"JSON Parse error: {error}") from error
        if not isinstance(asked, dict) or not {"instances", "inputs"} & set(asked):
            raise invalid("Missing 'inputs' or 'instances' key")
        if {"instances", "inputs"} <= set(asked):
            raise invalid(
                "Not formatted correctly expecting only one of 'inputs' or 'instances' keys to "
                "exist"
            )
        called = asked.get("signature_name", DEFAULT)
        by_row = "instances" in asked
        signature = self._models.find(name, version).signature(str(called))
        inputs = _rows(asked["instances"], signature) if by_row else asked["inputs"]
        if not isinstance(inputs, dict) or set(inputs) == {"b64"}:
            inputs = _only(inputs, signature)
        arrays = {key: _array(key, value, signature) for key, value in inputs.items()}
        _, outputs = self._models.predict(name, version, str(called), arrays)
        rows_of = {value.shape[:1] for value in outputs.values()}
        if by_row and (len(rows_of) != 1 or () in rows_of):
            raise invalid("The outputs are not equally many rows: ask with `inputs`")
        found = {key: _plain(key, value) for key, value in outputs.items()}
        if not by_row:
            return _json({"outputs": next(iter(found.values())) if len(found) == 1 else found})
        rows = [dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True)]
        if len(found) == 1:
            rows = next(iter(found.values()))
        return _json({"predictions": rows})

    def _metadata(self, found: Version) -> dict[str, Any]:
        signatures = get_model_metadata_pb2.SignatureDefMap(signature_def=found.signatures)
        return {
            "model_spec": {"name": self._models.name, "version": str(found.number)},
            "metadata": {"signature_def": json_format.MessageToDict(signatures)},
        }


def _status(found: Version) -> dict[str, Any]:
    ok = {"error_code": "OK", "error_message": ""}
    status = {"version": str(found.number), "state": "AVAILABLE", "status": ok}
    return {"model_version_status": [status]}


def _rows(instances: Any, signature: Any) -> Any:
    """Rows as columns: [{"a": 1}, {"a": 2}] -> {"a": [1, 2]}."""
    if not isinstance(instances, list) or not instances:
        raise invalid("No values in 'instances' array")
    named = [isinstance(one, dict) and set(one) != {"b64"} for one in instances]
    if not any(named):
        return _only(instances, signature)
    keys = set(instances[named.index(True)])
    if not all(named) or any(set(one) != keys for one in instances):
        raise invalid("Every one of 'instances' must have the same names")
    return {key: [one[key] for one in instances] for key in sorted(keys)}


def _only(values: Any, signature: Any) -> dict[str, Any]:
    if len(signature.inputs) != 1:
        raise invalid(
            f"The signature takes {len(signature.inputs)} inputs, and values without names are "
            "for one"
        )
    return {next(iter(signature.inputs)): values}


def _array(key: str, value: Any, signature: Any) -> np.ndarray:
    if key not in signature.inputs:
        return np.zeros(0)  # refused by name, with all the others that are wrong
    dtype = tf.dtypes.as_dtype(signature.inputs[key].dtype)
    try:
        if dtype == tf.string:
            return np.array(_decoded(value), object)
        array = np.array(value)
        is_whole = array.size == 0 or np.issubdtype(array.dtype, np.integer)
        if dtype.is_integer and not is_whole:
            raise ValueError("a whole number is wanted")
        return array.astype(dtype.as_numpy_dtype)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise invalid(f"JSON Value of {key} is not of type {dtype.name}: {error}") from error


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(one) for one in value]
    if isinstance(value, dict) and set(value) == {"b64"}:
        try:
            return base64.b64decode(value["b64"], validate=True)
        except binascii.Error as error:
            raise ValueError("Unable to base64 decode") from error
    if not isinstance(value, str):
        raise ValueError(f"a text is wanted, received {value!r:.60}")
    return value.encode()  # half a surrogate pair is refused, as the server's parser does


def _plain(key: str, value: np.ndarray) -> Any:
    as_base64 = key.endswith("_bytes")

    def plain(one: Any) -> Any:
        if isinstance(one, list):
            return [plain(inner) for inner in one]
        if isinstance(one, bytes) and as_base64:
            return {"b64": base64.b64encode(one).decode()}
        return one.decode("utf-8", "replace") if isinstance(one, bytes) else one

    return plain(value.tolist())


def _json(value: Any, status: int = 200) -> Response:
    text = json.dumps(value, ensure_ascii=False)
    return Response(text, status=status, mimetype="application/json")

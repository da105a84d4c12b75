"""Requests that TensorFlow Serving sends to a new version before anybody else may.

The first request of a signature is the slow one: graphs are optimised when they first run. A server
replays `assets.extra/tf_serving_warmup_requests`, and a record that fails is a version that does
not load; so it is replayed here first.
"""

from collections.abc import Iterable
from pathlib import Path

import tensorflow as tf
from tensorflow_serving.apis import model_pb2, predict_pb2, prediction_log_pb2

from tf_transformer.errors import InputError
from tf_transformer.tokenizers import Tokenizer

from .answers import Refused, Request, ask_all
from .parts import Endpoint
from .result import CheckResult
from .session_model import SessionModel

WARMUP_FILE = "assets.extra/tf_serving_warmup_requests"
MOST_RECORDS = 1000  # a server refuses a version with more
_LONG = 48  # tokens: more than nearly all sentences have


def warmup_texts(tokenizer: Tokenizer, most_tokens: int) -> list[str]:
    """A short text and a long one, of at least 48 tokens or as many as are read."""
    sentence = "Hello, world!"
    tokens = max(1, len(tokenizer.encode([sentence])[0]))
    return [sentence, " ".join([sentence] * max(2, -(-min(_LONG, most_tokens) // tokens)))]


def warmup_requests(
    endpoints: dict[str, Endpoint], texts: Iterable[str], batch_sizes: Iterable[int]
) -> list[Request]:
    """For each signature each of `texts` in each batch size; `serving_default` is the first."""
    named = {"serving_default": next(iter(endpoints.values())), **endpoints}
    return [
        Request(name, endpoint.request([text] * rows))
        for name, endpoint in named.items()
        for text in texts
        for rows in batch_sizes
    ]


def write_warmup(folder: Path, requests: Iterable[Request]) -> None:
    """Writes the warm-up file of a version folder."""
    path = folder / WARMUP_FILE
    path.parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for signature, inputs in requests:
            # Without the name of a model: a server takes the one that it is loading.
            spec = model_pb2.ModelSpec(signature_name=signature)
            request = predict_pb2.PredictRequest(model_spec=spec)
            for key, values in inputs.items():
                request.inputs[key].CopyFrom(tf.make_tensor_proto(values))
            log = prediction_log_pb2.PredictLog(request=request)
            writer.write(prediction_log_pb2.PredictionLog(predict_log=log).SerializeToString())


def read_warmup(folder: Path) -> list[Request]:
    """The requests of a warm-up file.

    Raises:
        InputError: it is no file of records, or a record is no request.
    """
    path = folder / WARMUP_FILE
    requests = []
    try:
        for number, record in enumerate(tf.data.TFRecordDataset(str(path)).as_numpy_iterator(), 1):
            log = prediction_log_pb2.PredictionLog.FromString(record)
            if not log.HasField("predict_log"):
                raise InputError(f"{WARMUP_FILE}: record {number} is no request to predict.")
            request = log.predict_log.request
            inputs = {key: tf.make_ndarray(x) for key, x in sorted(request.inputs.items())}
            requests.append(Request(request.model_spec.signature_name or "serving_default", inputs))
    except InputError:
        raise
    except Exception as error:  # of TensorFlow or protobuf
        why = str(error).rpartition("}} ")[2].partition(" [Op")[0]
        raise InputError(f"{WARMUP_FILE} is no file of warm-up records: {why}") from error
    return requests


def check_warmup(folder: Path, session: SessionModel) -> CheckResult:
    """Every record is answered: one that fails keeps a server from loading the version."""
    if not (folder / WARMUP_FILE).is_file():
        return CheckResult("warm-up", True, f"skipped: there is no {WARMUP_FILE}")
    try:
        requests = read_warmup(folder)
    except InputError as error:
        return CheckResult("warm-up", False, str(error))
    if not 1 <= len(requests) <= MOST_RECORDS:
        detail = f"{len(requests)} records, and a server takes 1 to {MOST_RECORDS}"
        return CheckResult("warm-up", False, detail)
    for number, (request, answer) in enumerate(
        zip(requests, ask_all(session, requests), strict=True), 1
    ):
        if isinstance(answer, Refused):
            detail = f"record {number}, for {request.signature}, fails: {answer}"
            return CheckResult("warm-up", False, detail)
    return CheckResult("warm-up", True, f"{len(requests)} records replayed")

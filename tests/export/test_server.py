"""export/server: TensorFlow Serving's protocols, its refusals, and no answer lost or mixed up."""

import base64
import json
import logging
import shutil
import threading
import time
from concurrent.futures import Future
from pathlib import Path

import grpc
import numpy as np
import pytest
import requests
import tensorflow as tf
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
)

from export.server import RequestError, Server
from export.server.batching import Batcher, Closed
from tests.export.serving import MODEL, in_threads, predict_request, put_version, refusal, stub
from tests.tiny_translator import TEXTS, export_unchecked, make_translator, tokenizers
from tf_transformer.errors import InputError

Code = grpc.StatusCode
ACCENTS = "où est la gare ? ma sœur"


@pytest.fixture(scope="module")
def version(translator, tmp_path_factory) -> Path:
    """An export of a few signatures."""
    names = ["translate", "generate_ids"]
    return export_unchecked(translator, tmp_path_factory.mktemp("served"), signatures=names)


@pytest.fixture(scope="module")
def server(version):
    with Server(version.parent, name=MODEL, max_bytes=100_000, batch_wait=0.01) as running:
        yield running


@pytest.fixture(scope="module")
def expected(translator) -> dict[bytes, str]:
    """In process, each text by itself."""
    answers = (translator.translate(tf.constant([text]))["text"].numpy()[0] for text in TEXTS)
    return dict(zip(TEXTS, (answer.decode() for answer in answers), strict=True))


def url(server: Server, rest: str = ":predict") -> str:
    return f"http://127.0.0.1:{server.rest_port}/v1/models/{MODEL}{rest}"


def post(server: Server, body, rest: str = ":predict"):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return requests.post(url(server, rest), data=data, timeout=60)


def grpc_texts(server: Server, texts) -> list[str]:
    found = stub(server.port).Predict(predict_request(texts), timeout=60)
    return [text.decode() for text in tf.make_ndarray(found.outputs["text"])]


def b64(text: str) -> dict[str, str]:
    return {"b64": base64.b64encode(text.encode()).decode()}


# Right answers.


def test_answers_of_many_threads_over_both_protocols_are_those_in_process(server, expected):
    asked = [text for text in TEXTS for _ in range(2)]

    def ask(numbered):
        number, text = numbered
        if number % 2:
            return grpc_texts(server, [text])[0]
        body = {"instances": [{"text": {"b64": base64.b64encode(text).decode()}}]}
        return post(server, body).json()["predictions"][0]["text"]

    answers = in_threads(ask, list(enumerate(asked)))
    assert answers == [expected[text] for text in asked]


@pytest.mark.case("67")
def test_a_text_may_be_written_in_every_form_of_json(server, translator):
    expected = translator([ACCENTS])[0]
    plain = json.dumps(ACCENTS, ensure_ascii=False)
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in ACCENTS)
    for form in (plain, f'"{escaped}"', json.dumps(b64(ACCENTS))):
        for row in (form, f'{{"text": {form}}}'):
            found = post(server, f'{{"instances": [{row}]}}'.encode()).json()
            assert found["predictions"][0]["text"] == expected, row
        for column in (f"[{form}]", f'{{"text": [{form}]}}'):
            found = post(server, f'{{"inputs": {column}}}'.encode()).json()
            assert found["outputs"]["text"] == [expected], column


@pytest.mark.case("67")
def test_the_graph_decodes_no_base64(version):
    graph = (version / "saved_model.pb").read_bytes()
    assert b"DecodeBase64" not in graph
    assert b"StringSplit" in graph or b"Sentencepiece" in graph  # names of operations are seen


def test_numbers_go_in_and_out_of_rest(server):
    ids = tokenizers()[0].encode(["je suis étudiant ."])[0]
    inputs = {"ids": [[*map(int, ids), 0]], "length": [len(ids)]}
    assert set(input_specs(server, "generate_ids")) == set(inputs)
    found = post(server, {"signature_name": "generate_ids", "inputs": inputs}).json()["outputs"]
    assert all(len(rows) == 1 for rows in found.values())
    wrong = {**inputs, "length": [1.5]}
    answer = post(server, {"signature_name": "generate_ids", "inputs": wrong})
    assert answer.status_code == 400 and "length" in answer.json()["error"]


@pytest.mark.case("65")
def test_ids_of_other_widths_that_meet_are_answered_as_alone(server):
    """Rows of one request are filled up by the client, with any id: `length` says what is meant."""

    def ask(rows, fill=0):
        width = max(map(len, rows))
        ids = [[*row, *[fill or row[0]] * (width - len(row))] for row in rows]
        body = {"ids": ids, "length": list(map(len, rows))}
        answer = post(server, {"signature_name": "generate_ids", "inputs": body})
        return answer.json()["outputs"]["ids"]

    texts = ["je suis étudiant .", "le chat", "où est la gare ? ma sœur habite à Genève ."]
    rows = [list(map(int, ids)) for ids in tokenizers()[0].encode(texts)]
    assert len(set(map(len, rows))) == 3
    alone = [ask([row])[0] for row in rows]
    assert in_threads(lambda row: ask([row])[0], rows * 3, 9) == alone * 3
    assert ask(rows) == ask(rows, fill=7) == alone
    ragged = {"ids": rows, "length": list(map(len, rows))}
    answer = post(server, {"signature_name": "generate_ids", "inputs": ragged})
    assert answer.status_code == 400 and "ids is not of type int32" in answer.json()["error"]


def input_specs(server: Server, signature: str):
    found = requests.get(url(server, "/metadata"), timeout=60).json()
    return found["metadata"]["signature_def"]["signatureDef"][signature]["inputs"]


def test_no_rows_are_answered_with_none(server):
    assert grpc_texts(server, []) == []
    assert post(server, {"inputs": {"text": []}}).json()["outputs"]["text"] == []


def test_an_output_filter(server):
    request = predict_request(["x"])
    request.output_filter.append("score")
    assert set(stub(server.port).Predict(request, timeout=60).outputs) == {"score"}
    request.output_filter.append("nope")
    code, said = refusal(lambda: stub(server.port).Predict(request, timeout=60))
    assert code == Code.INVALID_ARGUMENT
    assert "output tensor alias not found in signature: nope" in said


def test_status_metadata_metrics_and_page(server):
    channel = grpc.insecure_channel(f"127.0.0.1:{server.port}")
    models = model_service_pb2_grpc.ModelServiceStub(channel)
    asked = get_model_status_pb2.GetModelStatusRequest()
    asked.model_spec.name = MODEL
    (state,) = models.GetModelStatus(asked, timeout=60).model_version_status
    assert (state.version, state.state) == (1, get_model_status_pb2.ModelVersionStatus.AVAILABLE)
    (found,) = requests.get(url(server, ""), timeout=60).json()["model_version_status"]
    assert (found["version"], found["state"]) == ("1", "AVAILABLE")

    asked = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
    asked.model_spec.name = MODEL
    found = stub(server.port).GetModelMetadata(asked, timeout=60)
    signatures = get_model_metadata_pb2.SignatureDefMap()
    assert found.metadata["signature_def"].Unpack(signatures)
    assert set(signatures.signature_def["serving_default"].inputs) == {"text"}
    assert set(input_specs(server, "serving_default")) == {"text"}

    home = f"http://127.0.0.1:{server.rest_port}"
    page = requests.get(home, timeout=60)
    assert "connect-src 'self'" in page.headers["Content-Security-Policy"]
    assert f'content="{MODEL}"' in page.text and "innerHTML" not in page.text
    assert "http" not in page.text  # nothing from outside
    post(server, {"instances": ["x"]})
    post(server, b"{")
    said = requests.get(f"{home}/monitoring/prometheus/metrics", timeout=60).text
    for result in ("ok", "error"):
        assert f'tf_transformer_requests_total{{protocol="rest",result="{result}"}} ' in said


# Refusals, in TensorFlow Serving's words.


@pytest.mark.parametrize(
    ("spec", "code", "said"),
    [
        ({"name": "nope"}, Code.NOT_FOUND, "Servable not found for request: Latest(nope)"),
        ({"version": 9}, Code.NOT_FOUND, f"Servable not found for request: Specific({MODEL}, 9)"),
        ({"name": ""}, Code.INVALID_ARGUMENT, "ModelSpec has no name specified."),
        (
            {"signature_name": "nope"},
            Code.FAILED_PRECONDITION,
            'Serving signature key "nope" not found.',
        ),
        (
            {"version_label": "x"},
            Code.INVALID_ARGUMENT,
            "Unrecognized servable version label: x",
        ),
    ],
)
def test_a_model_that_is_not_there_is_refused(server, spec, code, said):
    request = predict_request(["x"], **spec)
    assert refusal(lambda: stub(server.port).Predict(request, timeout=60)) == (code, said)


def test_wrong_inputs_are_refused_over_grpc(server):
    ask = stub(server.port).Predict
    wrong_name = predict_request(["x"])
    wrong_name.inputs["other"].CopyFrom(wrong_name.inputs["text"])
    wrong_type, scalar, bomb = (predict_request(["x"]) for _ in range(3))
    wrong_type.inputs["text"].CopyFrom(tf.make_tensor_proto([1]))
    scalar.inputs["text"].CopyFrom(tf.make_tensor_proto("x"))
    bomb.inputs["text"].tensor_shape.dim[0].size = 1 << 40
    for request, said in (
        (wrong_name, "input size does not match signature: 2!=1 len({other,text}) != len({text})"),
        (wrong_type, "to be string but int32 is provided"),
        (scalar, "text must have shape"),
        (bomb, "text must have at most"),
    ):
        code, message = refusal(lambda request=request: ask(request, timeout=60))
        assert code == Code.INVALID_ARGUMENT and said in message


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"{", 400, "JSON Parse error"),
        (b"\xff\xfe\xfa", 400, "JSON Parse error"),
        (b"[" * 90_000, 400, "JSON"),
        (b"[]", 400, "Missing 'inputs' or 'instances' key"),
        ({"inputs": ["x"], "instances": ["x"]}, 400, "only one of 'inputs' or 'instances'"),
        ({"instances": []}, 400, "No values in 'instances' array"),
        ({"instances": [{"text": "x"}, {"other": "x"}]}, 400, "same names"),
        ({"instances": [1]}, 400, "text"),
        ({"instances": [["x"], ["x", "y"]]}, 400, ""),
        ({"instances": [{"b64": "w-_="}]}, 400, "Unable to base64 decode"),
        ({"instances": [{"b64": 7}]}, 400, "text"),
        (b'{"instances": ["\\ud800"]}', 400, "text"),
        ({"instances": ["x"], "signature_name": "no"}, 400, 'signature key "no" not found.'),
        ({"instances": ["x"], "signature_name": {}}, 400, "not found."),
        ({"inputs": {"text": ["x"], "other": [1]}}, 400, "input size does not match signature"),
        (b" " * 100_001, 413, ""),
    ],
)
def test_wrong_bodies_are_refused_over_rest(server, body, status, said):
    answer = post(server, body)
    assert answer.status_code == status and said in answer.json()["error"]


def test_wrong_paths_are_refused_over_rest(server):
    assert post(server, {"instances": ["x"]}, ":nope").status_code == 400
    assert post(server, {"instances": ["x"]}, "/versions/9:predict").status_code == 404
    found = requests.get(url(server, "x"), timeout=60)
    assert found.status_code == 404
    assert found.json() == {"error": f"Could not find any versions of model {MODEL}x"}
    assert requests.get(f"http://127.0.0.1:{server.rest_port}/etc", timeout=60).status_code == 404


def test_too_large_a_request_is_refused_over_grpc(server):
    request = predict_request(["x" * 200_000])
    code, _ = refusal(lambda: stub(server.port).Predict(request, timeout=60))
    assert code == Code.RESOURCE_EXHAUSTED


def test_hostile_bytes_cost_the_neighbours_nothing(server, expected):
    random = np.random.default_rng(3)

    def ask(number):
        if number % 3:
            text = TEXTS[number % len(TEXTS)]
            return grpc_texts(server, [text]) == [expected[text]]
        body = random.bytes(300)
        status = post(server, body if number % 2 else b'{"instances": ["' + body + b'"]}')
        return status.status_code in (200, 400)

    assert all(in_threads(ask, list(range(96))))


# Versions that come and go, and the end.


def test_a_new_version_is_served_and_none_is_lost(version, translator, tmp_path, caplog):
    models = tmp_path / "models"
    models.mkdir()
    put_version(version, models, 1)
    (models / "3").mkdir()
    (models / "3" / "saved_model.pb").write_bytes(b"half a file")
    newer = make_translator(seed=7).with_options(max_source_length=64)
    second = export_unchecked(newer, tmp_path / "other")
    texts = [translator([ACCENTS])[0], newer([ACCENTS])[0]]
    assert texts[0] != texts[1]
    with Server(models, name=MODEL, poll_seconds=0.05) as server:
        answers, ended = [], threading.Event()

        def ask():
            while not ended.is_set():
                answers.append(grpc_texts(server, [ACCENTS])[0])

        asking = threading.Thread(target=ask)
        asking.start()
        second.rename(models / "2")
        until = time.monotonic() + 60
        while texts[1] not in answers and asking.is_alive() and time.monotonic() < until:
            time.sleep(0.02)
        ended.set()
        asking.join()
        found = stub(server.port).Predict(predict_request(["x"], version=2), timeout=60)
        assert found.model_spec.version.value == 2
        # The one that did not load is tried again when its files are others.
        shutil.copytree(version, models / "3", dirs_exist_ok=True)
        until = time.monotonic() + 60
        while grpc_texts(server, [ACCENTS]) != texts[:1] and time.monotonic() < until:
            time.sleep(0.02)
        assert grpc_texts(server, [ACCENTS]) == texts[:1]
    assert set(answers) == set(texts)
    assert answers == sorted(answers, key=texts.index)
    loud = [r for r in caplog.records if r.levelno >= logging.WARNING and r.name.startswith("exp")]
    assert all("Version 3 does not load" in record.getMessage() for record in loud)


def test_the_end_answers_what_is_on_its_way(version, expected):
    server = Server(version.parent, name=MODEL, batch_wait=1.0)
    server.start()
    asked = TEXTS[:6]

    def ask(numbered):
        number, text = numbered
        if number % 2:
            return grpc_texts(server, [text])[0]
        body = {"instances": [{"b64": base64.b64encode(text).decode()}]}
        return post(server, body).json()["predictions"][0]["text"]

    answers: Future = Future()
    asking = threading.Thread(
        target=lambda: answers.set_result(in_threads(ask, list(enumerate(asked)), len(asked)))
    )
    asking.start()
    time.sleep(0.6)  # they wait for others to join their batch
    server.stop()
    assert answers.result(60) == [expected[text] for text in asked]
    with pytest.raises(requests.ConnectionError):
        post(server, {"instances": ["x"]})


def test_what_cannot_be_served_is_said(version, server, tmp_path):
    with pytest.raises(InputError, match="has no version"):
        Server(tmp_path, name=MODEL)
    with pytest.raises(InputError, match="name must be"):
        Server(version.parent, name="a/b")
    with pytest.raises(InputError, match="REST can't listen"):
        Server(version.parent, rest_port=server.rest_port)
    with pytest.raises(InputError, match="gRPC can't listen"):
        Server(version.parent, port=server.port)
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "saved_model.pb").write_bytes(b"half a file")
    with pytest.raises(InputError, match="No version .* loads"):
        Server(tmp_path, name=MODEL)


# Batches, without a model.


def double(name, inputs):
    if any((x < 0).any() for x in inputs.values()):
        raise ValueError("negative")
    return {key: 2 * x for key, x in inputs.items()}


def test_what_waits_together_runs_together():
    sizes = []

    def run(name, inputs):
        sizes.append(len(inputs["x"]))
        return double(name, inputs)

    batcher = Batcher(run, max_rows=8, wait=0.5)
    found = in_threads(
        lambda n: batcher("s", {"x": np.full(2, n)})["x"].tolist(), list(range(4)), 4
    )
    assert found == [[2 * n, 2 * n] for n in range(4)]
    assert sizes == [8]  # as soon as it is full
    batcher.close()
    with pytest.raises(Closed):
        batcher("s", {"x": np.zeros(1)})


def test_what_cannot_be_joined_runs_alone_and_a_bad_one_fails_alone():
    batcher = Batcher(double, wait=0.2)
    items = [
        np.zeros(1),
        np.zeros((1, 2)),
        np.zeros((1, 3)),
        np.array(1),
        np.array([-1]),
        np.ones(3),
    ]

    def ask(x):
        try:
            return batcher("s", {"x": x})["x"]
        except ValueError as error:
            return error

    found = in_threads(ask, items, len(items))
    assert isinstance(found.pop(4), ValueError)
    for answer, x in zip(found, [*items[:4], items[5]], strict=True):
        np.testing.assert_array_equal(answer, 2 * x)
    batcher.close()


def test_an_output_without_a_batch_is_given_to_each_alone():
    batcher = Batcher(lambda name, inputs: {"sum": inputs["x"].sum()}, wait=0.2)
    found = in_threads(lambda n: int(batcher("s", {"x": np.array([n])})["sum"]), [1, 2, 3], 3)
    assert found == [1, 2, 3]
    batcher.close()


def test_a_full_queue_refuses():
    begun, go = threading.Event(), threading.Event()

    def run(name, inputs):
        begun.set()
        go.wait(30)
        return inputs

    batcher = Batcher(run, max_rows=1, wait=0, max_waiting=1)
    threads = [threading.Thread(target=batcher, args=("s", {"x": np.zeros(1)})) for _ in range(2)]
    threads[0].start()
    begun.wait(30)
    threads[1].start()
    until = time.monotonic() + 30
    while not batcher._jobs.qsize() and time.monotonic() < until:
        time.sleep(0.01)
    with pytest.raises(RequestError, match="queue .* is full") as refused:
        batcher("s", {"x": np.zeros(1)})
    assert refused.value.code == Code.UNAVAILABLE and refused.value.http_status == 503
    go.set()
    for thread in threads:
        thread.join()
    batcher.close()

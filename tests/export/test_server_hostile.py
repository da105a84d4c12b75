"""Random and nasty bytes through a server: each answered or refused, and nobody beside harmed."""

from pathlib import Path

import numpy as np
import pytest
import requests
import tensorflow as tf

from export import SessionModel
from export.server import Server
from tests.export.asking import as_strings
from tests.export.hostile import as_json, json_text, strings
from tests.export.serving import MODEL, in_threads, predict_request, stub
from tests.tiny_translator import FRENCH

COUNT, BATCH = 300, 12


@pytest.fixture(scope="module")
def server(unchecked: Path):
    with Server(unchecked.parent, name=MODEL, batch_wait=0.01) as running:
        yield running


@pytest.fixture(scope="module")
def alone(unchecked: Path) -> dict[bytes, tuple[bytes, float]]:
    """Each text by itself, without a server."""
    texts = dict.fromkeys([*strings(COUNT), *(text.encode() for text in FRENCH), b"a" * 100_000])
    found = {}
    with SessionModel(unchecked) as model:
        for text in texts:
            outputs = model("serving_default", {"text": as_strings([text])})
            found[text] = (outputs["text"][0], float(outputs["score"][0]))
    return found


def batches(count: int, length: int) -> list[list[bytes]]:
    """Strangers, one sentence that is known in each batch, and one that has no end."""
    rows = [*strings(count), b"a" * 100_000]
    found = [rows[start : start + length] for start in range(0, len(rows), length)]
    for number, batch in enumerate(found):
        batch.insert(number % len(batch), FRENCH[number % len(FRENCH)].encode())
    return found


def assert_as_alone(found: list[tuple[bytes, float]], expected: list[tuple[bytes, float]]) -> None:
    assert [text for text, _ in found] == [text for text, _ in expected]
    np.testing.assert_allclose([x for _, x in found], [x for _, x in expected], atol=1e-4)


@pytest.mark.case("27")
def test_any_bytes_are_answered_over_grpc_as_alone(server, alone):
    def ask(batch):
        outputs = stub(server.port).Predict(predict_request(batch), timeout=120).outputs
        texts, scores = (tf.make_ndarray(outputs[key]).tolist() for key in ("text", "score"))
        return list(zip(texts, scores, strict=True))

    asked = batches(COUNT, BATCH)
    for batch, found in zip(asked, in_threads(ask, asked, 4), strict=True):
        assert_as_alone(found, [alone[text] for text in batch])


@pytest.mark.case("27")
def test_any_bytes_are_answered_over_rest_as_alone(server, alone):
    """What is text is sent as text, all else in base64."""

    def ask(batch):
        rows = [{"text": as_json(text)} for text in batch]
        answer = requests.post(predict_url(server), json={"instances": rows}, timeout=120)
        assert answer.status_code == 200
        return [(row["text"].encode(), row["score"]) for row in answer.json()["predictions"]]

    asked = batches(COUNT, BATCH)
    for batch, found in zip(asked, in_threads(ask, asked, 4), strict=True):
        assert_as_alone(found, [alone[text] for text in batch])


def test_a_body_that_is_no_json_is_refused_and_one_beside_it_answered(server, alone):
    """The bytes themselves between quotation marks: the body is text or it is not."""

    def ask(text):
        body = b'{"instances": ["' + text + b'"]}'
        answer = requests.post(predict_url(server), data=body, timeout=120)
        found = answer.json()
        if answer.status_code == 200:
            return found["predictions"][0]["text"].encode(), found["predictions"][0]["score"]
        assert answer.status_code == 400 and found["error"]
        return None

    asked = [
        text for pair in zip(strings(COUNT // 2), FRENCH * COUNT, strict=False) for text in pair
    ]
    asked = [text if isinstance(text, bytes) else text.encode() for text in asked]
    refused = 0
    for text, found in zip(asked, in_threads(ask, asked, 4), strict=True):
        read = json_text(text)
        refused += read is None
        assert (found is None) == (read is None), text
        if found is not None and read in alone:
            assert_as_alone([found], [alone[read]])
    assert COUNT // 10 < refused < COUNT // 2


def predict_url(server: Server) -> str:
    return f"http://127.0.0.1:{server.rest_port}/v1/models/{MODEL}:predict"

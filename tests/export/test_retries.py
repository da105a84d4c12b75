"""Both clients ask again until one deadline: of a server that is busy, silent or gone."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager
from typing import Any

import grpc
import pytest
from tensorflow_serving.apis import prediction_service_pb2_grpc
from werkzeug.serving import WSGIRequestHandler, make_server

from export import Client, RestClient, ServerError

ANSWER = json.dumps({"predictions": [{"text": "fine", "score": 0.0}]}).encode()


class Busy(prediction_service_pb2_grpc.PredictionServiceServicer):
    """Never has time."""

    def __init__(self):
        self.asked = 0

    def Predict(self, request, context):  # noqa: N802
        self.asked += 1
        context.abort(grpc.StatusCode.UNAVAILABLE, "The queue is full")


class Quiet(WSGIRequestHandler):
    def log_request(self, *_: Any) -> None:
        pass


@contextmanager
def rest(answer: Callable[[int], tuple[str, bytes, int]]) -> Iterator[tuple[str, list[float]]]:
    """A server that answers the nth request with a status, a body and the length that it claims."""
    asked: list[float] = []

    def application(environ, start):
        asked.append(time.monotonic())
        # What is not read werkzeug waits for until the client hangs up.
        environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
        status, body, length = answer(len(asked))
        start(status, [("Content-Type", "application/json"), ("Content-Length", str(length))])
        return [body]

    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def refuse(number: int) -> tuple[str, bytes, int]:
    body = b'{"error": "The queue is full"}'
    return "503 Service Unavailable", body, len(body)


def test_rest_asks_again_after_a_refusal_and_half_an_answer():
    def answer(number):
        if number == 1:
            return refuse(number)
        return "200 OK", ANSWER[: 9 if number == 2 else None], len(ANSWER)

    with rest(answer) as (address, asked), RestClient(address) as client:
        assert client.translate(["x"]) == ["fine"]
        first, second = (after - before for before, after in zip(asked, asked[1:], strict=False))
        assert len(asked) == 3 and first >= 0.16 and second >= 0.32  # 0.2 and 0.4 s, 20 % jitter


def test_rest_asks_no_oftener_than_it_may():
    with rest(refuse) as (address, asked), RestClient(address, retries=2) as client:
        with pytest.raises(ServerError, match="503: The queue is full"):
            client.translate(["x"])
        assert len(asked) == 3


@pytest.mark.parametrize("status", ["400 Bad Request", "404 Not Found", "500 Oops"])
def test_rest_asks_once_where_another_time_helps_nothing(status):
    def answer(number):
        return status, b"<p>no</p>", 9

    with rest(answer) as (address, asked), RestClient(address) as client:
        with pytest.raises(ServerError, match=status.replace(" ", ": ", 1)):
            client.translate(["x"])
        assert len(asked) == 1


def test_rest_has_one_deadline_for_all_retries():
    with rest(refuse) as (address, asked), RestClient(address, timeout=2) as client:
        before = time.monotonic()
        with pytest.raises(ServerError, match="no answer within 2 s: 503: The queue is full"):
            client.translate(["x"])
        # 0.2 + 0.4 + 0.8 s fit; eight retries without a deadline took 20 seconds.
        assert len(asked) in (3, 4) and time.monotonic() - before < 8


def test_rest_waits_for_a_silent_server_no_longer():
    ended = threading.Event()

    def answer(number):
        ended.wait(60)
        return "200 OK", ANSWER, len(ANSWER)

    with rest(answer) as (address, asked), RestClient(address, timeout=1) as client:
        with pytest.raises(ServerError, match="no answer within 1 s: .*[Rr]ead timed out"):
            client.translate(["x"])
        ended.set()
        assert len(asked) == 1


def test_grpc_has_one_deadline_for_all_retries():
    busy, server = Busy(), grpc.server(futures.ThreadPoolExecutor(2))
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(busy, server)
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    with Client(address, timeout=60) as client:
        with pytest.raises(ServerError, match="UNAVAILABLE: The queue is full"):
            client.translate(["x"])
    assert busy.asked == 5
    with Client(address, timeout=0.1) as client:
        with pytest.raises(ServerError):
            client.translate(["x"])
    assert 5 <= busy.asked <= 6  # the first wait is 0.16 s at least
    server.stop(None).wait()

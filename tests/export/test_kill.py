"""A server that is killed under load and started again: every request is answered, and rightly."""

import json
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2

from export import Client, RestClient
from tests.command import process
from tests.export.serving import MODEL, free_port
from tests.tiny_translator import FRENCH

TEXTS = [*FRENCH, "", "une phrase inconnue !", "le chat dort sur la chaise et " * 12]
WORKERS = 3  # of each client
# Starts at once, without TensorFlow: every answer is the one that it is given, and takes 50 ms.
PROGRAM = """
import http.server, sys, threading, time
from concurrent import futures
import grpc

port, rest_port, answer, rest_answer = sys.argv[1:]

def predict(request, context):
    time.sleep(0.05)
    return bytes.fromhex(answer)

class Rest(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(0.05)
        self.send_response(200)
        self.send_header("Content-Length", str(len(rest_answer)))
        self.end_headers()
        self.wfile.write(rest_answer.encode())

    def log_message(self, *_):
        pass

methods = {"Predict": grpc.unary_unary_rpc_method_handler(predict)}
service = "tensorflow.serving.PredictionService"
server = grpc.server(futures.ThreadPoolExecutor(8))
server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, methods)])
server.add_insecure_port(f"127.0.0.1:{port}")
server.start()
http.server.ThreadingHTTPServer(("127.0.0.1", int(rest_port)), Rest).serve_forever()
"""


class Asking:
    """Asks one text after the other from threads of its own, until it is told to end."""

    def __init__(self, client: Client | RestClient, pool: ThreadPoolExecutor) -> None:
        self._client, self._ended = client, threading.Event()
        self.answered: list[tuple[str, str, float]] = []  # text, translation, when
        self._workers = [pool.submit(self._ask, first) for first in range(WORKERS)]

    def _ask(self, first: int) -> int:
        asked = 0
        while not self._ended.is_set():
            text = TEXTS[(first + asked) % len(TEXTS)]
            asked += 1
            row = self._client.ask([text])[0]
            self.answered.append((text, row["text"], time.monotonic()))
        return asked

    def wait(self, count: int, since: float = 0.0) -> None:
        """Until so many are answered after a moment; a worker that fails is the test's failure."""
        until = time.monotonic() + 600
        while sum(when > since for _, _, when in self.answered) < count:
            for worker in self._workers:
                assert not worker.done(), worker.exception()
            assert time.monotonic() < until
            time.sleep(0.02)

    def end(self) -> int:
        """How many were asked."""
        self._ended.set()
        return sum(worker.result(600) for worker in self._workers)


def test_clients_recover_from_every_kill():
    """Six of them, each in the middle of requests, with a server that is there again soon."""
    response = predict_pb2.PredictResponse()
    for key, value in (("text", [b"fine"]), ("score", [0.5])):
        response.outputs[key].CopyFrom(tf.make_tensor_proto(value))
    rows = json.dumps({"predictions": [{"text": "fine", "score": 0.5}]})
    ports = {Client: free_port(), RestClient: free_port()}
    words = [sys.executable, "-c", PROGRAM, *map(str, ports.values())]
    words += [response.SerializeToString().hex(), rows]
    server = subprocess.Popen(words)
    try:
        with ThreadPoolExecutor(2 * WORKERS) as pool:
            asking = [
                Asking(kind(f"127.0.0.1:{port}", timeout=120), pool) for kind, port in ports.items()
            ]
            since = 0.0
            for _ in range(6):
                for one in asking:
                    one.wait(3 * WORKERS, since)
                server.kill()
                server.wait()
                since = time.monotonic()
                server = subprocess.Popen(words)
            for one in asking:
                assert one.end() == len(one.answered)
                assert {text for _, text, _ in one.answered} == {"fine"}
    finally:
        server.kill()
        server.wait()


@pytest.mark.slow
def test_no_answer_is_lost_or_wrong_when_the_server_is_killed(translator, unchecked):
    ports = {Client: free_port(), RestClient: free_port()}
    words = ["serve", unchecked.parent, "--name", MODEL, "--batch-wait-ms", 20]
    words += ["--port", ports[Client], "--rest-port", ports[RestClient]]
    expected = dict(zip(TEXTS, translator(TEXTS), strict=True))
    servers = [process(*words)]
    try:
        with ThreadPoolExecutor(2 * WORKERS) as pool:
            clients = [
                kind(f"127.0.0.1:{port}", MODEL, timeout=600) for kind, port in ports.items()
            ]
            asking = [Asking(client, pool) for client in clients]
            for one in asking:
                one.wait(20)
            servers[0].kill()  # requests of all workers are on their way
            assert servers[0].wait(60) == -signal.SIGKILL
            killed = time.monotonic()
            servers.append(process(*words))
            for one in asking:
                one.wait(WORKERS * 10, since=killed)
            asked = [one.end() for one in asking]
    finally:
        for server in servers:
            server.kill()
            server.communicate()
    for one, count in zip(asking, asked, strict=True):
        assert len(one.answered) == count
        for text, found, _ in one.answered:
            assert found == expected[text]
    for client in clients:
        client.close()

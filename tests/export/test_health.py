"""export/server/health.py, `is_healthy` of the clients: gRPC's health service, or none."""

import threading
import time
from concurrent import futures

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from export import Client, RestClient
from export.server import Models, Server
from export.server.grpc_api import add_services
from export.server.metrics import Metrics
from tests.export.serving import MODEL, free_port, refusal

Answer = health_pb2.HealthCheckResponse


def health(port: int) -> health_pb2_grpc.HealthStub:
    return health_pb2_grpc.HealthStub(grpc.insecure_channel(f"127.0.0.1:{port}"))


def about(name: str) -> health_pb2.HealthCheckRequest:
    return health_pb2.HealthCheckRequest(service=name)


def test_the_server_and_the_model_are_healthy(unchecked):
    with Server(unchecked.parent, name=MODEL) as server:
        for name in ("", MODEL):
            assert health(server.port).Check(about(name), timeout=60).status == Answer.SERVING
        code, _ = refusal(lambda: health(server.port).Check(about("nope"), timeout=60))
        assert code == grpc.StatusCode.NOT_FOUND
        for kind, port in ((Client, server.port), (RestClient, server.rest_port)):
            for name, expected in ((MODEL, True), ("nope", False)):
                with kind(f"127.0.0.1:{port}", name) as client:
                    assert client.is_healthy() is expected


def test_who_watches_sees_the_end_and_does_not_hold_it_up(unchecked):
    server = Server(unchecked.parent, name=MODEL)
    server.start()
    seen, first = [], threading.Event()

    def watch():
        for answer in health(server.port).Watch(about(MODEL), timeout=120):
            seen.append(answer.status)
            first.set()

    watching = threading.Thread(target=watch)
    watching.start()
    assert first.wait(60)
    before = time.monotonic()
    server.stop()
    assert time.monotonic() - before < 20  # requests that do not end are given 30 seconds
    watching.join(60)
    assert seen == [Answer.SERVING, Answer.NOT_SERVING]


def test_a_server_without_the_service_is_asked_for_the_model_s_state(unchecked):
    served, plain = Models(unchecked.parent, MODEL), grpc.server(futures.ThreadPoolExecutor(2))
    add_services(plain, served, Metrics())
    port = plain.add_insecure_port("127.0.0.1:0")
    plain.start()
    code, _ = refusal(lambda: health(port).Check(about(""), timeout=60))
    assert code == grpc.StatusCode.UNIMPLEMENTED
    for name, expected in ((MODEL, True), ("nope", False)):
        with Client(f"127.0.0.1:{port}", name) as client:
            assert client.is_healthy() is expected
    plain.stop(None).wait()
    served.close()


@pytest.mark.parametrize("kind", [Client, RestClient])
def test_nobody_is_not_healthy(kind):
    with kind(f"127.0.0.1:{free_port()}", timeout=0.3) as client:
        assert client.is_healthy() is False

"""Encrypted connections of both clients and of `tf-transformer request`.

The development server has no encryption, so its services stand behind TLS here as they would behind
a proxy.
"""

import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest
from werkzeug.serving import make_server

from export import Client, RestClient, ServerError
from export.server import Models
from export.server.grpc_api import add_services
from export.server.metrics import Metrics
from export.server.rest_api import RestApi
from tests.command import assert_refused, in_process
from tests.export.serving import MODEL
from tests.tiny_translator import FRENCH

CLIENTS = pytest.mark.parametrize("kind", [Client, RestClient])


@pytest.fixture(scope="module")
def certificate(tmp_path_factory) -> tuple[Path, Path]:
    """For localhost, signed by itself, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl: this test needs a certificate")
    folder = tmp_path_factory.mktemp("certificate")
    signed, key = folder / "signed.pem", folder / "key.pem"
    extensions = ["subjectAltName=DNS:localhost,IP:127.0.0.1"]
    extensions += ["keyUsage=critical,digitalSignature,keyCertSign"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-keyout", key, "-out", signed]
    for extension in extensions:
        command += ["-addext", extension]
    subprocess.run(command, check=True, capture_output=True)
    return signed, key


@pytest.fixture(scope="module")
def where(unchecked, certificate) -> Iterator[dict[Any, str]]:
    """Addresses for each client of one model over TLS."""
    models, metrics = Models(unchecked.parent, MODEL), Metrics()
    signed, key = certificate
    over_grpc = grpc.server(futures.ThreadPoolExecutor(8))
    add_services(over_grpc, models, metrics)
    pair = (key.read_bytes(), signed.read_bytes())
    port = over_grpc.add_secure_port("localhost:0", grpc.ssl_server_credentials([pair]))
    over_grpc.start()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(signed, key)
    application = RestApi(models, metrics, 1 << 20)
    over_rest = make_server("localhost", 0, application, threaded=True, ssl_context=context)
    thread = threading.Thread(target=over_rest.serve_forever)
    thread.start()
    yield {Client: f"localhost:{port}", RestClient: f"https://localhost:{over_rest.server_port}"}
    over_rest.shutdown()
    thread.join()
    over_rest.server_close()
    over_grpc.stop(None).wait()
    models.close()


@CLIENTS
def test_translations_come_over_tls(kind, where, certificate, translator):
    with kind(where[kind], MODEL, ca=certificate[0]) as client:
        assert client.translate(FRENCH, batch=3) == translator(FRENCH)
        assert client.is_healthy()


def test_credentials_of_one_s_own(where, certificate, translator):
    own = grpc.ssl_channel_credentials(certificate[0].read_bytes())
    with Client(where[Client], MODEL, tls=own) as client:
        assert client.translate(FRENCH[:1]) == translator(FRENCH[:1])


@CLIENTS
def test_a_server_nobody_vouches_for_is_asked_nothing(kind, where):
    options: dict[str, Any] = {"tls": True} if kind is Client else {}
    with kind(where[kind], MODEL, timeout=1, **options) as client:
        with pytest.raises(ServerError):
            client.translate(["x"])


@pytest.mark.parametrize("rest", [False, True])
def test_request_asks_over_tls(
    rest, where, certificate, translator, monkeypatch, capsysbinary, tmp_path
):
    run = in_process(monkeypatch, capsysbinary)
    address = where[RestClient].removeprefix("https://") if rest else where[Client]
    words = ["request", address, "--model", MODEL, *(["--rest"] if rest else [])]
    text = "\n".join(FRENCH).encode()
    done = run(*words, "--ca", certificate[0], stdin=text)
    assert (done.code, done.lines) == (0, translator(FRENCH))
    nobody = run(*words, "--tls", "--timeout", 1, stdin=b"x\n")
    assert_refused(nobody, "No translation from")
    assert_refused(run(*words, "--ca", tmp_path / "none.pem"), "`ca` must be a PEM file")

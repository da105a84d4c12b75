"""export/client.py, rest_client.py, `tf-transformer request`: all lines, in order, or one error."""

import threading
import time

import numpy as np
import pytest

from export import Client, RestClient, ServerError
from export.line_client import LineClient
from export.server import Server
from tests.command import assert_refused, in_process
from tests.export.serving import MODEL, free_port
from tests.tiny_translator import FRENCH

LONG = "le chat " * 40
TEXTS = [*FRENCH, "", "une phrase inconnue !", LONG, "漢字 😀"]
CLIENTS = pytest.mark.parametrize("kind", [Client, RestClient])


@pytest.fixture(scope="module")
def server(unchecked):
    with Server(unchecked.parent, name=MODEL) as running:
        yield running


@pytest.fixture(scope="module")
def expected(translator) -> list[str]:
    return translator(TEXTS)


@pytest.fixture
def run(monkeypatch, capsysbinary):
    """`run("request", address)`: the command in this process."""
    return in_process(monkeypatch, capsysbinary)


def address(server: Server, kind: type) -> str:
    return f"127.0.0.1:{server.port if kind is Client else server.rest_port}"


@CLIENTS
def test_texts_are_translated_in_order(kind, server, expected):
    with kind(address(server, kind), MODEL, version=1) as client:
        assert client.translate(TEXTS, batch=3, requests_in_flight=2) == expected
        cut = [
            text for text, row in zip(TEXTS, client.stream(TEXTS), strict=True) if row["truncated"]
        ]
        assert cut == [LONG]
        assert client.translate([]) == []
        assert client.status() == {1: "AVAILABLE"}


def test_any_signature_can_be_asked(server, expected):
    with Client(address(server, Client), MODEL) as client:
        assert set(client.signatures()) == {"serving_default", "translate", "source_length"}
        texts = np.array([TEXTS[0].encode()], object)
        assert client.predict({"text": texts}, "translate")["text"] == [expected[0].encode()]
    with RestClient(f"http://{address(server, RestClient)}/", MODEL) as client:
        found = client.predict({"signature_name": "translate", "inputs": TEXTS[:1]})
        assert found["text"] == expected[:1]


@CLIENTS
def test_the_server_s_refusal_is_told(kind, server):
    with kind(address(server, kind), "nope") as client:
        with pytest.raises(ServerError, match="Servable not found for request: Latest"):
            client.translate(["x"])
        with pytest.raises(ServerError, match="Could not find any versions of model nope"):
            client.status()


def test_nobody_there_is_told_in_time():
    nowhere = f"127.0.0.1:{free_port()}"
    with Client(nowhere, timeout=0.5) as client, pytest.raises(ServerError, match="within 0.5 s"):
        client.translate(["x"])
    with RestClient(nowhere, retries=1) as client, pytest.raises(ServerError, match="refused"):
        client.translate(["x"])


def test_no_plain_text_where_encryption_is_asked_for(server):
    with Client(address(server, Client), MODEL, tls=True, timeout=0.5) as client:
        with pytest.raises(ServerError):
            client.translate(["x"])
    with RestClient(f"https://{address(server, RestClient)}", MODEL, retries=0) as client:
        with pytest.raises(ServerError, match="SSL"):
            client.translate(["x"])


class Upper(LineClient):
    """The latest request is answered first."""

    def __init__(self):
        self.now, self.most, self.lock = 0, 0, threading.Lock()

    def ask(self, texts):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.02 / int(texts[0]))
        with self.lock:
            self.now -= 1
        return [{"text": f"<{text}>"} for text in texts]


def test_few_requests_are_on_their_way_and_few_texts_taken():
    taken = []

    def texts():
        for number in range(1, 41):
            taken.append(number)
            yield str(number)

    client = Upper()
    found = client.stream(texts(), batch=2, requests_in_flight=3)
    first = next(found)
    assert len(taken) == 6
    answers = [first, *found]
    assert [row["text"] for row in answers] == [f"<{number}>" for number in range(1, 41)]
    assert 1 < client.most <= 3


@pytest.mark.parametrize("rows", [[{"text": "x"}], [1.0, 2.0], [{"score": 1.0}] * 2])
def test_answers_that_are_no_translations_are_refused(rows):
    client = Upper()
    client.ask = lambda texts: rows
    with pytest.raises(ServerError):
        client.translate(["1", "2"])


# The command.


@pytest.mark.parametrize("rest", [False, True])
def test_request_translates_a_file(rest, server, expected, run, tmp_path, caplog):
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
    options = ["--rest"] if rest else []
    where = address(server, RestClient if rest else Client)
    done = run("request", where, "--model", MODEL, "--input", path, "--batch", 5, *options)
    assert (done.code, done.lines) == (0, expected)
    cut = TEXTS.index(LONG) + 1
    said = [record.getMessage() for record in caplog.records if "is cut" in record.getMessage()]
    assert said == [f"Line {cut} is longer than the model reads: it is cut."]


def test_request_tells_what_is_wrong(server, run):
    where = address(server, Client)
    assert_refused(run("request", where, stdin=b"x\n"), r"Latest\(model\)")
    assert_refused(run("request", "localhost", stdin=b"x\n"), "must be HOST:PORT")
    assert_refused(run("request", where, "--input", "nope.txt"), "nope.txt")

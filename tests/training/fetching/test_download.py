"""training/fetching/download.py: from file:// and from a server that does what servers do."""

import gzip
import hashlib
import http.server
import re
import threading
from pathlib import Path

import pytest

from tf_transformer.errors import InputError
from training.fetching import download as module
from training.fetching.download import download, sha256_of

CONTENT = bytes(range(256)) * 3000  # 768,000 bytes: several chunks
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class Server:
    """Serves CONTENT at /file; `faults` are used up, one a request.

    A number cuts the answer after so many bytes, "500" and "404" are status codes, "whole" ignores
    the range that was asked for.
    """

    def __init__(self):
        self.content = CONTENT
        self.faults: list = []
        self.ranges: list[str | None] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.answer(self)

            def log_message(self, *_):
                pass

        class Quiet(http.server.ThreadingHTTPServer):
            def handle_error(self, *_):  # the client may go away
                pass

        self.http = Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/file"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def answer(self, request) -> None:
        asked = request.headers.get("Range")
        self.ranges.append(asked)
        fault = self.faults.pop(0) if self.faults else None
        if fault in ("404", "500"):
            request.send_error(int(fault))
            return
        first = 0 if asked is None or fault == "whole" else int(re.findall(r"\d+", asked)[0])
        if first >= len(self.content):
            request.send_error(416)
            return
        request.send_response(206 if first else 200)
        request.send_header("Content-Length", str(len(self.content) - first))
        request.end_headers()
        end = first + fault if isinstance(fault, int) else None
        request.wfile.write(self.content[first:end])


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(module, "_WAIT", 0.0)
    serving = Server()
    yield serving
    serving.http.shutdown()
    serving.http.server_close()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "archive"


def left(path: Path) -> list[str]:
    return sorted(file.name for file in path.parent.iterdir())


def test_a_file_arrives_and_its_progress_is_told(server, path):
    told = []
    download(server.url, path, sha256=DIGEST, report=lambda *numbers: told.append(numbers))
    assert path.read_bytes() == CONTENT and left(path) == ["archive"]
    assert told[-1] == (len(CONTENT), len(CONTENT)) and told == sorted(told) and len(told) > 2


def test_a_file_of_the_disk(path, tmp_path):
    (tmp_path / "there").write_bytes(CONTENT)
    (tmp_path / "archive.part").write_bytes(b"from before")  # cannot be gone on with: begun again
    download((tmp_path / "there").as_uri(), path, sha256=DIGEST)
    assert path.read_bytes() == CONTENT and left(path) == ["archive", "there"]


def test_a_line_that_breaks_is_gone_on_with(server, path):
    server.faults = [300_000, 50_000]
    download(server.url, path, sha256=DIGEST)
    assert path.read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=300000-", "bytes=350000-"]


def test_a_process_that_is_stopped_goes_on(server, path):
    def stop(done, total):
        if done > 200_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(server.url, path, sha256=DIGEST, report=stop)
    there = (path.parent / "archive.part").stat().st_size
    assert left(path) == ["archive.part"] and there >= 200_000
    download(server.url, path, sha256=DIGEST)
    assert path.read_bytes() == CONTENT and server.ranges == [None, f"bytes={there}-"]


def test_a_server_that_cannot_go_on_begins_again(server, path):
    server.faults = [300_000, "whole"]
    told = []
    download(server.url, path, sha256=DIGEST, report=lambda *numbers: told.append(numbers))
    assert path.read_bytes() == CONTENT and told[-1] == (len(CONTENT), len(CONTENT))


def test_a_server_in_trouble_is_asked_again(server, path):
    server.faults = ["500", "500"]
    download(server.url, path, sha256=DIGEST)
    assert path.read_bytes() == CONTENT and len(server.ranges) == 3


def test_all_of_it_was_there_but_not_renamed(server, path):
    (path.parent / "archive.part").write_bytes(CONTENT)
    download(server.url, path, sha256=DIGEST)
    assert path.read_bytes() == CONTENT and left(path) == ["archive"]


def test_a_line_that_breaks_for_good(server, path):
    server.faults = [10_000] * 9
    with pytest.raises(InputError, match=r"it broke off after 40,000 of 768,000 bytes\. What has"):
        download(server.url, path, sha256=DIGEST)
    assert left(path) == ["archive.part"] and len(server.ranges) == 4


def test_what_is_not_there_is_said_at_once(server, path, tmp_path):
    server.faults = ["404"] * 9
    with pytest.raises(InputError, match=r"can't be fetched: the server says 404 Not Found\.$"):
        download(server.url, path)
    assert len(server.ranges) == 1
    with pytest.raises(InputError, match=r"nowhere can't be fetched: No such file or directory\.$"):
        download((tmp_path / "nowhere").as_uri(), path)
    with pytest.raises(InputError, match="nonsense can't be fetched: it is no URL"):
        download("nonsense", path)
    assert left(path) == []


def test_a_server_that_is_not_there(server, path):
    server.http.shutdown()
    server.http.server_close()
    with pytest.raises(InputError, match=r"can't be fetched: Connection refused\.$"):
        download(server.url, path)


def test_another_file_than_it_was_leaves_nothing(server, path):
    server.content = CONTENT[:-1] + b"?"
    with pytest.raises(InputError, match=f"is not the file that it was: .* must be {DIGEST}"):
        download(server.url, path, sha256=DIGEST)
    assert left(path) == []
    server.content = CONTENT
    download(server.url, path, sha256=DIGEST)
    assert path.read_bytes() == CONTENT


def test_a_file_that_changes_in_the_middle_is_found_out(server, path):
    server.faults = [300_000]
    unchanged = server.answer

    def answer(request):
        unchanged(request)
        server.content = bytes(len(CONTENT))

    server.answer = answer
    with pytest.raises(InputError, match="is not the file that it was"):
        download(server.url, path, sha256=DIGEST)
    assert left(path) == []


def test_the_text_inside_is_what_counts(server, path):
    """However it was compressed."""
    for level in (1, 9):
        server.content = gzip.compress(CONTENT, level, mtime=level)
        download(server.url, path, text_sha256=DIGEST)
        assert sha256_of(path, inside=True) == DIGEST
    server.content = gzip.compress(CONTENT + b"x")
    with pytest.raises(InputError, match="is not the file that it was"):
        download(server.url, path, text_sha256=DIGEST)
    server.content = b"no gzip"
    with pytest.raises(InputError, match="sha256 is none: it is no sound gzip"):
        download(server.url, path, text_sha256=DIGEST)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_full_disk_is_said(server, path):
    (path.parent / "archive.part").symlink_to("/dev/full")
    with pytest.raises(InputError, match="The disk is full: .* Make room; the same command goes"):
        download(server.url, path, sha256=DIGEST)


def test_a_folder_that_is_not_there(server, tmp_path):
    with pytest.raises(InputError, match=r"missing/x\.part can't be written: No such file"):
        download(server.url, tmp_path / "missing" / "x")

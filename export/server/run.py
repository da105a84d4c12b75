"""Both protocols over one model: started, watched, and stopped without a request lost."""

import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterable
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wsgi import ClosingIterator

from tf_transformer.errors import InputError

from .grpc_api import add_services
from .health import add_health
from .metrics import Metrics
from .models import Models
from .rest_api import RestApi

_log = logging.getLogger(__name__)
_GRACE = 30.0  # seconds that requests on their way have to be answered


class Server:
    """Serves the highest version of a folder; as a context manager it runs inside the block.

    Args:
        folder: of versions.
        name: that clients use; default the folder's.
        host: address to listen on.
        port, rest_port: of gRPC and REST; 0 takes a free one.
        max_batch: rows of a batch that is put together of several requests.
        batch_wait: seconds for which a first request waits for others.
        queue: requests that may wait; one more is refused with UNAVAILABLE, 503.
        max_bytes: of a request; more is refused with RESOURCE_EXHAUSTED, 413.
        poll_seconds: between two looks for a new version.

    Raises:
        InputError: there is no version that loads, or a port is taken.

    Attributes:
        port, rest_port: where it listens.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        name: str | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        rest_port: int = 0,
        max_batch: int = 64,
        batch_wait: float = 0.002,
        queue: int = 128,
        max_bytes: int = 4 << 20,
        poll_seconds: float = 1.0,
    ) -> None:
        batching = {"max_rows": max_batch, "wait": batch_wait, "max_waiting": queue}
        self._poll_seconds, self._stopped = poll_seconds, threading.Event()
        listening = _listen(host, rest_port)  # before the work of loading: it may be taken
        metrics = Metrics()
        # A thread for each that waits and each in the batch at work: the queue is what is full.
        threads = queue + max_batch + 16
        self._grpc = _grpc_server(threads, max_bytes)
        try:
            self.port = _bind(self._grpc, host, port)
            self._models = Models(folder, name or Path(folder).resolve().name, **batching)
        except BaseException:
            listening.close()
            raise
        add_services(self._grpc, self._models, metrics)
        self._health = add_health(self._grpc, self.name)
        self._on_their_way = _OnTheirWay(RestApi(self._models, metrics, max_bytes))
        with listening:
            self.rest_port = listening.getsockname()[1]
            self._rest = make_server(
                host,
                self.rest_port,
                self._on_their_way,
                threaded=True,
                request_handler=_Quiet,
                fd=listening.fileno(),
            )
        self._threads = [
            threading.Thread(target=work, daemon=True)
            for work in (self._rest.serve_forever, self._poll)
        ]

    @property
    def name(self) -> str:
        """What clients call the model."""
        return self._models.name

    def start(self) -> None:
        """Answers from now on; returns at once."""
        self._grpc.start()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Takes no more requests, answers those on their way, and frees the model."""
        self._stopped.set()
        ended = self._grpc.stop(_GRACE)
        self._health.end()
        self._rest.shutdown()
        ended.wait()
        self._on_their_way.wait(_GRACE)
        for thread in self._threads:
            thread.join()
        self._models.close()
        self._rest.server_close()

    def __enter__(self) -> "Server":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _poll(self) -> None:
        while not self._stopped.wait(self._poll_seconds):
            try:
                self._models.refresh()
            except OSError as error:  # files that come and go while they are looked at
                _log.warning("%s could not be read: %s", self._models.folder, error)


def serve(folder: str | os.PathLike[str], *, host: str = "127.0.0.1", **options: Any) -> None:
    """Serves until SIGTERM or Ctrl-C; arguments as `Server`. A second signal ends it at once."""
    asked = threading.Event()
    with Server(folder, host=host, **options) as server:
        before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

        def stop(number: int, frame: Any) -> None:
            for one, handler in before.items():
                signal.signal(one, handler)
            asked.set()

        for number in before:
            signal.signal(number, stop)
        _log.info("gRPC at %s:%d, model %s.", host, server.port, server.name)
        _log.info("REST at http://%s:%d/v1/models/%s", host, server.rest_port, server.name)
        _log.info("A page to try it: http://%s:%d/", host, server.rest_port)
        _log.info("This server is for development; in production run tensorflow/serving.")
        asked.wait()
        _log.info("Stopping: what is on its way is answered first.")


class _OnTheirWay:
    """Counts requests until their answer is written: the threads of REST are not waited for."""

    def __init__(self, application: Callable[..., Iterable[bytes]]) -> None:
        self._application = application
        self._count, self._changed = 0, threading.Condition()

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        self._add(1)
        try:
            return ClosingIterator(self._application(environ, start), lambda: self._add(-1))
        except BaseException:
            self._add(-1)
            raise

    def wait(self, seconds: float) -> bool:
        """Whether all are answered in that time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._count == 0, seconds)

    def _add(self, number: int) -> None:
        with self._changed:
            self._count += number
            self._changed.notify_all()


class _Quiet(WSGIRequestHandler):
    """Without a line for each request."""

    timeout = 60  # seconds; who sends half a request does not keep a thread for ever

    def log_request(self, *_: Any) -> None:
        pass


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=128)
    except (OSError, OverflowError) as error:
        raise InputError(f"REST can't listen on {host}:{port}: {error}") from error


def _grpc_server(threads: int, max_bytes: int) -> grpc.Server:
    return grpc.server(
        futures.ThreadPoolExecutor(threads, "grpc"),
        options=[
            ("grpc.max_receive_message_length", max_bytes),
            ("grpc.max_send_message_length", -1),
            ("grpc.so_reuseport", 0),  # else two servers share a port and nobody is told
        ],
    )


def _bind(server: grpc.Server, host: str, port: int) -> int:
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        bound = server.add_insecure_port(address)
    except RuntimeError as error:
        raise InputError(f"gRPC can't listen on {address}: is the port taken?") from error
    if not bound:
        raise InputError(f"gRPC can't listen on {address}: is the port taken?")
    return bound

"""The verbs of a model at work: `serve` and `request`."""

import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from tf_transformer.cli_options import Input, Output
from tf_transformer.errors import InputError
from tf_transformer.quiet import load_tensorflow
from tf_transformer.rooms import need

_log = logging.getLogger(__name__)


def serve(
    folder: Annotated[Path, typer.Argument(help="Folder of versions, as `export` writes it.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="gRPC; 0 any.")] = 8500,
    rest_port: Annotated[int, typer.Option(min=0, max=65535, help="REST, a page; 0 any.")] = 8501,
    host: Annotated[str, typer.Option(help="0.0.0.0: the whole network may ask.")] = "127.0.0.1",
    name: Annotated[
        str | None, typer.Option(help="What clients call the model; default FOLDER's name.")
    ] = None,
    max_batch: Annotated[int, typer.Option(min=1, help="Rows that run together.")] = 64,
    batch_wait_ms: Annotated[
        float, typer.Option(min=0, help="For which a request waits for others.")
    ] = 2.0,
    queue: Annotated[
        int, typer.Option(min=1, max=4096, help="Requests that may wait; more get UNAVAILABLE.")
    ] = 128,
    max_bytes: Annotated[int, typer.Option(min=1024, help="Of one request.")] = 4 << 20,
    poll_seconds: Annotated[
        float, typer.Option(min=0.01, help="Between two looks for a new version.")
    ] = 1.0,
) -> None:
    """Answer over gRPC and REST as TensorFlow Serving does, for development.

    The highest version is served, and a newer one as soon as it is there. Ctrl-C and SIGTERM end
    it when all requests on their way are answered. There is no encryption and no password: in
    production run tensorflow/serving, for which `export` writes the files.
    """
    load_tensorflow()
    need("export.server").serve(
        folder,
        name=name,
        host=host,
        port=port,
        rest_port=rest_port,
        max_batch=max_batch,
        batch_wait=batch_wait_ms / 1000,
        queue=queue,
        max_bytes=max_bytes,
        poll_seconds=poll_seconds,
    )


def request(
    address: Annotated[
        str, typer.Argument(metavar="HOST:PORT", help="Of gRPC; with --rest of REST, or a URL.")
    ],
    input: Input = None,
    output: Output = None,
    rest: Annotated[bool, typer.Option("--rest", help="Over REST instead of gRPC.")] = False,
    tls: Annotated[bool, typer.Option("--tls", help="Over an encrypted connection.")] = False,
    ca: Annotated[
        Path | None,
        typer.Option(help="PEM file: who signed the server's certificate; --tls."),
    ] = None,
    model: Annotated[str, typer.Option(help="What the server calls the model.")] = "model",
    version: Annotated[
        int | None, typer.Option(min=0, help="A number; default the server's newest.")
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Lines of one request.")] = 32,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds for one answer, with all retries.")
    ] = 60.0,
) -> None:
    """Translate text at a model server, TensorFlow Serving or `serve`: a line in, a line out.

    A few requests are on their way at the same time; the order stays. A server that starts or has a
    full queue is asked again. A line that is longer than the model's limit is cut, with a warning.
    """
    from tf_transformer.lines import clean_line, count_lines, iter_lines, write_lines
    from tf_transformer.progress import LineProgress

    _check_address(address, rest)
    source: Any = sys.stdin.buffer if input is None else input
    lines = iter_lines(source, name="standard input" if input is None else None, errors="replace")
    load_tensorflow()
    how: dict[str, Any] = {"model": model, "version": version, "timeout": timeout, "ca": ca}
    client = _client(address, rest, tls, how)
    progress = LineProgress(
        output is not None or not sys.stdout.isatty(),
        None if input is None else lambda: count_lines(input),
    )

    def told() -> Iterator[str]:
        for number, row in enumerate(client.stream(map(clean_line, lines), batch), 1):
            if row.get("truncated"):
                _log.warning("Line %d is longer than the model reads: it is cut.", number)
            progress.advance(1, 0)
            yield clean_line(row["text"])

    try:
        with client, progress:
            write_lines(sys.stdout.buffer if output is None else output, told())
    except need("export").ServerError as error:
        raise InputError(f"No translation from {error}") from error


def _check_address(address: str, rest: bool) -> None:
    if not re.fullmatch(r"\S+" if rest else r"\S+:[0-9]+", address):
        raise InputError(
            f"The address must be HOST:PORT, as in localhost:8500. Received: {address}"
        )


def _client(address: str, rest: bool, tls: bool, how: dict[str, Any]) -> Any:
    export, ca = need("export"), how["ca"]
    if ca is not None and not ca.is_file():
        raise InputError(f"`ca` must be a PEM file. Received: {ca}")
    tls = tls or ca is not None
    if not rest:
        return export.Client(address, tls=tls, **how)
    return export.RestClient(
        f"https://{address}" if tls and "://" not in address else address, **how
    )

"""The verbs of a model at work: `serve`."""

from pathlib import Path
from typing import Annotated

import typer

from tf_transformer.quiet import load_tensorflow
from tf_transformer.rooms import need


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

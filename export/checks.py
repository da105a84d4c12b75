"""All checks of a SavedModel, from reading it to running it as a server would."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import tensorflow as tf

from tf_transformer.errors import InputError
from tf_transformer.saved import METADATA_FILE, find_saved_model

from .answers import (
    ask_all,
    c_library_answers,
    function_answers,
    object_loader_answers,
    reason,
)
from .comparison import Comparison, Way, check_sendable
from .file_scan import FILE_SCANS
from .graph_scan import SCANS, check_servers
from .meta_graph import MetaGraph, read_meta_graph
from .parts import Endpoint
from .probes import probes
from .result import CheckResult
from .servers import SERVERS
from .session_model import SessionModel
from .signatures import make_functions
from .warmup import check_warmup

Report = Callable[[CheckResult], None]


def run_checks(
    saved_model: str | os.PathLike[str],
    endpoints: dict[str, Endpoint] | None = None,
    report: Report | None = None,
    servers: Iterable[str] | None = None,
) -> list[CheckResult]:
    """Every check, in order; none stops those after it.

    Args:
        saved_model: any SavedModel, or a directory of versions (the highest is taken).
        endpoints: what it was made from, by `make_endpoints`. Without them the loaders are compared
            with each other.
        report: called with each result as soon as it is there; all take seconds to minutes.
        servers: versions of TensorFlow Serving that have to run it, by default all of SERVERS.

    Raises:
        InputError: there is no SavedModel, its file cannot be read, or a server is not known.
    """
    wanted = list(SERVERS if servers is None else servers)
    if unknown := [version for version in wanted if version not in SERVERS]:
        raise InputError(f"`server` must be one of {', '.join(SERVERS)}. Received: {unknown[0]!r}")
    folder = find_saved_model(saved_model)
    if folder is None:
        raise InputError(f"{saved_model} is not a SavedModel: there is no saved_model.pb.")
    results = []
    for result in _results(folder, read_meta_graph(folder), endpoints, wanted):
        results.append(result)
        if report:
            report(result)
    return results


def _results(
    folder: Path, graph: MetaGraph, endpoints: dict[str, Endpoint] | None, servers: list[str]
) -> Iterator[CheckResult]:
    yield check_servers(graph, servers)
    yield from (scan(graph) for scan in SCANS)
    yield from (scan(folder, graph) for scan in FILE_SCANS)
    yield from check_answers(folder, graph, endpoints)


def check_answers(
    folder: Path, graph: MetaGraph, endpoints: dict[str, Endpoint] | None = None
) -> Iterator[CheckResult]:
    """Whether every way of loading it gives the same answers, and a server can send them.

    The first way that loads says what is right: this process, where the endpoints are here. A
    SavedModel of ours has to answer every probe; what somebody else's accepts is found out by
    asking, and a signature that accepts none is skipped, which is said.
    """
    compared = Comparison(probes(graph), (folder / METADATA_FILE).is_file())
    ways: list[tuple[str, Way]] = [("object loader", lambda x: object_loader_answers(folder, x))]
    if endpoints:
        functions = make_functions(endpoints)
        ways.insert(0, ("this process", lambda x: function_answers(functions, x)))
    with ThreadPoolExecutor(1) as aside:
        yield compared.result(*ways[0])
        asked = compared.requests
        # A process of its own: it need not wait for the others.
        answers = aside.submit(c_library_answers, folder, graph, asked)
        for name, way in ways[1:]:
            yield compared.result(name, way)
        yield from _session_results(folder, compared)
        if tf.config.list_physical_devices("GPU"):
            # A GPU rounds in another way, and the C library is run on the CPU.
            with SessionModel(folder, on_cpu=True) as session:
                compared.expected = ask_all(session, compared.requests)
        if compared.requests is not asked:  # the first way did not load, another has chosen
            answers = aside.submit(c_library_answers, folder, graph, compared.requests)
        yield compared.result("C library", lambda _: answers.result())


def _session_results(folder: Path, compared: Comparison) -> Iterator[CheckResult]:
    try:
        with SessionModel(folder) as session:
            yield compared.result("session loader", lambda x: ask_all(session, x))
            yield check_sendable(compared.requests, compared.found)
            yield check_warmup(folder, session)
    except Exception as error:  # what does not load is a finding, whatever it raises
        yield CheckResult("session loader", False, f"it does not load: {reason(error)}")

"""A translator as a SavedModel for TF Serving: text in, text and score out."""

import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import keras

from tf_transformer.errors import InputError
from tf_transformer.saved import find_saved_model, versions
from tf_transformer.translator import Translator

from . import checks
from .kit import BATCH_SIZES, model_name, write_kit
from .meta_graph import read_meta_graph
from .metadata import write_metadata
from .parts import Endpoint
from .places import exists, place, remove_older
from .result import CheckResult, ExportError
from .signatures import make_endpoints
from .warmup import warmup_requests, warmup_texts, write_warmup


def export_saved_model(
    translator: Translator,
    directory: str | os.PathLike[str],
    version: int | None = None,
    *,
    signatures: Iterable[str] | None = None,
    kit: bool = True,
    name: str | None = None,
    keep: int | None = None,
    report: Callable[[CheckResult], None] | None = None,
) -> Path:
    """Writes `directory`/`version`, checked in every way a server could fail on it.

    The model may be in the middle of training: dropout is off in the export and stays as it is in
    the model. Until all checks have passed, nothing in `directory` has a number for a name.

    Args:
        translator: in float32, as `Translator.load` makes it. How it searches is fixed here.
        directory: of all versions of one model; a model server watches it.
        version: its number; by default the next after the highest there.
        signatures: names of SIGNATURES, by default all; `translate` is also `serving_default`.
        kit: whether `directory`/serving is written too, with what TensorFlow Serving needs beside
            a model. A file that is there stays as it is.
        name: of the model in the kit; by default that of `directory`.
        keep: how many versions stay, this one among them; older ones are deleted when it is in
            place. By default all.
        report: called with the result of each check as soon as it is there.

    Returns:
        The version folder. `assets.extra` in it has `metadata.json`, what is inside, and the
        requests with which a server warms it up.

    Raises:
        InputError: the version exists, `directory` cannot hold versions, the translator is not in
            float32, or an argument is wrong.
        ExportError: a check failed; what was there before is as it was.
    """
    directory = Path(directory)
    _refuse_half_precision(translator.model)
    _refuse_directory(directory, version)
    _refuse_keep(keep)
    called = model_name(directory, name) if kit else ""
    endpoints = make_endpoints(translator, signatures)
    folders = (directory, *directory.absolute().parents)
    existing = next(folder for folder in folders if folder.exists())
    try:
        # Beside, under a name that no server takes for a version, and on the same disk.
        with tempfile.TemporaryDirectory(prefix="exporting_", dir=existing) as beside:
            written = Path(beside) / "model"  # not `beside` itself, which only its owner may read
            _write(endpoints, translator, written)
            _refuse_failures(checks.run_checks(written, endpoints, report), directory)
            graph = read_meta_graph(written)
            directory.mkdir(parents=True, exist_ok=True)
            if kit:
                write_kit(directory, called, graph, 4 * translator.model.count_params())
            placed = place(written, directory, version)
        if keep is not None:
            remove_older(placed, keep)
        return placed
    except OSError as error:
        raise InputError(f"{directory} cannot be written: {error.strerror}") from error


def _write(endpoints: dict[str, Endpoint], translator: Translator, folder: Path) -> None:
    # Nothing is tracked: variables are found by themselves, and would be in the file twice; the
    # tokenizers are nodes of the graph.
    archive = keras.export.ExportArchive()
    for name, endpoint in endpoints.items():  # the first is serving_default too
        archive.add_endpoint(name, endpoint.answer, endpoint.inputs)
    archive.write_out(str(folder), verbose=False)
    write_metadata(folder, read_meta_graph(folder), translator)
    texts = warmup_texts(translator.tokenizers.source, translator.options.max_source_length)
    write_warmup(folder, warmup_requests(endpoints, texts, BATCH_SIZES))


def _refuse_failures(results: list[CheckResult], directory: Path) -> None:
    for result in results:
        if not result.ok:
            raise ExportError(
                f"Nothing was exported to {directory}, as the check `{result.name}` failed: "
                f"{result.detail}"
            )


def _refuse_half_precision(model: keras.Model) -> None:
    found = {layer.compute_dtype for layer in model.layers if layer.weights} - {"float32"}
    if found:
        raise InputError(
            f"Only a model that computes in float32 can be exported; `Translator.load` of its run "
            f"directory gives one. Received: {', '.join(sorted(found))}"
        )


def _refuse_keep(keep: int | None) -> None:
    is_number = isinstance(keep, int) and not isinstance(keep, bool)
    if keep is not None and not (is_number and keep >= 1):
        raise InputError(f"`keep` must be a whole number of at least 1. Received: {keep!r}")


def _refuse_directory(directory: Path, version: int | None) -> None:
    is_number = isinstance(version, int) and not isinstance(version, bool)
    if version is not None and not (is_number and version >= 1):
        raise InputError(f"`version` must be a whole number of at least 1. Received: {version!r}")
    if version in versions(directory):
        raise InputError(exists(directory, version))
    if find_saved_model(directory) == directory:
        raise InputError(
            f"{directory} is itself a version; give the directory that holds the versions."
        )

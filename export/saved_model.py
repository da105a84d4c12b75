"""A translator as a SavedModel for TF Serving: text in, text and score out."""

import errno
import os
import tempfile
from pathlib import Path

import keras
import tensorflow as tf

from tf_transformer.errors import InputError
from tf_transformer.saved import find_saved_model, versions
from tf_transformer.translator import Translator

from . import checks
from .graph_scan import read_meta_graph
from .metadata import write_metadata
from .result import ExportError


def export_saved_model(
    translator: Translator, directory: str | os.PathLike[str], version: int | None = None
) -> Path:
    """Writes `directory`/`version`, checked in every way a server could fail on it.

    The model may be in the middle of training: dropout is off in the export and stays as it is in
    the model. Until all checks have passed, nothing in `directory` has a number for a name.

    Args:
        translator: in float32, as `Translator.load` makes it. How it searches is fixed here.
        directory: of all versions of one model; a model server watches it.
        version: its number; by default the next after the highest there.

    Returns:
        The version folder. `serving_default`, also called `translate`, maps `text` (B,) to `text`
        (B,) and `score` (B,); `source_length` maps `text` (B,) to its tokens, `length` (B,).
        `assets.extra/metadata.json` tells what is inside.

    Raises:
        InputError: the version exists, `directory` cannot hold versions, or the translator is not
            in float32.
        ExportError: a check failed; what was there before is as it was.
    """
    directory = Path(directory)
    _refuse_half_precision(translator.model)
    _refuse_directory(directory, version)
    folders = (directory, *directory.absolute().parents)
    existing = next(folder for folder in folders if folder.exists())
    try:
        # Beside, under a name that no server takes for a version, and on the same disk.
        with tempfile.TemporaryDirectory(prefix="exporting_", dir=existing) as beside:
            written = Path(beside) / "model"  # not `beside` itself, which only its owner may read
            _write(translator, written)
            for result in checks.run_checks(written, translator):
                if not result.ok:
                    raise ExportError(
                        f"Nothing was exported to {directory}, as the check `{result.name}` "
                        f"failed: {result.detail}"
                    )
            directory.mkdir(parents=True, exist_ok=True)
            return place(written, directory, version)
    except OSError as error:
        raise InputError(f"{directory} cannot be written: {error.strerror}") from error


def place(written: Path, directory: Path, version: int | None) -> Path:
    """Renames a finished folder to `directory`/`version`, by default the next free number.

    Raises:
        InputError: the version exists.
    """
    while True:
        taken = versions(directory)
        number = max(taken, default=0) + 1 if version is None else version
        if number in taken:
            raise InputError(_exists(directory, number))
        target = directory / str(number)
        try:
            # At once, and refused where another export has just put its own.
            return written.rename(target)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise


def _write(translator: Translator, folder: Path) -> None:
    translator.translate.get_concrete_function()  # an endpoint without a trace is refused
    archive = keras.export.ExportArchive()
    # Not the model: variables are found by themselves, and would be in the file twice.
    archive.track(translator.tokenizers)
    archive.add_endpoint("translate", translator.translate)  # the first is serving_default too
    archive.add_endpoint(
        "source_length",
        lambda text: {"length": _source_length(translator, text)},
        [tf.TensorSpec([None], tf.string, name="text")],
    )
    archive.write_out(str(folder), verbose=False)
    write_metadata(folder, read_meta_graph(folder), translator)


def _source_length(translator: Translator, text: tf.Tensor) -> tf.Tensor:
    """Tokens of each text (B,), END counted: with more than `max_source_length` it is cut."""
    return translator.tokenizers.source.tokenize(text).row_lengths() + 1


def _refuse_half_precision(model: keras.Model) -> None:
    found = {layer.compute_dtype for layer in model.layers if layer.weights} - {"float32"}
    if found:
        raise InputError(
            f"Only a model that computes in float32 can be exported; `Translator.load` of its run "
            f"directory gives one. Received: {', '.join(sorted(found))}"
        )


def _refuse_directory(directory: Path, version: int | None) -> None:
    is_number = isinstance(version, int) and not isinstance(version, bool)
    if version is not None and not (is_number and version >= 1):
        raise InputError(f"`version` must be a whole number of at least 1. Received: {version!r}")
    if version in versions(directory):
        raise InputError(_exists(directory, version))
    if find_saved_model(directory) == directory:
        raise InputError(
            f"{directory} is itself a version; give the directory that holds the versions."
        )


def _exists(directory: Path, version: int | None) -> str:
    return f"Version {version} exists in {directory} and is never overwritten; choose another."

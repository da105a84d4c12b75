"""Exported translators: a SavedModel that answers as a `Translator` does."""

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the tokenizers' ops; loading fails without)

from tf_transformer.bulk import translate_in_batches
from tf_transformer.errors import InputError
from tf_transformer.run_files import TRANSLATOR_FILE
from tf_transformer.translator import Translator

SIGNATURE = "serving_default"
METADATA_FILE = "assets.extra/metadata.json"
_GRAPH_FILE = "saved_model.pb"


def versions(directory: str | os.PathLike[str]) -> dict[int, Path]:
    """What is called by a whole number in `directory`, lowest first, as a model server reads it."""
    try:
        entries = list(Path(directory).iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    numbered = [(int(path.name), path) for path in entries if re.fullmatch("[0-9]+", path.name)]
    return dict(sorted(numbered))


def find_saved_model(path: str | os.PathLike[str]) -> Path | None:
    """`path` if it holds a SavedModel, else its highest version that does, else None."""
    for folder in (Path(path), *reversed(versions(path).values())):
        if (folder / _GRAPH_FILE).is_file():
            return folder
    return None


def is_saved_model(path: str | os.PathLike[str]) -> bool:
    """Whether `path` is a SavedModel or holds one in a version folder."""
    return find_saved_model(path) is not None


class SavedTranslator:
    """An exported translator, used like a `Translator`; how it searches is fixed in its graph.

    Args:
        directory: one version folder.

    Raises:
        InputError: it cannot be loaded, or does not map texts to texts.

    Attributes:
        directory: the version folder.
        metadata: what export wrote about it; empty for a SavedModel of somebody else.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)
        try:
            # Kept: a signature alone does not keep its variables alive.
            self._loaded = tf.saved_model.load(str(self.directory))
        except (OSError, ValueError, tf.errors.OpError) as error:
            reason = str(error).strip().splitlines()[0]
            raise InputError(f"{self.directory} cannot be loaded: {reason}") from error
        self._answer = self._loaded.signatures.get(SIGNATURE)
        problem = _signature_problem(self._answer)
        if problem:
            raise InputError(f"{self.directory} is no translator: {problem}")
        metadata = self.directory / METADATA_FILE
        self.metadata: dict[str, Any] = {}
        if metadata.is_file():
            self.metadata = json.loads(metadata.read_text(encoding="utf-8"))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "SavedTranslator":
        """From a version folder, or the highest version in the directory of versions.

        Raises:
            InputError: there is no SavedModel, or it is no translator.
        """
        found = find_saved_model(path)
        if found is None:
            raise InputError(
                f"{path} is not a SavedModel: no {_GRAPH_FILE} in it or in a version folder of it."
            )
        return cls(found)

    def __call__(self, texts: Iterable[str]) -> list[str]:
        """Translates any number of texts, in batches of like length; the order stays."""
        return translate_in_batches(self.translate, texts)

    def watch_lengths(self, texts: Iterable[str]) -> Iterable[str]:
        """The texts as they come: what the graph cuts is known inside it only."""
        return texts

    def signatures(self) -> list[tuple[str, str, str]]:
        """Name, inputs and outputs of every signature, for people."""
        rows = []
        for name, function in self._loaded.signatures.items():
            inputs = function.structured_input_signature[1]
            sides = [
                ", ".join(f"{key} {spec.dtype.name} {spec.shape}" for key, spec in side.items())
                for side in (inputs, function.structured_outputs)
            ]
            rows.append((name, *sides))
        return rows

    def translate(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Strings (B,) -> `text` (B,) valid UTF-8 and `score` (B,) float32."""
        return self._answer(text=text)


def open_translator(path: str | os.PathLike[str], **changes: Any) -> Translator | SavedTranslator:
    """The translator at `path`, whether a run directory or a SavedModel.

    Args:
        path: a run directory, a version folder or a directory of versions.
        changes: fields of `DecodingOptions` to replace; only a run directory can.

    Raises:
        InputError: `path` is neither, or `changes` are given for a SavedModel.
    """
    path = Path(path)
    if (path / TRANSLATOR_FILE).is_file():
        return Translator.load(path, **changes)
    if not is_saved_model(path):
        missing = (
            f"it has no {TRANSLATOR_FILE}, so it is no run directory with a trained model, and "
            f"no {_GRAPH_FILE} in it or in a version folder, so it is no SavedModel"
        )
        if not path.is_dir():
            missing = "it is a file, not a directory" if path.exists() else "it does not exist"
        raise InputError(f"There is no translator at {path}: {missing}.")
    if changes:
        names = ", ".join(f"{name}={value!r}" for name, value in sorted(changes.items()))
        raise InputError(
            f"The search is fixed inside an exported graph, and {path} is a SavedModel: give the "
            f"run directory, or export it again with other options. Received: {names}"
        )
    return SavedTranslator.load(path)


def _signature_problem(signature: Any) -> str:
    if signature is None:
        return f"it has no signature {SIGNATURE}."
    inputs = signature.structured_input_signature[1]
    outputs: dict[str, tf.TensorSpec] = signature.structured_outputs
    if set(inputs) == {"text"} and {"text", "score"} <= set(outputs):
        if inputs["text"].dtype == outputs["text"].dtype == tf.string:
            return ""
    return (
        f"{SIGNATURE} must map `text` to `text` and `score`. "
        f"Received: {', '.join(sorted(inputs))} -> {', '.join(sorted(outputs))}"
    )

"""Exported translators: a SavedModel that answers as a `Translator` does."""

import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the tokenizers' ops; loading fails without)

from tf_transformer.bulk import Answer, Column, stream
from tf_transformer.errors import InputError
from tf_transformer.run_files import TRANSLATOR_FILE
from tf_transformer.translator import Translator

SIGNATURE = "serving_default"
# What is called otherwise than in Python, and what is not asked with `text` alone.
_SIGNATURES = {"score_pairs": "score"}
_INPUTS = {"score_pairs": ("source", "target"), "align_pairs": ("source", "target")}
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


def read_metadata(version: Path) -> dict[str, Any]:
    """What export wrote about a version folder; empty for a SavedModel of somebody else."""
    path = version / METADATA_FILE
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


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
        self.metadata = read_metadata(self.directory)

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
        return [found["text"] for found in self.stream(texts)]

    def stream(
        self, texts: Iterable[str], answer: Answer | None = None, **options: Any
    ) -> Iterator[dict[str, Any]]:
        """What `answer` gives for each text, by default `translate`; see `Translator.stream`."""
        return stream(answer or self.translate, texts, (self._column("source"),), **options)

    def score(
        self, pairs: Iterable[tuple[str, str]], answer: Answer | None = None, **options: Any
    ) -> Iterator[dict[str, Any]]:
        """What `answer` gives for each (source, target), by default `score_pairs`; see `Scorer`."""
        columns = self._column("source"), self._column("target")
        return stream(answer or self.function("score_pairs"), pairs, columns, **options)

    def function(self, name: str) -> Answer:
        """The signature `name`, called with its inputs in their order.

        Raises:
            InputError: it was exported without.
        """
        if name == "translate":  # whatever it is called: it is the default
            return self.translate
        found = self._loaded.signatures.get(_SIGNATURES.get(name, name))
        if found is None:
            raise InputError(
                f"{self.directory} has no signature {name}: give the run directory, or export it "
                f"with that signature. Received: {', '.join(sorted(self._loaded.signatures))}"
            )
        inputs = _INPUTS.get(name, ("text",))
        return lambda *texts: found(**dict(zip(inputs, texts, strict=True)))

    def with_beams(self, least: int, name: str = "translate_n_best") -> "SavedTranslator":
        """Itself, if its signature `name` gives so many hypotheses: its graph is what it is.

        Raises:
            InputError: it gives fewer, or is not there.
        """
        self.function(name)
        outputs = self._loaded.signatures[_SIGNATURES.get(name, name)].structured_outputs
        beams = outputs["texts"].shape[1] if "texts" in outputs else 1
        if beams < least:
            raise InputError(
                f"{name} of {self.directory} gives {beams} hypotheses of a text: give the run "
                f"directory, or export it again with more beams. Received: {least} hypotheses"
            )
        return self

    def signatures(self) -> list[tuple[str, str, str]]:
        """Name, inputs and outputs of all that can be called, for people."""
        return [
            (name, *map(_describe, (call.structured_input_signature[1], call.structured_outputs)))
            for name, call in sorted(self._loaded.signatures.items())
        ]

    def translate(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Strings (B,) -> `text` (B,) valid UTF-8 and `score` (B,) float32."""
        return self._answer(text=tf.convert_to_tensor(text, tf.string))

    def _column(self, side: str) -> Column:
        length = self._loaded.signatures.get(f"{side}_length")
        if length is None:  # not exported, or a SavedModel of somebody else
            return Column(side)
        limit = self.metadata.get("decoding", {}).get(f"max_{side}_length")
        return Column(side, lambda text: length(text=text)["length"], limit)


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


def _describe(specs: dict[str, tf.TensorSpec]) -> str:
    return ", ".join(f"{name}: {x.dtype.name} {x.shape}" for name, x in sorted(specs.items()))


def _signature_problem(signature: Any) -> str:
    if signature is None:
        return f"it has no signature {SIGNATURE}."
    inputs, outputs = signature.structured_input_signature[1], signature.structured_outputs
    if set(inputs) == {"text"} and {"text", "score"} <= set(outputs):
        if inputs["text"].dtype == outputs["text"].dtype == tf.string:
            return ""
    return (
        f"{SIGNATURE} must map `text` to `text` and `score`. "
        f"Received: {_describe(inputs)} -> {_describe(outputs)}"
    )

"""All checks of a SavedModel, from reading it to running it as a server would."""

import os
from collections.abc import Callable
from pathlib import Path

import tensorflow as tf

from tf_transformer.errors import InputError
from tf_transformer.saved import SIGNATURE, find_saved_model
from tf_transformer.translator import Translator

from .answers import (
    Answers,
    c_library_answers,
    function_answers,
    is_text_to_text,
    object_loader_answers,
    session_answers,
)
from .c_library import LibraryNotFound
from .graph_scan import SCANS, MetaGraph, read_meta_graph
from .result import CheckResult

PROBES = [
    *("", " ", " \t ", "a", "a\0b", "Je suis étudiant.", "Ωμέγα, 漢字 and 😀!", "x" * 60),
    "one two three four five six seven eight nine ten, " * 3,
]
_BATCHES = [[*(text.encode() for text in PROBES), b"not \xff\xfe UTF-8"], []]
# Of scores between -1 and -10. The kernels are the same, what the graph optimizer fuses may not be.
_TOLERANCE = 1e-4


def run_checks(
    saved_model: str | os.PathLike[str], translator: Translator | None = None
) -> list[CheckResult]:
    """Every check, in order; none stops those after it.

    Args:
        saved_model: any SavedModel, or a directory of versions (the highest is taken).
        translator: what it was made from. Without it the loaders are compared with each other.

    Raises:
        InputError: there is no SavedModel, or its file cannot be read.
    """
    folder = find_saved_model(saved_model)
    if folder is None:
        raise InputError(f"{saved_model} is not a SavedModel: there is no saved_model.pb.")
    graph = read_meta_graph(folder)
    return [*(scan(graph) for scan in SCANS), *check_answers(folder, graph, translator)]


def check_answers(
    folder: Path, graph: MetaGraph, translator: Translator | None = None
) -> list[CheckResult]:
    """Whether every loader answers as the translator, or without one as the first loader."""
    if not is_text_to_text(graph):
        reason = f"skipped: {SIGNATURE} does not map `text` to `text` and `score`"
        return [CheckResult("answers", True, reason)]
    expected = None if translator is None else function_answers(translator.translate, _BATCHES)
    ways: dict[str, Callable[[], list[Answers]]] = {
        "object loader": lambda: object_loader_answers(folder, _BATCHES),
        "session loader": lambda: session_answers(folder, _BATCHES),
        "C library": lambda: c_library_answers(folder, graph, _BATCHES),
    }
    results = []
    for name, way in ways.items():
        try:
            found = way()
            if name == "C library" and tf.config.list_physical_devices("GPU"):
                # A GPU rounds in another way, and the C library is run on the CPU.
                expected = session_answers(folder, _BATCHES, on_cpu=True)
        except LibraryNotFound as error:
            results.append(CheckResult(name, True, f"skipped: {error}"))
        except Exception as error:  # what does not load or answer is a finding, whatever it raises
            results.append(CheckResult(name, False, f"it does not answer: {_reason(error)}"))
        else:
            expected = expected or found
            results.append(_compare(name, expected, found))
    return results


def _reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines()]
    telling = [line for line in lines if line and line != "Graph execution error:"]
    return telling[0] if telling else type(error).__name__


def _compare(name: str, expected: list[Answers], found: list[Answers]) -> CheckResult:
    for texts, right, answers in zip(_BATCHES, expected, found, strict=True):
        if not len(texts) == len(answers.texts) == len(answers.scores):
            detail = f"{len(answers.texts)} answers to {len(texts)} texts"
            return CheckResult(name, False, detail)
        pairs = zip(zip(*right, strict=True), zip(*answers, strict=True), strict=True)
        for text, pair in zip(texts, pairs, strict=True):
            problem = _difference(*pair)
            if problem:
                return CheckResult(name, False, f"to {text!r} it answers {problem}")
    return CheckResult(name, True, f"{len(_BATCHES[0])} texts and an empty batch answered alike")


def _difference(right: tuple[bytes, float], answer: tuple[bytes, float]) -> str:
    (right_text, right_score), (found, score) = right, answer
    if right_text != found:
        return f"{found!r}, not {right_text!r}"
    if not abs(right_score - score) <= _TOLERANCE:
        return f"with score {score}, not {right_score}"
    if found.decode("utf-8", "replace").encode() != found:
        return f"{found!r}, which is not UTF-8"
    return ""

"""A SavedModel's answers, by every way it is loaded.

Python's object loader proves nothing about a server: it restores variables and tokenizers by a way
of its own. The session loader is the server's, and the C library runs it without Python's help.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the tokenizers' ops)

from tf_transformer.saved import SIGNATURE

from . import c_library
from .graph_scan import MetaGraph

_SECONDS = 600

Batches = list[list[bytes]]


class Answers(NamedTuple):
    """To one batch of B texts."""

    texts: list[bytes]
    scores: list[float]


def function_answers(
    translate: Callable[..., dict[str, tf.Tensor]], batches: Batches
) -> list[Answers]:
    """By a TensorFlow function in this process, such as `Translator.translate`."""
    found = [translate(text=tf.constant(texts, tf.string, [len(texts)])) for texts in batches]
    return [Answers(x["text"].numpy().tolist(), x["score"].numpy().tolist()) for x in found]


def object_loader_answers(saved_model: Path, batches: Batches) -> list[Answers]:
    """By `tf.saved_model.load`, as Python programs load."""
    loaded = tf.saved_model.load(str(saved_model))
    return function_answers(loaded.signatures[SIGNATURE], batches)


def session_answers(saved_model: Path, batches: Batches, on_cpu: bool = False) -> list[Answers]:
    """By the session loader, as TF Serving loads; without any GPU if `on_cpu`."""
    config = tf.compat.v1.ConfigProto(device_count={"GPU": 0} if on_cpu else {})
    graph = tf.Graph()
    with graph.as_default(), tf.compat.v1.Session(graph=graph, config=config) as session:
        loaded = tf.compat.v1.saved_model.load(session, ["serve"], str(saved_model))
        source, *targets = _tensor_names(loaded)
        found = [session.run(targets, {source: texts}) for texts in batches]
    return [Answers(texts.tolist(), scores.tolist()) for texts, scores in found]


def c_library_answers(saved_model: Path, graph: MetaGraph, batches: Batches) -> list[Answers]:
    """By TensorFlow's C library on the CPU, in a process without Python TensorFlow.

    Raises:
        c_library.LibraryNotFound: this installation has no shared library.
        RuntimeError: it does not load or does not answer; the message is the library's.
    """
    done = subprocess.run(
        [sys.executable, c_library.__file__, str(saved_model), *_tensor_names(graph)],
        input=json.dumps([[t.decode("utf-8", "surrogateescape") for t in b] for b in batches]),
        # A GPU's memory is this process's, all of it by default.
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
    )
    reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    if done.returncode == c_library.NO_LIBRARY:
        raise c_library.LibraryNotFound(reason)
    if done.returncode:
        raise RuntimeError(reason)
    return [
        Answers([text.encode("utf-8", "surrogateescape") for text in texts], scores)
        for texts, scores in json.loads(done.stdout)
    ]


def is_text_to_text(graph: MetaGraph) -> bool:
    """Whether serving_default maps `text` to `text` and `score`: else there is nothing to ask."""
    if SIGNATURE not in graph.signature_def:
        return False
    signature = graph.signature_def[SIGNATURE]
    named = {"text", "score"} <= set(signature.outputs) and set(signature.inputs) == {"text"}
    return named and all(t.name for t in (*signature.inputs.values(), *signature.outputs.values()))


def _tensor_names(graph: MetaGraph) -> list[str]:
    signature = graph.signature_def[SIGNATURE]
    return [signature.inputs["text"].name, *(signature.outputs[x].name for x in ("text", "score"))]

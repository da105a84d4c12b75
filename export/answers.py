"""A SavedModel's answers to requests, by every way it is loaded."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the tokenizers' ops)

from . import c_library
from .meta_graph import MetaGraph
from .session_model import Arrays, SessionModel

_SECONDS = 600  # for one answer there are less than this, whatever the model


class Request(NamedTuple):
    """What a client sends."""

    signature: str
    inputs: Arrays


class Refused(str):
    """The answer of a graph that fails: why."""


Answer = Arrays | Refused
Function = Callable[..., dict[str, tf.Tensor]]


def ask_all(ask: Callable[[str, Arrays], Arrays], requests: Iterable[Request]) -> list[Answer]:
    """The answer of `ask` to each request."""
    found: list[Answer] = []
    for request in requests:
        try:
            found.append(ask(*request))
        except Exception as error:  # what a graph raises is a finding, whatever it is
            found.append(Refused(reason(error)))
    return found


def function_answers(functions: dict[str, Function], requests: Iterable[Request]) -> list[Answer]:
    """By TensorFlow functions in this process, such as the loaded signatures."""

    def ask(signature: str, inputs: Arrays) -> Arrays:
        tensors = {key: tf.constant(x, _type(x), x.shape) for key, x in inputs.items()}
        return {key: np.asarray(x) for key, x in functions[signature](**tensors).items()}

    return ask_all(ask, requests)


def object_loader_answers(saved_model: Path, requests: Iterable[Request]) -> list[Answer]:
    """By `tf.saved_model.load`, as Python programs load."""
    loaded = tf.saved_model.load(str(saved_model))
    return function_answers(dict(loaded.signatures), requests)


def session_answers(
    saved_model: Path, requests: Iterable[Request], on_cpu: bool = False
) -> list[Answer]:
    """By the session loader, as TensorFlow Serving loads; without any GPU if `on_cpu`."""
    with SessionModel(saved_model, on_cpu) as model:
        return ask_all(model, requests)


def c_library_answers(
    saved_model: Path, graph: MetaGraph, requests: Iterable[Request]
) -> list[Answer]:
    """By TensorFlow's C library on the CPU, in a process without Python TensorFlow.

    Raises:
        c_library.LibraryNotFound: this installation has no shared library.
        RuntimeError: it does not load; the message is the library's.
    """
    done = subprocess.run(
        [sys.executable, c_library.__file__, str(saved_model)],
        input=json.dumps([as_program_input(graph, request) for request in requests]),
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
    return [_read(answer) for answer in json.loads(done.stdout)]


def as_program_input(graph: MetaGraph, request: Request) -> dict[str, Any]:
    """A request as the program `c_library` reads it."""
    signature = graph.signature_def[request.signature]
    inputs = {}
    for key, values in request.inputs.items():
        flat = values.ravel().tolist()
        if values.dtype == object:
            flat = [text.decode("utf-8", "surrogateescape") for text in flat]
        kind = _type(values).as_datatype_enum
        inputs[signature.inputs[key].name] = [kind, list(values.shape), flat]
    return {"inputs": inputs, "outputs": {k: t.name for k, t in signature.outputs.items()}}


def reason(error: Exception) -> str:
    """The line of an error that tells what is wrong."""
    lines = [line.strip() for line in str(error).splitlines()]
    telling = [line for line in lines if line and line != "Graph execution error:"]
    return telling[0] if telling else type(error).__name__


def _type(values: np.ndarray) -> tf.DType:
    return tf.string if values.dtype == object else tf.dtypes.as_dtype(values.dtype)


def _read(answer: dict[str, Any]) -> Answer:
    if "error" in answer:
        return Refused(answer["error"])
    arrays = {}
    for key, (kind, shape, values) in answer["outputs"].items():
        dtype = tf.dtypes.as_dtype(kind)
        if dtype == tf.string:
            values = [text.encode("utf-8", "surrogateescape") for text in values]
        arrays[key] = np.array(values, dtype.as_numpy_dtype).reshape(shape)
    return arrays

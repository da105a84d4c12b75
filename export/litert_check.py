"""A LiteRT file runs in LiteRT, and answers as the translator does."""

from typing import Any

import numpy as np

from tf_transformer.errors import InputError
from tf_transformer.translator import Translator

from .id_endpoints import generate_ids
from .parts import Parts
from .result import ExportError

_TEXTS = [
    *("", "a", "Je suis étudiant.", "Ωμέγα, 漢字 and 😀!", "<s> x </s>", "x" * 60),
    "one two three four five six seven eight nine ten",
]
_TOLERANCE = 1e-3  # of scores: other kernels


def require_runtime() -> Any:
    """The module of LiteRT's interpreter; InputError where it is not installed."""
    try:
        from ai_edge_litert import interpreter
    except ImportError as error:
        raise InputError(
            "LiteRT is not installed: pip install 'tf_transformer[litert]'."
        ) from error
    return interpreter


def open_file(content: bytes, text_operations: bool = True, threads: int | None = None) -> Any:
    """An interpreter of a file, by default with the operations of TensorFlow Text."""
    interpreter, options = require_runtime(), {"model_content": content, "num_threads": threads}
    if not text_operations:
        return interpreter.Interpreter(**options)
    from tensorflow_text import tflite_registrar

    operations = tflite_registrar.SELECT_TFTEXT_OPS
    return interpreter.InterpreterWithCustomOps(custom_op_registerers=operations, **options)


def check_answers(content: bytes, translator: Translator, exact: bool) -> None:
    """Asks every signature; see `export_litert`.

    Args:
        content: of the file.
        translator: what it was made from.
        exact: whether ids and texts have to be equal; else it is enough that there are some.

    Raises:
        ExportError: an answer is another one, or there is none.
    """
    model = open_file(content)
    for name in model.get_signature_list():
        try:
            run = model.get_signature_runner(name)
            problem = (_of_text if name == "translate" else _of_ids)(run, name, translator)
        except (RuntimeError, ValueError) as error:
            raise ExportError(f"LiteRT does not run `{name}`: {error}") from error
        if exact and problem:
            raise ExportError(f"In LiteRT `{name}` answers otherwise: {problem}.")


def _of_ids(run: Any, name: str, translator: Translator) -> str:
    if name == "generate_ids_greedy":
        translator = translator.with_options(search="greedy")
    endpoint = generate_ids(Parts(translator))
    request = endpoint.request(_TEXTS)
    right, found = endpoint.answer(**request), run(**request)
    for key in ("ids", "length", "truncated"):
        if not np.array_equal(found[key], right[key]):
            return f"`{key}` of {_TEXTS}"
    return _scores(found["score"], right["score"].numpy())


def _of_text(run: Any, name: str, translator: Translator) -> str:
    for text in _TEXTS:
        right = translator.translate(np.array([text.encode()], object))
        found = run(text=np.array([text.encode()], object))
        if found["text"][0].strip() != right["text"].numpy()[0]:
            return f"{found['text'][0]!r} to {text!r}"
        problem = _scores(found["score"], right["score"].numpy())
        if problem:
            return f"{problem} to {text!r}"
    return ""


def _scores(found: np.ndarray, right: np.ndarray) -> str:
    close = np.isclose(found, right, rtol=_TOLERANCE, atol=_TOLERANCE)
    return "" if close.all() else f"scores {found}, not {right}"

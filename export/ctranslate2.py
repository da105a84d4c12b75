"""A translator as a CTranslate2 model: the same weights in a C++ engine without TensorFlow."""

import errno
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import tf_transformer
from tf_transformer.errors import InputError
from tf_transformer.translator import Translator

from .ctranslate2_search import search_arguments
from .ctranslate2_spec import make_spec

QUANTIZATIONS = ("int8", "int8_float32", "int16", "float16", "bfloat16")


def export_ctranslate2(
    translator: Translator,
    directory: str | os.PathLike[str],
    quantization: str | None = None,
    max_positions: int = 1024,
) -> Path:
    """Writes a new `directory` that `ctranslate2.Translator` opens.

    It holds the model, the tokenizers' files, and `metadata.json` with the arguments that make
    CTranslate2 search as the translator does. Text is cut by the tokenizer's file and put
    together again outside of the engine, which sees pieces.

    Args:
        translator: in float32, as `Translator.load` makes it.
        directory: is made; must not exist.
        quantization: one of QUANTIZATIONS; None keeps float32.
        max_positions: rows of the position table that is written, the longest sentence; more where
            the options allow longer ones.

    Returns:
        `directory`.

    Raises:
        InputError: CTranslate2 is not installed, has no such model or no such search, `directory`
            exists or cannot be written, or an argument breaks its rule.
    """
    if quantization is not None and quantization not in QUANTIZATIONS:
        raise InputError(
            f"`quantization` must be one of {', '.join(QUANTIZATIONS)} for CTranslate2. "
            f"Received: quantization={quantization!r}"
        )
    directory = Path(directory)
    if directory.exists():
        raise InputError(f"{directory} exists and is never overwritten; choose another.")
    spec = make_spec(translator, max_positions)
    arguments = search_arguments(translator)
    spec.validate()
    spec.optimize(quantization=quantization)
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="exporting_", dir=directory.parent) as beside:
            written = Path(beside) / "model"  # not `beside` itself, which only its owner may read
            written.mkdir()
            spec.save(str(written))
            _write_tokenizers(translator, written)
            (written / "metadata.json").write_text(
                json.dumps(_metadata(translator, quantization, arguments), indent=2) + "\n",
                encoding="utf-8",
            )
            return written.rename(directory)
    except OSError as error:
        if error.errno == errno.ENOTEMPTY:
            raise InputError(f"{directory} has just been made by another export.") from error
        raise InputError(f"{directory} cannot be written: {error.strerror}") from error


def _write_tokenizers(translator: Translator, folder: Path) -> None:
    tokenizers = translator.tokenizers
    for side, tokenizer in (("source", tokenizers.source), ("target", tokenizers.target)):
        tokenizer.save(folder / f"{side}{tokenizer.suffix}")


def _metadata(
    translator: Translator, quantization: str | None, arguments: dict[str, Any]
) -> dict[str, Any]:
    import ctranslate2

    options = translator.options

    return {
        "tf_transformer": tf_transformer.__version__,
        "ctranslate2": ctranslate2.__version__,
        "quantization": quantization or "float32",
        "translate_batch": arguments,
        "length_factor": options.length_factor,
        "extra_length": options.extra_length,
    }

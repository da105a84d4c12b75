"""A translator as one LiteRT file, for phones and small machines without TensorFlow."""

import io
import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import tensorflow as tf

import tf_transformer
from tf_transformer.config import END_ID, PAD_ID, START_ID
from tf_transformer.errors import InputError
from tf_transformer.translator import Translator

from .id_endpoints import generate_ids
from .litert_check import check_answers, require_runtime
from .litert_graph import QUANTIZATIONS, convert
from .parts import IDS, LENGTH, Parts, Tensors, finite

TEXT_OPERATIONS = ("TFText>FastSentencepieceTokenize", "TFText>FastSentencepieceDetokenize")


def export_litert(
    translator: Translator, path: str | os.PathLike[str], quantization: str | None = None
) -> Path:
    """Writes a new LiteRT file, after its answers were compared with the translator's.

    Signatures, all over the same weights:

    - `generate_ids`: `ids` (B, L), `length` (B,) -> `ids`, `length`, `score`, `truncated`, as the
      SavedModel's; built-in operations only, so any LiteRT runs it.
    - `generate_ids_greedy`: the same by greedy search, where the translator has another.
    - `translate`: `text` (1,) -> `text` (1,), `score` (1,), `truncated` (1,). It needs two
      operations of TensorFlow Text in the runtime, and is there if LiteRT can cut text as the
      tokenizers do (SentencePiece, unigram, no byte pieces). The text has to be UTF-8. An
      unknown word at an end has its blank there; LiteRT cannot strip it.

    The file is a ZIP archive too, as LiteRT's own metadata are: `unzip` finds `metadata.json`, the
    tokenizers' files and a vocabulary a side, one piece a line.

    Args:
        translator: in float32, as `Translator.load` makes it. How it searches is fixed here.
        path: of the file; must not exist.
        quantization: "float16" halves the file, "int8" (weights only, dynamic range) makes a third
            of it and is faster; both may choose another word now and then. None keeps float32.

    Returns:
        `path`.

    Raises:
        InputError: `path` exists or cannot be written, the extra `litert` is not installed, or an
            argument breaks its rule.
        ExportError: the model needs what LiteRT has not, or answers otherwise there.
    """
    if quantization is not None and quantization not in QUANTIZATIONS:
        raise InputError(
            f"`quantization` must be one of {', '.join(QUANTIZATIONS)} for LiteRT. "
            f"Received: quantization={quantization!r}"
        )
    path = Path(path)
    if path.exists():
        raise InputError(f"{path} exists and is never overwritten; choose another.")
    require_runtime()
    functions = {"generate_ids": (generate_ids(Parts(translator)).answer, [IDS, LENGTH])}
    if translator.options.search != "greedy":
        greedy = Parts(translator.with_options(search="greedy"))
        functions["generate_ids_greedy"] = (generate_ids(greedy).answer, [IDS, LENGTH])
    custom: dict[str, tuple[str, ...]] = {}
    if not text_obstacle(translator):
        one_text = tf.TensorSpec([1], tf.string, name="text")
        functions["translate"] = (_text_to_text(translator), [one_text])
        custom["translate"] = TEXT_OPERATIONS
    content = convert(functions, custom, quantization)
    check_answers(content, translator, exact=quantization is None)
    return _write(content + _archive(translator, quantization, [*functions]), path)


def text_obstacle(translator: Translator) -> str:
    """Why the LiteRT file takes no text; empty where it does."""
    for side in ("source", "target"):
        obstacle = getattr(translator.tokenizers, side).litert_obstacle
        if obstacle:
            return f"of the {side} side, {obstacle}"
    return ""


def _text_to_text(translator: Translator) -> Any:
    import tensorflow_text

    limit = translator.options.max_source_length
    source, target = (
        tensorflow_text.FastSentencepieceTokenizer(tokenizer.content)
        for tokenizer in (translator.tokenizers.source, translator.tokenizers.target)
    )
    vocabulary = translator.tokenizers.target.vocabulary()
    blanks = [i for i, piece in enumerate(vocabulary) if not piece.strip("\u2581")]

    def translate(text: tf.Tensor) -> Tensors:
        token_ids = source.tokenize(text).flat_values
        truncated = tf.size(token_ids) >= limit
        token_ids = tf.expand_dims(tf.concat([token_ids[: limit - 1], [END_ID]], 0), 0)
        length = tf.shape(token_ids)[1:]
        found = translator.generate(token_ids, translator.max_lengths(length), wanted=1)
        best = found.token_ids[0, 0]
        is_end = tf.cast(tf.equal(best, END_ID), tf.int32)
        # Not cumprod: LiteRT has no such operation. A blank text has a blank translation.
        readable = tf.equal(tf.cumsum(is_end), 0) & (best < len(vocabulary)) & (length > 1)
        readable &= tf.not_equal(best, PAD_ID) & tf.not_equal(best, START_ID)
        words = tf.boolean_mask(best, readable & _inside(readable & ~_among(best, blanks)))
        # int32: LiteRT's operation reads nothing from wider ones.
        splits = tf.stack([0, tf.size(words)])
        row = tf.RaggedTensor.from_row_splits(words, splits, validate=False)
        return {
            "text": target.detokenize(row),
            "score": tf.where(length > 1, finite(found.scores[:, 0]), 0.0),
            "truncated": tf.expand_dims(truncated, 0),
        }

    return translate


def _among(values: tf.Tensor, choices: list[int]) -> tf.Tensor:
    same = [tf.equal(values, choice) for choice in choices]
    return tf.reduce_any(tf.stack(same), 0) if same else tf.zeros_like(values, tf.bool)


def _inside(marks: tf.Tensor) -> tf.Tensor:
    """(T,) bool -> from the first True to the last: the text has no blanks at its ends."""
    marks = tf.cast(marks, tf.int32)
    return (tf.cumsum(marks) > 0) & (tf.cumsum(marks, reverse=True) > 0)


def _archive(translator: Translator, quantization: str | None, signatures: list[str]) -> bytes:
    options = translator.options
    metadata = {
        "tf_transformer": tf_transformer.__version__,
        "tensorflow": tf.__version__,
        "quantization": quantization or "float32",
        "signatures": signatures,
        "max_source_length": options.max_source_length,
        "max_target_length": options.max_target_length,
        "search": {
            "search": options.search,
            "num_beams": options.num_beams,
            "alpha": options.alpha,
        },
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("metadata.json", json.dumps(metadata, indent=2) + "\n")
        for side in ("source", "target"):
            tokenizer = getattr(translator.tokenizers, side)
            archive.writestr(f"{side}{tokenizer.suffix}", tokenizer.content)
            pieces = "".join(f"{piece}\n" for piece in tokenizer.vocabulary())
            archive.writestr(f"{side}_vocabulary.txt", pieces)
    return buffer.getvalue()


def _write(content: bytes, path: Path) -> Path:
    """Beside and renamed, and not over a file that came there meanwhile."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="exporting_", dir=path.parent) as beside:
            written = Path(beside) / path.name
            written.write_bytes(content)
            os.link(written, path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error
    return path

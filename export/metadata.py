"""What an export says about itself: `assets.extra/metadata.json` in the version folder."""

import dataclasses
import hashlib
import json
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import tf_transformer
from tf_transformer.saved import METADATA_FILE
from tf_transformer.tokenizer_files import write_tokenizers
from tf_transformer.translator import Translator

from .file_scan import file_digests
from .meta_graph import MetaGraph, signatures


def write_metadata(saved_model: Path, graph: MetaGraph, translator: Translator) -> None:
    """Writes versions, the weights' fingerprint, the search, the vocabularies and signatures.

    The tokenizers' own files lie beside it, for clients that have ids to make or to read.
    """
    path = saved_model / METADATA_FILE
    path.parent.mkdir(exist_ok=True)
    tokenizers = {"source": translator.tokenizers.source, "target": translator.tokenizers.target}
    written = write_tokenizers(path.parent, tokenizers["source"], tokenizers["target"])
    content = {
        "versions": _versions(),
        "fingerprint": _fingerprint(saved_model),
        "files_sha256": file_digests(saved_model),
        "weights_sha256": weights_sha256(translator.model),
        "parameters": translator.model.count_params(),
        "decoding": dataclasses.asdict(translator.options),
        "tokenizers": {
            side: {
                **written.get(side, written["source"]),
                "name": tokenizer.name,
                "vocabulary_size": tokenizer.vocabulary_size,
            }
            for side, tokenizer in tokenizers.items()
        },
        "signatures": {name: _signature(value) for name, value in signatures(graph).items()},
    }
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def weights_sha256(model: keras.Model) -> str:
    """Of all weights in the model's order, as bytes of their own types: equal for equal models."""
    digest = hashlib.sha256()
    for weight in model.weights:
        digest.update(np.asarray(weight.value).tobytes())
    return digest.hexdigest()


def _fingerprint(saved_model: Path) -> dict[str, Any]:
    """TensorFlow's own, of graph and weights; as text, since JSON's numbers end at 2^53."""
    found = tf.saved_model.experimental.read_fingerprint(str(saved_model))
    names = "saved_model_checksum graph_def_program_hash signature_def_hash"
    names += " saved_object_graph_hash checkpoint_hash"
    return {name: str(getattr(found, name)) for name in names.split()}


def _versions() -> dict[str, str]:
    found = {"tf_transformer": tf_transformer.__version__, "keras": keras.__version__}
    for name in ("tensorflow", "tensorflow-text"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # a build of one's own, or tensorflow-cpu
            found[name] = tf.__version__ if name == "tensorflow" else "unknown"
    return found


def _signature(signature: Any) -> dict[str, dict[str, Any]]:
    return {
        side: {
            key: {
                "dtype": tf.dtypes.as_dtype(tensor.dtype).name,
                "shape": [None if d.size < 0 else d.size for d in tensor.tensor_shape.dim],
            }
            for key, tensor in sorted(tensors.items())
        }
        for side, tensors in (("inputs", signature.inputs), ("outputs", signature.outputs))
    }

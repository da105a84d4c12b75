"""The files of a run directory that hold a translator: written beside and renamed, read back."""

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import h5py
import keras

from tf_transformer.config import TransformerConfig
from tf_transformer.errors import InputError
from tf_transformer.model import build_transformer, under_policy
from tf_transformer.options import DecodingOptions
from tf_transformer.tokenizer_files import read_tokenizers, write_tokenizers
from tf_transformer.tokenizers import TOKENIZERS, Tokenizer

CONFIG_FILE, TRANSLATOR_FILE, WEIGHTS_FILE = "model.json", "translator.json", "model.weights.h5"


def write_run(
    directory: Path,
    config: TransformerConfig,
    model: keras.Model,
    tokenizers: dict[str, Tokenizer],
    options: DecodingOptions,
) -> None:
    """Writes model, tokenizers ("source", "target"; one object where they share) and options."""
    directory.mkdir(parents=True, exist_ok=True)
    config.to_json(directory / CONFIG_FILE)
    written = write_tokenizers(directory, tokenizers["source"], tokenizers["target"])
    save_weights(model, directory)
    manifest = {"tokenizers": written, "decoding": dataclasses.asdict(options)}
    beside = directory / f"{TRANSLATOR_FILE}.writing"
    beside.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    os.replace(beside, directory / TRANSLATOR_FILE)  # last: its presence means complete


def read_run(
    directory: Path,
) -> tuple[TransformerConfig, Tokenizer, Tokenizer, dict[str, Any]]:
    """Sizes, both tokenizers (one object where they share) and decoding options of a run.

    Raises:
        InputError: not a run directory with a trained model, or a file of it is broken.
    """
    for file in (TRANSLATOR_FILE, CONFIG_FILE, WEIGHTS_FILE):
        if not (directory / file).is_file():
            raise InputError(
                f"{directory} is not a run directory with a trained model: {file} is missing."
            )
    manifest = read_manifest(directory)
    source, target = read_tokenizers(directory, manifest["tokenizers"])
    config = TransformerConfig.from_json(directory / CONFIG_FILE)
    return config, source, target, manifest["decoding"]


def build_in_float32(config: TransformerConfig) -> keras.Model:
    """The model to decode with: under half precision the cached steps skip Keras's casts."""
    with under_policy("float32"):
        return build_transformer(config)


def save_weights(
    model: keras.Model, directory: str | os.PathLike[str], file: str = WEIGHTS_FILE
) -> None:
    """Writes the model's weights into a run directory, beside and renamed."""
    beside = Path(directory) / f"writing.{file}"
    without_optimizer(model).save_weights(beside)
    os.replace(beside, Path(directory) / file)


def without_optimizer(model: keras.Model) -> keras.Model:
    """The same layers, not compiled: a compiled model puts Adam's moments into weight files."""
    return keras.Model(model.input, model.output, name=model.name)


def load_weights(
    model: keras.Model, directory: str | os.PathLike[str], file: str = WEIGHTS_FILE
) -> None:
    """Reads them back; InputError when the file is broken or of another model."""
    path = Path(directory) / file
    try:
        model.load_weights(path)
        stored = _count_arrays(path)
    except (OSError, ValueError, KeyError) as error:
        reason = (str(error).strip() or repr(error)).splitlines()[0]
        raise InputError(f"{path} does not hold the weights of this model: {reason}") from error
    # Keras passes over what the model has no place for: one more layer, a gate, a position table.
    if stored != len(model.weights):
        raise InputError(
            f"{path} does not hold the weights of this model: "
            f"it has {stored} arrays, the model {len(model.weights)}."
        )


def _count_arrays(path: Path) -> int:
    names: list[str] = []
    with h5py.File(path) as file:
        file.visititems(lambda name, item: names.append(name) if hasattr(item, "dtype") else None)
    return sum(not name.startswith("optimizer") for name in names)


def read_manifest(directory: Path) -> dict[str, Any]:
    """What a run says of its `tokenizers` and `decoding`; InputError when it is broken."""
    path = directory / TRANSLATOR_FILE
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        for entry in manifest["tokenizers"].values():
            if entry["type"] not in list(TOKENIZERS):
                raise ValueError(f"there is no tokenizer called {entry['type']!r}")
            Path(entry["file"])
        manifest["tokenizers"]["source"]
        DecodingOptions(**manifest["decoding"])
        return manifest
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is broken: {error!r}") from error

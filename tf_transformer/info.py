"""What a path holds, a run, an export or a recipe, or what a preset is, told to a person."""

import dataclasses
import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tf_transformer.config import PRESETS, TransformerConfig
from tf_transformer.errors import InputError
from tf_transformer.quiet import load_tensorflow
from tf_transformer.rooms import need

_VOCABULARY = 37_000  # of a preset, which has none: the paper's (section 5.1)


def show(path: Path, console: Console) -> None:
    """Prints a table; InputError when the path holds nothing of ours and names no preset."""
    if str(path) in PRESETS and not path.exists():
        _show_preset(str(path), console)
        return
    if path.is_file() or not path.exists():
        # As it is, whatever the width: it can be written to a file and used.
        text = need("training.recipe").load_recipe(str(path)).to_toml()
        console.print(text, markup=False, emoji=False, soft_wrap=True, end="")
        return
    load_tensorflow()
    from tf_transformer.run_files import TRANSLATOR_FILE
    from tf_transformer.saved import find_saved_model

    if (path / TRANSLATOR_FILE).is_file():
        _show_run(path, console)
    elif (found := find_saved_model(path)) is not None:
        _show_saved_model(found, console)
    else:
        raise InputError(
            f"{path} holds no trained run ({TRANSLATOR_FILE}), no SavedModel, and is no recipe."
        )


def _show_preset(name: str, console: Console) -> None:
    load_tensorflow()
    import keras

    from tf_transformer.model import build_transformer

    sizes = dict.fromkeys(("source_vocabulary_size", "target_vocabulary_size"), _VOCABULARY)
    config = TransformerConfig.from_preset(name, **sizes)
    with keras.StatelessScope(initialize_variables=False):  # shapes alone: big takes a gigabyte
        model = build_transformer(config)
        console.print(_layers(f"{name}, with a vocabulary of {_VOCABULARY:,}", model))
    console.print(_record("Configuration", dataclasses.asdict(config)))


def _show_run(path: Path, console: Console) -> None:
    from tf_transformer.run_files import build_in_float32, read_run

    config, source, target, decoding = read_run(path)
    console.print(_layers(f"The model in {path}", build_in_float32(config)))
    console.print(_record("Configuration", dataclasses.asdict(config)))
    console.print(_record("Decoding", decoding))
    table = Table("side", "tokenizer", "ids", title="Tokenizers")
    sides = {"both": source} if source is target else {"source": source, "target": target}
    for side, tokenizer in sides.items():
        table.add_row(side, tokenizer.description, f"{tokenizer.vocabulary_size:,}")
    console.print(table)


def _show_saved_model(path: Path, console: Console) -> None:
    from tf_transformer.saved import METADATA_FILE, SavedTranslator

    saved = SavedTranslator(path)
    table = Table("signature", "inputs", "outputs", title=f"The SavedModel in {path}")
    for name, inputs, outputs in saved.signatures():
        table.add_row(name, inputs, outputs)
    console.print(table)
    if saved.metadata:
        console.print(f"{METADATA_FILE}:")
        console.print_json(json.dumps(saved.metadata))


def layer_rows(model: Any) -> list[tuple[str, str, str, int]]:
    """Name, class, output shapes and parameters of what a model is made of.

    Every layer with weights, one of the equal layers of a stack, and the whole, which is "all".
    """
    rows = []
    for layer in model.layers:
        if layer.count_params():
            # A shared embedding is called more than once.
            shapes = dict.fromkeys(str(node.outputs[0].shape) for node in layer._inbound_nodes)
            kind = type(layer).__name__
            rows.append((layer.name, kind, "\n".join(shapes), layer.count_params()))
        for block in getattr(layer, "blocks", [])[:1]:
            each = f"  each of {len(layer.blocks)}"
            rows.append((each, type(block).__name__, "", block.count_params()))
    return [*rows, ("all", "", str(model.output_shape), model.count_params())]


def _layers(title: str, model: Any) -> Table:
    table = Table("layer", "class", "output", "parameters", title=title)
    for name, kind, shapes, count in layer_rows(model):
        table.add_row(name, kind, shapes, f"{count:,}")
    return table


def _record(title: str, fields: dict[str, Any]) -> Table:
    table = Table("field", "value", title=title)
    for name, value in fields.items():
        table.add_row(name, str(value))
    return table

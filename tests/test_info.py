"""`tf-transformer info` of a preset: layers, shapes and numbers of weights, by arithmetic."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from tests.test_config import TABLE_3, arithmetic
from tf_transformer.errors import InputError
from tf_transformer.info import show


def told(name):
    """What is printed, as rows of cells."""
    console = Console(file=io.StringIO(), width=120)
    show(Path(name), console)
    lines = console.file.getvalue().splitlines()
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines if "│" in line]


@pytest.mark.parametrize("preset", ["base", "table3_b_key_16", "table3_e_learned", "big"])
def test_a_preset_is_told_without_being_made(preset):
    rows = {row[0]: row[1:] for row in told(preset)}
    numbers, _ = TABLE_3[preset]
    width = numbers.get("d_model", 512)
    assert rows["all"] == ["", "(None, None, 37000)", f"{arithmetic(**numbers):,}"]
    shape = f"(None, None, {width})"
    assert rows["embedding"] == ["TokenEmbedding", shape, f"{37_000 * width:,}"]
    assert rows["encoder"][:2] == ["Encoder", shape] and rows["decoder"][:2] == ["Decoder", shape]
    parts = [rows[name][2] for name in ("embedding", "encoder", "decoder")]
    assert sum(int(part.replace(",", "")) for part in parts) == arithmetic(**numbers)
    assert rows["hidden_dim"] == [str(width)]


def test_one_layer_of_a_stack_is_told():
    each = [row[1:] for row in told("base") if row[0] == "each of 6"]
    assert each == [["EncoderLayer", "", "3,152,384"], ["DecoderLayer", "", "4,204,032"]]


def test_what_lies_there_comes_before_a_preset(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("big").mkdir()
    with pytest.raises(InputError, match="big holds no trained run"):
        told("big")
    Path("base").write_text(json.dumps("not TOML"))
    with pytest.raises(InputError, match="base must be TOML"):
        told("base")

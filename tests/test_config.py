"""TransformerConfig: the paper's defaults, JSON, refusals, and Table 3 by arithmetic."""

import dataclasses
import json

import keras
import numpy as np
import pytest

from tf_transformer import PRESETS, InputError, TransformerConfig, build_transformer
from tf_transformer.config import POSITION_NAMES
from tf_transformer.layers import POSITIONS

VOCABULARY = {"source_vocabulary_size": 37_000, "target_vocabulary_size": 37_000}
SMALL = {"source_vocabulary_size": 11, "target_vocabulary_size": 11}


def count(config):
    """The model's parameters, without making them."""
    with keras.StatelessScope(initialize_variables=False):
        parameters = build_transformer(config).count_params()
    keras.utils.clear_session()
    return parameters


def arithmetic(N=6, d_model=512, d_ff=2048, h=8, d_k=None, d_v=None, V=37_000, positions=0):
    """Parameters of a post-norm Transformer with one shared table, as section 3 defines it."""
    d_k, d_v = d_k or d_model // h, d_v or d_model // h
    attention = 2 * (d_model * h * d_k + h * d_k) + d_model * h * d_v + h * d_v
    attention += h * d_v * d_model + d_model
    feed_forward = d_model * d_ff + d_ff + d_ff * d_model + d_model
    norm = 2 * d_model
    encoder = N * (attention + norm + feed_forward + norm)
    decoder = N * (attention + norm + attention + norm + feed_forward + norm)
    return encoder + decoder + V * d_model + 2 * positions * d_model


# Table 3: our preset, the numbers of its row, and "params x 10^6" where the paper prints it.
TABLE_3 = {
    "base": ({}, 65),
    "table3_a_1_head": ({"h": 1}, None),
    "table3_a_4_heads": ({"h": 4}, None),
    "table3_a_16_heads": ({"h": 16}, None),
    "table3_a_32_heads": ({"h": 32}, None),
    "table3_b_key_16": ({"d_k": 16}, 58),
    "table3_b_key_32": ({"d_k": 32}, 60),
    "table3_c_2_layers": ({"N": 2}, 36),
    "table3_c_4_layers": ({"N": 4}, 50),
    "table3_c_8_layers": ({"N": 8}, 80),
    "table3_c_hidden_256": ({"d_model": 256}, 28),
    "table3_c_hidden_1024": ({"d_model": 1024}, 168),
    "table3_c_intermediate_1024": ({"d_ff": 1024}, 53),
    "table3_c_intermediate_4096": ({"d_ff": 4096}, 90),
    "table3_d_dropout_0": ({}, None),
    "table3_d_dropout_0.2": ({}, None),
    "table3_d_smoothing_0": ({}, None),
    "table3_d_smoothing_0.2": ({}, None),
    "table3_e_learned": ({"positions": 512}, None),
    "big": ({"d_model": 1024, "d_ff": 4096, "h": 16}, 213),
}


def test_the_defaults_are_the_paper():
    config = TransformerConfig(**SMALL)
    assert (config.num_layers, config.hidden_dim, config.intermediate_dim) == (6, 512, 2048)
    assert (config.num_heads, config.dropout, config.attention_dropout) == (8, 0.1, 0.0)
    assert (config.activation, config.position, config.norm_first) == ("relu", "sinusoidal", False)
    assert (config.tie_embeddings, config.output_bias) == ("three_way", False)


@pytest.mark.parametrize("preset", TABLE_3)
def test_table_3_has_the_parameters_of_its_arithmetic(preset):
    row, printed = TABLE_3[preset]
    parameters = count(TransformerConfig.from_preset(preset, **VOCABULARY))
    assert parameters == arithmetic(**row)
    if printed:  # the paper rounds, and its vocabulary of "about 37000" was larger
        assert 0.92 * printed < parameters / 1e6 < 1.01 * printed


def test_every_preset_but_tiny_is_a_row_of_table_3():
    assert set(PRESETS) == {"tiny", *TABLE_3}


@pytest.mark.parametrize(
    ("preset", "dropout"),
    [("base", 0.1), ("big", 0.3), ("table3_d_dropout_0", 0.0), ("table3_d_dropout_0.2", 0.2)],
)
def test_the_dropout_of_table_3(preset, dropout):
    assert TransformerConfig.from_preset(preset, **VOCABULARY).dropout == dropout


@pytest.mark.case("03")
@pytest.mark.parametrize(
    ("fields", "parameters"),
    [
        ({}, 63_082_496),
        ({"output_bias": True}, 63_119_496),
        ({"tie_embeddings": "none"}, 100_970_496),
        ({"attention_bias": False}, 63_045_632),
    ],
)
def test_the_base_model_has_the_parameters_of_the_paper(fields, parameters):
    assert count(TransformerConfig(**VOCABULARY, **fields)) == parameters


@pytest.mark.case("03")
@pytest.mark.parametrize(("output_bias", "parameters"), [(False, 1_592), (True, 1_603)])
def test_a_tiny_model_has_1592_parameters(output_bias, parameters):
    fields = {"hidden_dim": 8, "num_heads": 2, "intermediate_dim": 16, "num_layers": 1}
    assert count(TransformerConfig(**SMALL, **fields, output_bias=output_bias)) == parameters


def test_a_preset_takes_fields_over_it():
    config = TransformerConfig.from_preset("big", **SMALL, num_layers=2, dropout=0.0)
    assert (config.hidden_dim, config.num_layers, config.dropout) == (1024, 2, 0.0)
    with pytest.raises(InputError, match=r"`preset` must be one of .*base.*'bigg'"):
        TransformerConfig.from_preset("bigg", **SMALL)


def test_position_names_are_the_table_of_schemes():
    assert POSITION_NAMES == tuple(POSITIONS)


def test_json_round_trip(tmp_path):
    config = TransformerConfig.from_preset(
        "tiny", **SMALL, position="rotary", gated=True, embedding_dropout=0.05
    )
    config.to_json(tmp_path / "model.json")
    assert TransformerConfig.from_json(tmp_path / "model.json") == config
    assert [path.name for path in tmp_path.iterdir()] == ["model.json"]  # nothing left beside it
    written = json.loads((tmp_path / "model.json").read_text())
    assert set(written) == {field.name for field in dataclasses.fields(config)}


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"num_layers": 2}', '{"no_such_field": 1}', "\udcff"],
    ids=["empty", "cut", "list", "null", "too few fields", "unknown field", "not UTF-8"],
)
def test_a_broken_file_is_one_sentence(tmp_path, text):
    path = tmp_path / "model.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match="model.json") as error:
        TransformerConfig.from_json(path)
    assert "\n" not in str(error.value)


def test_a_missing_file_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match="nowhere.json"):
        TransformerConfig.from_json(tmp_path / "nowhere.json")


@pytest.mark.case("57")
@pytest.mark.parametrize("kind", [np.int64, np.float32, keras.ops.convert_to_tensor])
def test_the_vocabulary_size_may_be_any_number_and_ends_plain(kind, tmp_path):
    config = TransformerConfig(source_vocabulary_size=kind(11), target_vocabulary_size=kind(11))
    assert type(config.source_vocabulary_size) is int and config.target_vocabulary_size == 11
    config.to_json(tmp_path / "model.json")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_layers": 0}, r"`num_layers` must be .*at least 1.*num_layers=0"),
        ({"num_layers": 2.5}, r"`num_layers`.*2\.5"),
        ({"num_layers": True}, r"`num_layers`.*True"),
        ({"num_layers": None}, r"`num_layers`.*None"),
        ({"hidden_dim": "512"}, r"`hidden_dim`.*'512'"),
        ({"dropout": 1.0}, r"`dropout`.*below 1.*1\.0"),
        ({"dropout": -0.1}, r"`dropout`.*-0\.1"),
        ({"dropout": None}, r"`dropout`.*None"),
        ({"dropout": float("nan")}, r"`dropout`.*nan"),
        ({"attention_dropout": "0.1"}, r"`attention_dropout`.*'0\.1'"),
        ({"attention_dropout": [0.1]}, r"`attention_dropout`.*\[0\.1\]"),
        ({"layer_norm_epsilon": 0.0}, r"`layer_norm_epsilon`.*above 0"),
        ({"layer_norm_epsilon": None}, r"`layer_norm_epsilon`.*None"),
        ({"activation": "rleu"}, r"`activation`.*relu, gelu, swish.*'rleu'"),
        ({"position": "sine"}, r"`position`.*sinusoidal.*'sine'"),
        ({"position": []}, r"`position`.*\[\]"),
        ({"tie_embeddings": True}, r"`tie_embeddings`.*three_way.*True"),
        ({"norm_first": "yes"}, r"`norm_first`.*true or false.*'yes'"),
        ({"norm_first": 1}, r"`norm_first`.*true or false.*1"),
        ({"source_vocabulary_size": 3}, r"`source_vocabulary_size`.*3"),
        ({"target_vocabulary_size": 10.5}, r"`target_vocabulary_size`.*10\.5"),
        ({"target_vocabulary_size": None}, r"`target_vocabulary_size`.*None"),
        ({"hidden_dim": 510}, r"`hidden_dim`.*`num_heads`.*510.*8"),
        ({"position": "rotary", "head_dim": 5}, r"rotary.*even.*5"),
        ({"position": "sinusoidal_halves", "hidden_dim": 9, "num_heads": 3}, r"even.*9"),
        ({"target_vocabulary_size": 12}, r"three_way.*11.*12"),
    ],
)
def test_a_wrong_field_is_refused_by_name_rule_and_value(fields, message):
    with pytest.raises(InputError, match=message) as error:
        TransformerConfig(**{**SMALL, **fields})
    assert "\n" not in str(error.value)


def test_sizes_that_do_not_divide_are_fine_with_heads_of_their_own():
    config = TransformerConfig(**SMALL, hidden_dim=510, head_dim=64, value_dim=32)
    assert count(dataclasses.replace(config, num_layers=1)) > 0


def test_the_config_is_frozen_and_equal_by_value():
    config = TransformerConfig(**SMALL)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.num_layers = 3
    assert config == TransformerConfig(**SMALL) and hash(config) == hash(TransformerConfig(**SMALL))

"""Frozen weights: to the last bit what they were, and no trouble to the optimizer."""

import numpy as np
import pytest

from tests.tiny_translator import make_batch, make_config
from tf_transformer import InputError, build_transformer
from training.compiling import compiled
from training.optimizers.freezing import count_frozen, freeze
from training.settings.sections import TrainingSettings


def paths(weights):
    return {weight.path for weight in weights}


@pytest.mark.parametrize(
    ("names", "is_frozen"),
    [
        (["encoder"], lambda path: path.startswith("encoder/")),
        (["*embedding"], lambda path: "_embedding/" in path),
        (["decoder/layer_0"], lambda path: path.startswith("decoder/layer_0/")),
        (["*/norm"], lambda path: "/norm/" in path),
        (
            ["*/bias", "encoder_embedding/table"],
            lambda path: path[-4:] == "bias" or path == "encoder_embedding/table",
        ),
        (["decoder/layer_[01]/*_attention"], lambda path: "decoder" in path and "tion/" in path),
    ],
)
def test_names_choose_weights(names, is_frozen):
    model = build_transformer(make_config())
    freeze(model, names)
    expected = {path for path in paths(model.weights) if is_frozen(path)}
    assert expected and paths(model.weights) - paths(model.trainable_weights) == expected
    sizes = {weight.path: np.asarray(weight).size for weight in model.weights}
    assert count_frozen(model) == sum(sizes[path] for path in expected)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            ["encoder", "encodr"],
            "'encodr'; there are encoder_embedding, decoder_embedding, encoder, ",
        ),
        (["enc"], "no layer is called 'enc'"),
        (["*/layer_1"], "decoder, decoder/layer_0 and those inside"),
        (["*"], r"leaves nothing to train: \*"),
    ],
)
def test_what_cannot_be_frozen_is_refused(names, message):
    with pytest.raises(InputError, match=message):
        freeze(build_transformer(make_config()), names)


@pytest.mark.parametrize("optimizer", ["adamw", "adafactor"])
def test_frozen_weights_stay_to_the_bit_and_have_no_state(optimizer):
    settings = TrainingSettings(
        optimizer=optimizer, warmup_steps=2, freeze=["encoder", "*/norm"], ema_decay=0.9
    )
    model = compiled(settings, make_config())
    before = {weight.path: np.array(weight) for weight in model.weights}
    model.fit(*make_batch(), epochs=3, verbose=0)
    for weight in model.weights:
        is_frozen = weight.path.startswith("encoder/") or "/norm/" in weight.path
        assert np.array_equal(weight, before[weight.path]) == is_frozen, weight.path
    for variable in model.optimizer.variables:
        assert "encoder_layer" not in variable.path and "norm" not in variable.path
    assert len(model.optimizer._model_variables_moving_average) == len(model.trainable_weights)

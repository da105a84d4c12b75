"""The left half of figure 1: every variant against the oracle, padding, Keras citizenship."""

import numpy as np
import pytest

from tests import oracle
from tests.layers.checks import check_layer
from tests.layers.variants import (
    FEW,
    VARIANTS,
    D,
    F,
    N,
    layer_parameters,
    setting,
    sizes,
    stack_parameters,
    with_positions,
)
from tests.weights import fill_with_random, layer_weights, stack_weights
from tf_transformer.layers import Encoder, EncoderLayer

B, S = 3, 6
LIVE = np.arange(S)[None] < np.array([[6], [3], [1]])


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def make_encoder(variant="the paper", num_layers=2, **arguments):
    encoder = Encoder(num_layers, **sizes(variant, **arguments))
    encoder.build((None, None, D))
    fill_with_random(encoder, 5)
    return encoder


@pytest.mark.parametrize("variant", VARIANTS)
def test_encoder_equals_the_oracle(variant):
    encoder, x = make_encoder(variant), draw(B, S, D)
    expected, seen = oracle.encoder(
        with_positions(x, encoder), LIVE, stack_weights(encoder), setting(variant)
    )
    output, weights = encoder.attend(x, LIVE)
    np.testing.assert_allclose(output, expected, atol=1e-5)
    np.testing.assert_array_equal(encoder(x, padding_mask=LIVE), output)
    for layer, layer_seen in zip(weights, seen, strict=True):
        np.testing.assert_allclose(layer, layer_seen["self"], atol=1e-5)


@pytest.mark.parametrize("norm_first", [False, True])
def test_encoder_layer_equals_the_oracle(norm_first):
    layer = EncoderLayer(num_heads=N, intermediate_dim=F, norm_first=norm_first)
    layer.build((None, None, D))
    fill_with_random(layer, 5)
    x, mask = draw(B, S, D), np.random.default_rng(1).random((B, S, S)) < 0.6
    how = oracle.Setting(norm_first=norm_first)
    expected, _ = oracle.block(x, layer_weights(layer), mask, how)
    np.testing.assert_allclose(layer(x, attention_mask=mask), expected, atol=1e-5)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(
    "variant", ["the paper", "relative positions", "rotary positions, pre-norm"]
)
def test_what_stands_at_pads_changes_nothing_at_live_places(variant, training):
    encoder = make_encoder(variant, dropout=0.1, attention_dropout=0.1, intermediate_dropout=0.1)
    before = draw(B, S, D)
    after = np.where(LIVE[..., None], before, before * 50.0 + 9.0)
    outputs = []
    for x in (before, after):
        for layer in encoder._flatten_layers():
            if hasattr(layer, "seed_generator"):
                layer.seed_generator.state.assign([3, 5])
        outputs.append(np.asarray(encoder(x, padding_mask=LIVE, training=training))[LIVE])
    np.testing.assert_array_equal(outputs[0], outputs[1])


@pytest.mark.parametrize("variant", FEW)
def test_more_padding_changes_nothing(variant):
    encoder, x = make_encoder(variant), draw(B, S, D)
    wide = np.concatenate([x, draw(B, 5, D, seed=1)], axis=1)
    wide_live = np.concatenate([LIVE, np.zeros((B, 5), bool)], axis=1)
    narrow = np.asarray(encoder(x, padding_mask=LIVE))
    np.testing.assert_allclose(
        np.asarray(encoder(wide, padding_mask=wide_live))[:, :S][LIVE], narrow[LIVE], atol=2e-6
    )


@pytest.mark.parametrize("variant", ["the paper", "pre-norm", "relative positions"])
def test_a_row_of_pads_alone_stays_finite_and_attends_to_nothing(variant):
    encoder = make_encoder(variant)
    live = LIVE.copy()
    live[1] = False
    output, weights = encoder.attend(draw(B, S, D), live)
    assert np.isfinite(np.asarray(output)).all()
    assert all(not np.asarray(layer)[1].any() for layer in weights)


def test_no_mask_is_a_mask_that_hides_nothing():
    encoder, x = make_encoder(), draw(B, S, D)
    whole = encoder(x, padding_mask=np.ones((B, S), bool))
    np.testing.assert_allclose(encoder(x), whole, atol=1e-6)


def test_each_dropout_rate_reaches_its_place():
    x, calm = draw(B, S, D), np.asarray(make_encoder()(draw(B, S, D)))
    rates = ["dropout", "embedding_dropout", "attention_dropout", "intermediate_dropout"]
    for rate in rates:
        encoder = make_encoder(**{rate: 0.4})
        np.testing.assert_array_equal(encoder(x, training=False), calm)
        assert np.abs(np.asarray(encoder(x, training=True)) - calm).max() > 1e-2, rate


@pytest.mark.case("03")
def test_a_base_encoder_layer_has_3_152_384_parameters():
    layer = EncoderLayer(num_heads=8, intermediate_dim=2048)
    layer.build((None, None, 512))
    attention = 4 * (512 * 512 + 512)
    feed_forward = 512 * 2048 + 2048 + 2048 * 512 + 512
    assert layer.count_params() == 3_152_384 == attention + feed_forward + 2 * 2 * 512


@pytest.mark.parametrize("variant", FEW)
def test_the_stack_is_a_good_keras_layer(variant, tmp_path):
    arguments = {"num_layers": 2, "dropout": 0.1, **sizes(variant)}
    check_layer(
        Encoder,
        arguments,
        {"x": draw(B, S, D), "padding_mask": LIVE},
        output_shape=(B, S, D),
        parameters=stack_parameters(variant, attentions=1, num_layers=2),
        directory=tmp_path,
    )


def test_the_layer_is_a_good_keras_layer(tmp_path):
    arguments = {"num_heads": N, "intermediate_dim": F, "position": "relative", "gated": True}
    parameters = layer_parameters("relative positions", 1) + D * F + F
    mask = np.broadcast_to(LIVE[:, None], (B, S, S)).copy()
    inputs = {"x": draw(B, S, D), "attention_mask": mask}
    check_layer(EncoderLayer, arguments, inputs, (B, S, D), parameters, tmp_path)


def test_a_wrong_width_is_refused_by_name():
    with pytest.raises(ValueError, match=r"(?s)12.*\(3, 6, 13\)"):
        make_encoder()(draw(B, S, D + 1))
    with pytest.raises(ValueError, match=r"(?s)self_attention.*num_heads.*13.*num_heads=3"):
        Encoder(1, num_heads=3, intermediate_dim=F)(draw(B, S, 13))

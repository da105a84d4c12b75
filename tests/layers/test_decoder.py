"""The right half of figure 1: oracle, masks, and that cached steps equal teacher forcing."""

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
from tf_transformer.layers import Decoder, DecoderLayer

B, T, S = 3, 5, 7
LIVE = np.arange(T)[None] < np.array([[5], [2], [4]])
SOURCE_LIVE = np.arange(S)[None] < np.array([[3], [7], [1]])


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def make_decoder(variant="the paper", num_layers=2, **arguments):
    decoder = Decoder(num_layers, **sizes(variant, **arguments))
    decoder.build((None, None, D), (None, None, D))
    fill_with_random(decoder, 6)
    return decoder


def same_dropout(decoder):
    for layer in decoder._flatten_layers():
        if hasattr(layer, "seed_generator"):
            layer.seed_generator.state.assign([3, 5])


X, SOURCE = draw(B, T, D), draw(B, S, D, seed=1)


@pytest.mark.parametrize("variant", VARIANTS)
def test_decoder_equals_the_oracle(variant):
    decoder = make_decoder(variant)
    placed = with_positions(X, decoder)
    expected, seen = oracle.decoder(
        placed, LIVE, SOURCE, SOURCE_LIVE, stack_weights(decoder), setting(variant)
    )
    output, weights = decoder.attend(X, SOURCE, LIVE, SOURCE_LIVE)
    np.testing.assert_allclose(output, expected, atol=1e-5)
    np.testing.assert_array_equal(
        decoder(X, SOURCE, padding_mask=LIVE, encoder_padding_mask=SOURCE_LIVE), output
    )
    for layer, layer_seen in zip(weights, seen, strict=True):
        np.testing.assert_allclose(layer.self_attention, layer_seen["self"], atol=1e-5)
        np.testing.assert_allclose(layer.cross_attention, layer_seen["cross"], atol=1e-5)


@pytest.mark.parametrize("norm_first", [False, True])
def test_decoder_layer_equals_the_oracle(norm_first):
    layer = DecoderLayer(num_heads=N, intermediate_dim=F, norm_first=norm_first)
    layer.build((None, None, D), (None, None, D))
    fill_with_random(layer, 5)
    random = np.random.default_rng(1)
    own, cross = random.random((B, T, T)) < 0.6, random.random((B, T, S)) < 0.6
    how = oracle.Setting(norm_first=norm_first)
    expected, _ = oracle.block(X, layer_weights(layer), own, how, SOURCE, cross)
    output = layer(X, SOURCE, self_attention_mask=own, cross_attention_mask=cross)
    np.testing.assert_allclose(output, expected, atol=1e-5)


# Cached decoding


@pytest.mark.parametrize("variant", VARIANTS)
def test_cached_steps_equal_teacher_forcing(variant):
    """Every position, the attention weights too, and two hypotheses a sentence."""
    decoder, other = make_decoder(variant), draw(B, T, D, seed=2)
    whole = [decoder.attend(x, SOURCE, None, SOURCE_LIVE) for x in (X, other)]
    source = decoder.start(SOURCE, SOURCE_LIVE)
    cache = decoder.empty_cache(2 * B)
    for index in range(T):
        x = np.stack([X[:, index], other[:, index]], axis=1)  # (B, K, D)
        output, cache, weights = decoder.step(x, cache, index, source)
        for beam, (expected, expected_weights) in enumerate(whole):
            np.testing.assert_allclose(output[:, beam], expected[:, index], atol=1e-5)
            for layer, layer_expected in zip(weights, expected_weights, strict=True):
                own = np.asarray(layer.self_attention)[beam::2, :, 0]  # rows are (B * K)
                full = np.asarray(layer_expected.self_attention)[:, :, index, : index + 1]
                np.testing.assert_allclose(own, full, atol=1e-5)
                np.testing.assert_allclose(
                    np.asarray(layer.cross_attention)[:, :, beam],
                    np.asarray(layer_expected.cross_attention)[:, :, index],
                    atol=1e-5,
                )


@pytest.mark.parametrize("variant", ["the paper", "relative positions", "rotary positions"])
def test_a_cache_of_fixed_size_equals_one_that_grows(variant):
    """Places that are not written yet are hidden, whatever they hold."""
    decoder = make_decoder(variant)
    source = decoder.start(SOURCE, SOURCE_LIVE)
    grown = decoder.empty_cache(B)
    fixed = [
        tuple(np.full((B, N, T + 2, side.shape[-1]), 7.0, "float32") for side in pair)
        for pair in grown
    ]
    for index in range(T):

        def write(cache, new, index=index):
            cache = np.array(cache)
            cache[:, :, index] = np.asarray(new)[:, :, 0]
            return cache

        seen = np.broadcast_to(np.arange(T + 2) <= index, (B, 1, T + 2))
        x = X[:, index : index + 1]
        expected, grown, _ = decoder.step(x, grown, index, source)
        output, fixed, _ = decoder.step(x, fixed, index, source, write, seen)
        np.testing.assert_allclose(output, expected, atol=1e-5)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_cached_steps_in_half_precision(policy):
    full, half = (
        make_decoder("relative positions"),
        make_decoder("relative positions", dtype=policy),
    )
    half.set_weights(full.get_weights())
    x, memory = X.astype(half.compute_dtype), SOURCE.astype(half.compute_dtype)
    whole = np.asarray(full(X, SOURCE, encoder_padding_mask=SOURCE_LIVE))
    cache, source = half.empty_cache(B), half.start(memory, SOURCE_LIVE)
    for index in range(T):
        output, cache, _ = half.step(x[:, index : index + 1], cache, index, source)
        np.testing.assert_allclose(
            np.asarray(output, "float32")[:, 0] / np.abs(whole).max(),
            whole[:, index] / np.abs(whole).max(),
            atol=2e-2,
        )


# Masks


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("variant", FEW)
def test_the_future_changes_nothing(variant, training):
    decoder = make_decoder(variant, dropout=0.1, attention_dropout=0.1, intermediate_dropout=0.1)
    for place in range(1, T):
        after = X.copy()
        after[:, place:] += 100.0 * after[:, place:] ** 2
        outputs = []
        for x in (X, after):
            same_dropout(decoder)
            output = decoder(x, SOURCE, encoder_padding_mask=SOURCE_LIVE, training=training)
            outputs.append(np.asarray(output))
        np.testing.assert_array_equal(outputs[0][:, :place], outputs[1][:, :place])
        assert np.abs(outputs[0][:, place] - outputs[1][:, place]).max() > 1e-3


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(
    "variant", ["the paper", "relative positions", "rotary positions, pre-norm"]
)
def test_what_stands_at_pads_changes_nothing_at_live_places(variant, training):
    decoder = make_decoder(variant, dropout=0.1, attention_dropout=0.1)
    dirty_x = np.where(LIVE[..., None], X, 50.0 * X + 9.0)
    dirty_source = np.where(SOURCE_LIVE[..., None], SOURCE, 50.0 * SOURCE - 9.0)
    outputs = []
    for x, source in ((X, SOURCE), (dirty_x, dirty_source)):
        same_dropout(decoder)
        masks = {"padding_mask": LIVE, "encoder_padding_mask": SOURCE_LIVE}
        outputs.append(np.asarray(decoder(x, source, training=training, **masks))[LIVE])
    np.testing.assert_array_equal(outputs[0], outputs[1])


@pytest.mark.case("11")
@pytest.mark.parametrize(
    ("source_length", "source_live", "target_length", "target_live"),
    [(20, 3, 20, 6), (20, 6, 20, 3), (9, 3, 20, 6), (20, 6, 9, 3)],
)
def test_cross_attention_has_the_mask_of_the_source(
    source_length, source_live, target_length, target_live
):
    decoder = make_decoder()
    live = np.arange(target_length)[None] < target_live
    source_mask = np.arange(source_length)[None] < source_live
    x, source = draw(1, target_length, D), draw(1, source_length, D, seed=1)
    output, weights = decoder.attend(x, source, live, source_mask)
    dirty = np.where(source_mask[..., None], source, 1e3)
    changed, _ = decoder.attend(x, dirty, live, source_mask)
    np.testing.assert_array_equal(np.asarray(output)[live], np.asarray(changed)[live])
    for layer in weights:
        cross, own = np.asarray(layer.cross_attention)[0], np.asarray(layer.self_attention)[0]
        assert (cross[..., :source_live] > 0).all() and not cross[..., source_live:].any()
        np.testing.assert_allclose(cross.sum(-1), 1.0, atol=1e-5)
        for t in range(target_length):
            seen = min(t + 1, target_live)
            assert (own[:, t, :seen] > 0).all() and not own[:, t, seen:].any()


@pytest.mark.parametrize("variant", ["the paper", "pre-norm", "relative positions"])
def test_an_empty_source_gives_finite_states_and_no_attention(variant):
    decoder = make_decoder(variant)
    output, weights = decoder.attend(X, SOURCE, LIVE, np.zeros((B, S), bool))
    assert np.isfinite(np.asarray(output)).all()
    assert all(not np.asarray(layer.cross_attention).any() for layer in weights)
    source = decoder.start(SOURCE, np.zeros((B, S), bool))
    step, _, _ = decoder.step(X[:, :1], decoder.empty_cache(B), 0, source)
    np.testing.assert_allclose(step[:, 0], np.asarray(output)[:, 0], atol=1e-5)


# Keras


@pytest.mark.case("03")
def test_a_base_decoder_layer_has_4_204_032_parameters():
    layer = DecoderLayer(num_heads=8, intermediate_dim=2048)
    layer.build((None, None, 512), (None, None, 512))
    attention = 4 * (512 * 512 + 512)
    feed_forward = 512 * 2048 + 2048 + 2048 * 512 + 512
    assert layer.count_params() == 4_204_032 == 2 * attention + feed_forward + 3 * 2 * 512


@pytest.mark.parametrize("variant", FEW)
def test_the_stack_is_a_good_keras_layer(variant, tmp_path):
    inputs = {
        "x": X,
        "encoder_output": SOURCE,
        "padding_mask": LIVE,
        "encoder_padding_mask": SOURCE_LIVE,
    }
    check_layer(
        Decoder,
        {"num_layers": 2, "dropout": 0.1, **sizes(variant)},
        inputs,
        output_shape=(B, T, D),
        parameters=stack_parameters(variant, attentions=2, num_layers=2),
        directory=tmp_path,
    )


def test_the_layer_is_a_good_keras_layer(tmp_path):
    arguments = {"num_heads": N, "intermediate_dim": F, "position": "relative", "gated": True}
    parameters = layer_parameters("relative positions", 2) + D * F + F
    inputs = {"x": X, "encoder_output": SOURCE}
    check_layer(DecoderLayer, arguments, inputs, (B, T, D), parameters, tmp_path)


def test_wrong_widths_are_refused_by_name():
    with pytest.raises(ValueError, match=r"(?s)12.*\(3, 5, 13\)"):
        make_decoder()(draw(B, T, D + 1), SOURCE)
    with pytest.raises(ValueError, match=r"(?s)12.*\(3, 7, 13\)"):
        make_decoder()(X, draw(B, S, D + 1))

"""Attention as an output: the second model over the same weights, and its two layers."""

import json

import keras
import numpy as np
import pytest

from tests import oracle
from tests.weights import fill_with_random, model_weights
from tf_transformer import TransformerConfig, build_attention_model, build_transformer
from tf_transformer.layers import Decoder, DecoderAttention, Encoder, EncoderAttention
from tf_transformer.model import embeddings_of

N, V = 3, 23
PAPER = {
    "source_vocabulary_size": V,
    "target_vocabulary_size": V,
    "num_layers": 2,
    "hidden_dim": 12,
    "num_heads": N,
    "intermediate_dim": 20,
    # Rates that would show if one of them were applied.
    "dropout": 0.3,
    "attention_dropout": 0.3,
    "intermediate_dropout": 0.3,
}
VARIANTS = {
    "the paper": {},
    "learned, pre-norm": {"position": "learned", "norm_first": True},
    "relative": {"position": "relative", "max_relative_distance": 2},
    "rotary, pre-norm": {"position": "rotary", "norm_first": True},
    "untied, 3 and 1 layers": {
        "source_vocabulary_size": 19,
        "tie_embeddings": "none",
        "num_layers": 3,
        "num_decoder_layers": 1,
    },
}
IDS = {
    "encoder_token_ids": np.array([[4, 9, 7, 11, 3, 0, 0], [5, 3, 0, 0, 0, 0, 0], [8] * 7]),
    "decoder_token_ids": np.array([[2, 14, 6, 8, 0], [2, 9, 0, 0, 0], [2, 4, 5, 6, 22]]),
}
SOURCE_LIVE, LIVE = IDS["encoder_token_ids"] != 0, IDS["decoder_token_ids"] != 0


def make_model(variant, **fields):
    model = build_transformer(TransformerConfig(**{**PAPER, **VARIANTS[variant], **fields}))
    # Not larger, or every softmax is 0 and 1 and any two agree.
    fill_with_random(model, 8, scale=0.2)
    return model


def arrays(outputs):
    return {name: np.asarray(weights) for name, weights in outputs.items()}


@pytest.fixture(scope="module", params=VARIANTS)
def variant(request):
    return request.param


@pytest.fixture(scope="module")
def model(variant):
    return make_model(variant)


@pytest.fixture(scope="module")
def attention(model):
    return build_attention_model(model)


@pytest.fixture(scope="module")
def weights(attention):
    return arrays(attention(IDS))


def test_shapes_are_layers_and_heads(variant, attention, weights):
    deep, shallow = (3, 1) if "3 and 1" in variant else (2, 2)
    assert {name: array.shape for name, array in weights.items()} == {
        "encoder": (3, deep, N, 7, 7),
        "decoder": (3, shallow, N, 5, 5),
        "cross": (3, shallow, N, 5, 7),
    }
    assert all(array.dtype == np.float32 for array in weights.values())
    assert attention.output["cross"].shape == (None, shallow, N, None, None)


def test_the_weights_equal_the_oracle(variant, model, weights):
    fields = {**PAPER, **VARIANTS[variant]}
    how = oracle.Setting(
        norm_first=fields.get("norm_first", False), position=fields.get("position", "sinusoidal")
    )
    named = model_weights(model)
    x, y = (
        oracle.add_positions(
            oracle.embed(IDS[f"{side}_token_ids"], named[f"{side}_table"]),
            how.position,
            named.get(f"{side}_positions"),
        )
        for side in ("encoder", "decoder")
    )
    memory, in_source = oracle.encoder(x, SOURCE_LIVE, named["encoder"], how)
    _, seen = oracle.decoder(y, LIVE, memory, SOURCE_LIVE, named["decoder"], how)
    expected = {
        "encoder": [layer["self"] for layer in in_source],
        "decoder": [layer["self"] for layer in seen],
        "cross": [layer["cross"] for layer in seen],
    }
    for name, layers in expected.items():
        stacked = np.stack(layers, axis=1)
        np.testing.assert_allclose(weights[name], stacked, atol=1e-5, err_msg=name)
        assert 0.02 < stacked[stacked > 0].std()  # the heads look somewhere, not everywhere


def test_rows_are_shared_out_over_what_may_be_seen(weights):
    keys = {"encoder": SOURCE_LIVE, "decoder": LIVE, "cross": SOURCE_LIVE}
    for name, live in keys.items():
        seen = np.broadcast_to(live[:, None, None, None, :], weights[name].shape)
        assert not weights[name][~seen].any(), name
        np.testing.assert_allclose(weights[name].sum(axis=-1), 1.0, atol=1e-5, err_msg=name)
        assert (weights[name] >= 0).all()
    later = np.triu(np.ones((5, 5), bool), k=1)
    assert not weights["decoder"][..., later].any()


def test_a_source_of_pads_alone_is_looked_at_by_nobody(attention):
    blank = {**IDS, "encoder_token_ids": np.zeros_like(IDS["encoder_token_ids"])}
    weights = arrays(attention(blank))
    assert not weights["encoder"].any() and not weights["cross"].any()
    np.testing.assert_allclose(weights["decoder"].sum(axis=-1), 1.0, atol=1e-5)


def test_cached_steps_give_the_same_weights(model, weights):
    source, target = embeddings_of(model)
    encoder, decoder = model.get_layer("encoder"), model.get_layer("decoder")
    states = encoder(source(IDS["encoder_token_ids"]), padding_mask=SOURCE_LIVE)
    context, cache = decoder.start(states, SOURCE_LIVE), decoder.empty_cache(3)
    for index in range(5):
        x = target.embed(IDS["decoder_token_ids"][:, index : index + 1])
        _, cache, step = decoder.step(x, cache, index, context)
        seen = LIVE[:, index]  # a step does not know pads in the target; decoding has none
        for number, layer in enumerate(step):
            own, cross = np.asarray(layer.self_attention), np.asarray(layer.cross_attention)
            np.testing.assert_allclose(
                own[seen, :, 0], weights["decoder"][seen, number, :, index, : index + 1], atol=1e-5
            )
            np.testing.assert_allclose(
                cross[seen, :, 0], weights["cross"][seen, number, :, index], atol=1e-5
            )


def test_dropout_changes_nothing(variant, model, attention, weights):
    rates = dict.fromkeys(("dropout", "attention_dropout", "intermediate_dropout"), 0.0)
    calm = make_model(variant, **rates)
    assert np.abs(np.asarray(model(IDS, training=True)) - np.asarray(model(IDS))).max() > 1e-2
    for others in (attention(IDS, training=True), build_attention_model(calm)(IDS)):
        for name, array in arrays(others).items():
            np.testing.assert_allclose(array, weights[name], atol=1e-6, err_msg=name)


def test_it_is_a_view_of_the_model(model, attention):
    assert {name: x.dtype for name, x in attention.input.items()} == {
        name: x.dtype for name, x in model.input.items()
    }
    own = {id(weight) for weight in model.weights}
    assert {id(weight) for weight in attention.weights} == own  # these very variables, each once
    assert attention.count_params() == model.count_params()


def test_it_follows_the_model():
    model = make_model("the paper")
    attention = build_attention_model(model)
    before = arrays(attention(IDS))
    model.get_layer("encoder").blocks[0].self_attention.query.kernel.assign(np.zeros((12, 12)))
    after = arrays(attention(IDS))
    assert np.abs(before["encoder"] - after["encoder"]).max() > 1e-2
    biased = model.get_layer("encoder").blocks[0].self_attention
    biased.query.bias.assign(np.zeros(12))
    even = arrays(attention(IDS))["encoder"][:, 0]  # no query prefers any key
    np.testing.assert_allclose(even[0, :, :, :5], 0.2, atol=1e-6)
    np.testing.assert_allclose(even[1, :, :, :2], 0.5, atol=1e-6)


def test_a_loaded_model_has_one_too(tmp_path):
    model = make_model("relative")
    expected = arrays(build_attention_model(model)(IDS))
    model.save(tmp_path / "model.keras")
    loaded = build_attention_model(keras.models.load_model(tmp_path / "model.keras"))
    build_attention_model(model).save(tmp_path / "attention.keras")
    saved = keras.models.load_model(tmp_path / "attention.keras")
    assert saved.count_params() == model.count_params()
    for outputs in (loaded(IDS), saved(IDS)):
        for name, array in arrays(outputs).items():
            np.testing.assert_array_equal(array, expected[name])


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_half_precision_stays_near_float32(policy):
    full = make_model("the paper")
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        half = make_model("the paper")
    finally:
        keras.config.set_dtype_policy(before)
    half.set_weights(full.get_weights())
    expected = arrays(build_attention_model(full)(IDS))
    for name, array in arrays(build_attention_model(half)(IDS)).items():
        assert array.dtype == np.float32
        np.testing.assert_allclose(array, expected[name], atol=2e-2, err_msg=name)
        np.testing.assert_allclose(array.sum(axis=-1), 1.0, atol=1e-5, err_msg=name)


# The layers alone

SIZES = {"num_heads": N, "intermediate_dim": 20, "position": "relative", "dropout": 0.1}
X = np.random.default_rng(0).normal(size=(2, 4, 12)).astype("float32")
MEMORY = np.random.default_rng(1).normal(size=(2, 6, 12)).astype("float32")


def encoder_attention():
    stack = Encoder(2, **SIZES)
    stack.build((None, None, 12))
    return EncoderAttention(stack), [X]


def decoder_attention():
    stack = Decoder(2, **SIZES)
    stack.build((None, None, 12), (None, None, 12))
    return DecoderAttention(stack), [X, MEMORY]


@pytest.mark.parametrize("make", [encoder_attention, decoder_attention])
def test_the_layers_survive_their_config(make):
    layer, inputs = make()
    fill_with_random(layer, 3)
    config = json.loads(json.dumps(layer.get_config()))
    copy = type(layer).from_config(config)
    assert copy.stack is not layer.stack
    assert json.loads(json.dumps(copy.get_config())) == config
    copy.set_weights(layer.get_weights())
    for ours, theirs in zip(layer(*inputs), copy(*inputs), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert copy.count_params() == layer.count_params() == layer.stack.count_params()


def test_the_encoder_layer_gives_the_output_on():
    layer, (x,) = encoder_attention()
    live = np.arange(4) < np.array([[4], [2]])
    output, weights = layer(x, padding_mask=live)
    np.testing.assert_array_equal(output, layer.stack(x, padding_mask=live))
    assert weights.shape == (2, 2, N, 4, 4)


@pytest.mark.parametrize("make", [encoder_attention, decoder_attention])
def test_shapes_are_known_symbolically(make):
    layer, inputs = make()
    symbolic = layer(*[keras.Input((None, 12)) for _ in inputs])
    for known, real in zip(symbolic, layer(*inputs), strict=True):
        assert len(known.shape) == len(real.shape) and known.dtype == real.dtype.name
        assert all(
            size in (None, found) for size, found in zip(known.shape, real.shape, strict=True)
        )

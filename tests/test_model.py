"""The whole of figure 1: every variant against the oracle, masks, cached decoding, precision."""

import contextlib
import functools
import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import oracle
from tests.weights import fill_with_random, model_weights
from tf_transformer import TransformerConfig, build_attention_model, build_transformer
from tf_transformer.config import POSITION_NAMES

V, SOURCE_V = 23, 19
BASE = {
    "source_vocabulary_size": V,
    "target_vocabulary_size": V,
    "num_layers": 2,
    "hidden_dim": 12,
    "num_heads": 3,
    "intermediate_dim": 20,
    "dropout": 0.0,
    "max_positions": 64,
}
TWO_VOCABULARIES = {"source_vocabulary_size": SOURCE_V, "tie_embeddings": "two_way"}
VARIANTS = {
    **{f"positions: {name}": {"position": name} for name in POSITION_NAMES},
    "pre-norm": {"norm_first": True},
    "two-way tied, two vocabularies": TWO_VOCABULARIES,
    "untied": {**TWO_VOCABULARIES, "tie_embeddings": "none"},
    "output bias, padded vocabulary": {"output_bias": True, "pad_vocabulary_to": 8},
    "untied, output bias, padded": {
        **TWO_VOCABULARIES,
        "tie_embeddings": "none",
        "output_bias": True,
        "pad_vocabulary_to": 8,
    },
    "more encoder than decoder": {"num_layers": 3, "num_decoder_layers": 1},
    "gated gelu, no attention biases": {
        "activation": "gelu",
        "gated": True,
        "attention_bias": False,
    },
    "own head sizes, epsilon": {"head_dim": 6, "value_dim": 5, "layer_norm_epsilon": 1e-3},
    "relative, pre-norm": {"position": "relative", "norm_first": True, "max_relative_distance": 2},
}
# Where running all of them would say no more.
FEW = [
    "positions: sinusoidal",
    "positions: rotary",
    "relative, pre-norm",
    "untied, output bias, padded",
]
ENCODER_IDS = np.array([[4, 9, 7, 11, 3, 0, 0], [5, 3, 0, 0, 0, 0, 0], [8, 6, 4, 9, 9, 17, 3]])
DECODER_IDS = np.array([[2, 14, 6, 8, 0], [2, 9, 0, 0, 0], [2, 4, 5, 6, 22]])
BOTH = {"encoder_token_ids": ENCODER_IDS, "decoder_token_ids": DECODER_IDS}
LIVE = DECODER_IDS != 0


def make_model(variant="positions: sinusoidal", **fields):
    model = build_transformer(TransformerConfig(**{**BASE, **VARIANTS[variant], **fields}))
    fill_with_random(model, 8)
    return model


@functools.cache
def shared_model(variant):
    """One model for all tests that only look at it."""
    return make_model(variant)


def run(model, encoder_ids=ENCODER_IDS, decoder_ids=DECODER_IDS, training=False):
    """Logits; the same dropout in every call."""
    for layer in model._flatten_layers():
        if hasattr(layer, "seed_generator"):
            layer.seed_generator.state.assign([3, 5])
    ids = {"encoder_token_ids": encoder_ids, "decoder_token_ids": decoder_ids}
    return np.asarray(model(ids, training=training))


@contextlib.contextmanager
def policy(name):
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(name)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def setting(variant):
    """The variant for the oracle."""
    fields = VARIANTS[variant]
    return oracle.Setting(
        norm_first=fields.get("norm_first", False),
        epsilon=fields.get("layer_norm_epsilon", 1e-6),
        activation=fields.get("activation", "relu"),
        position=fields.get("position", "sinusoidal"),
    )


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_model_equals_the_oracle(variant):
    model = shared_model(variant)
    weights = model_weights(model)
    expected = oracle.transformer(ENCODER_IDS, DECODER_IDS, weights, setting(variant))
    logits = run(model)
    assert logits.shape == (3, 5, V) and logits.dtype == np.float32
    # A logit is a sum of 12 products with embeddings of about 1, so 1e-5 of its size.
    np.testing.assert_allclose(logits, expected, atol=1e-5 * max(1.0, np.abs(expected).max()))


def test_the_interface():
    model = shared_model("positions: sinusoidal")
    assert set(model.input) == {"encoder_token_ids", "decoder_token_ids"}
    assert all(tensor.dtype == "int32" for tensor in model.input.values())
    assert model.output.dtype == "float32" and model.output_shape == (None, None, V)
    assert {"embedding", "encoder", "decoder"} <= {layer.name for layer in model.layers}
    names = {layer.name for layer in shared_model("untied").layers}
    assert {"encoder_embedding", "decoder_embedding", "encoder", "decoder"} <= names


def test_every_size_and_rate_reaches_both_stacks():
    fields = {
        "num_heads": 3,
        "head_dim": 6,
        "value_dim": 5,
        "intermediate_dim": 20,
        "activation": "gelu",
        "gated": True,
        "dropout": 0.11,
        "embedding_dropout": 0.12,
        "attention_dropout": 0.13,
        "intermediate_dropout": 0.14,
        "norm_first": True,
        "layer_norm_epsilon": 1e-4,
        "attention_bias": False,
    }
    config = TransformerConfig(**{**BASE, **fields, "num_layers": 3, "num_decoder_layers": 1})
    model = build_transformer(config)
    for name, depth in (("encoder", 3), ("decoder", 1)):
        stack = model.get_layer(name)
        held = stack.get_config()
        assert {field: held[field] for field in fields} == fields
        assert len(stack.blocks) == held["num_layers"] == depth
        block = stack.blocks[0]
        assert stack.input_dropout.rate == 0.12 and stack.last_norm.epsilon == 1e-4
        assert block.self_attention.weight_dropout.rate == 0.13
        assert block.feed_forward.inner_dropout.rate == 0.14
        assert block.feed_forward_residual.output_dropout.rate == 0.11
        assert block.feed_forward_residual.norm.epsilon == 1e-4
    assert model.get_layer("decoder").blocks[0].cross_attention.weight_dropout.rate == 0.13
    paper = build_transformer(TransformerConfig(**{**BASE, "dropout": 0.1}))
    assert paper.get_layer("encoder").input_dropout.rate == 0.1  # section 5.4: the same rate


# Attention as an output


@pytest.mark.parametrize("variant", FEW)
def test_the_attention_model_equals_the_oracle(variant):
    model, how = shared_model(variant), setting(variant)
    weights, live = model_weights(model), ENCODER_IDS != 0
    source = oracle.embed(ENCODER_IDS, weights["encoder_table"])
    source = oracle.add_positions(source, how.position, weights.get("encoder_positions"))
    target = oracle.embed(DECODER_IDS, weights["decoder_table"])
    target = oracle.add_positions(target, how.position, weights.get("decoder_positions"))
    memory, encoder_seen = oracle.encoder(source, live, weights["encoder"], how)
    _, seen = oracle.decoder(target, LIVE, memory, live, weights["decoder"], how)
    given = build_attention_model(model)(BOTH)
    assert set(given) == {"encoder", "decoder", "cross"}
    for layer in range(2):
        expected = {
            "encoder": encoder_seen[layer]["self"],
            "decoder": seen[layer]["self"],
            "cross": seen[layer]["cross"],
        }
        for name, values in expected.items():
            np.testing.assert_allclose(np.asarray(given[name])[:, layer], values, atol=1e-5)


def test_the_attention_model_has_the_weights_of_the_model(tmp_path):
    model = make_model(dropout=0.3, attention_dropout=0.3)
    attention = build_attention_model(model)
    assert {weight.path for weight in attention.trainable_weights} == {
        weight.path for weight in model.trainable_weights
    }
    before = np.asarray(attention(BOTH)["cross"])
    attention.save(tmp_path / "attention.keras")
    loaded = keras.models.load_model(tmp_path / "attention.keras")
    for name, values in attention(BOTH).items():
        np.testing.assert_array_equal(loaded(BOTH)[name], values)
    table = model.get_layer("embedding").table
    table.assign(np.asarray(table.value) * 2.0)
    assert np.abs(np.asarray(attention(BOTH)["cross"]) - before).max() > 1e-4


# Masks


def test_the_embedding_of_pad_changes_nothing_at_live_places():
    model = make_model("untied", tie_embeddings="none")
    before = run(model)
    for name in ("encoder_embedding", "decoder_embedding"):
        table = model.get_layer(name).table
        table.assign(np.concatenate([np.full((1, 12), 1e3), np.asarray(table.value)[1:]]))
    np.testing.assert_array_equal(run(model)[LIVE], before[LIVE])


@pytest.mark.case("11")
@pytest.mark.parametrize("variant", FEW)
def test_more_padding_and_other_rows_change_nothing(variant):
    model = shared_model(variant)
    logits = run(model)
    wide = run(model, np.pad(ENCODER_IDS, ((0, 0), (0, 6))), np.pad(DECODER_IDS, ((0, 0), (0, 3))))
    scale = np.abs(logits).max()
    np.testing.assert_allclose(wide[:, :5][LIVE] / scale, logits[LIVE] / scale, atol=2e-6)
    alone = run(model, ENCODER_IDS[1:2, :2], DECODER_IDS[1:2, :2])
    np.testing.assert_allclose(alone[0] / scale, logits[1, :2] / scale, atol=2e-6)


@pytest.mark.case("07")
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("variant", FEW)
def test_a_future_token_changes_no_earlier_logit(variant, training):
    rates = {"dropout": 0.1, "attention_dropout": 0.1, "intermediate_dropout": 0.1}
    model = make_model(variant, **rates)
    place = 3
    changed = DECODER_IDS.copy()
    changed[:, place] = [15, 16, 17]
    before, after = (
        run(model, decoder_ids=ids, training=training) for ids in (DECODER_IDS, changed)
    )
    np.testing.assert_array_equal(before[:, :place], after[:, :place])
    assert np.abs(before[:, place:] - after[:, place:]).max() > 1e-3


def test_training_means_dropout():
    model = make_model(dropout=0.3)
    assert np.abs(run(model, training=True) - run(model)).max() > 1e-2
    np.testing.assert_array_equal(run(make_model(), training=True), run(make_model()))


def test_a_source_of_pads_alone_gives_finite_logits():
    for variant in ("positions: sinusoidal", "relative, pre-norm"):
        assert np.isfinite(run(shared_model(variant), np.zeros_like(ENCODER_IDS))).all()


# Cached decoding


@pytest.mark.parametrize("variant", VARIANTS)
def test_step_by_step_equals_teacher_forcing(variant):
    model = shared_model(variant)
    logits = run(model)
    names = {layer.name for layer in model.layers}
    source = model.get_layer("embedding" if "embedding" in names else "encoder_embedding")
    target = model.get_layer("embedding" if "embedding" in names else "decoder_embedding")
    encoder, decoder = model.get_layer("encoder"), model.get_layer("decoder")
    live = ENCODER_IDS != 0
    context = decoder.start(encoder(source(ENCODER_IDS), padding_mask=live), live)
    cache, kernel = decoder.empty_cache(3), target.output_kernel()
    for index in range(5):
        x = target.embed(DECODER_IDS[:, index : index + 1])
        states, cache, _ = decoder.step(x, cache, index, context)
        step = np.asarray(target.logits(states, kernel))[:, 0]
        seen = LIVE[:, index]  # a step does not know pads in the target; decoding has none
        np.testing.assert_allclose(
            step[seen], logits[seen, index], atol=1e-5 * max(1.0, np.abs(logits).max())
        )


# Tables


def count(model):
    return sum(math.prod(weight.shape) for weight in model.weights if weight.dtype == "float32")


def test_tied_tables_are_one():
    one, two = make_model(), shared_model("two-way tied, two vocabularies")
    none = shared_model("untied")
    assert count(two) - count(one) == SOURCE_V * 12
    assert count(none) - count(two) == V * 12
    assert sum("embedding" in weight.path for weight in one.weights) == 1


def test_one_step_of_training_moves_a_shared_table_from_all_three_uses():
    model = make_model()
    table = model.get_layer("embedding").table
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(BOTH) ** 2)
    gradient = tape.gradient(loss, table.value)
    assert not isinstance(gradient, tf.IndexedSlices)  # the projection moves every row
    moved = np.abs(np.asarray(gradient)).max(axis=1) > 0
    assert moved.all()


@pytest.mark.case("05")
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("ties", ["three_way", "none"])
def test_a_fresh_model_starts_near_ln_of_the_vocabulary(ties, norm_first):
    size = 2_000
    config = TransformerConfig.from_preset(
        "base",
        source_vocabulary_size=size,
        target_vocabulary_size=size,
        hidden_dim=128,
        intermediate_dim=256,
        tie_embeddings=ties,
        norm_first=norm_first,
    )
    ids = np.random.default_rng(0).integers(4, size, (4, 12))
    model = build_transformer(config)
    logits = np.asarray(model({"encoder_token_ids": ids, "decoder_token_ids": ids}))
    labels = np.random.default_rng(1).integers(4, size, (4, 12))
    loss = oracle.label_smoothed_cross_entropy(logits, labels, 0.0).mean()
    assert abs(loss - math.log(size)) < 1.5


@pytest.mark.case("05")
def test_a_fresh_base_model_starts_near_10_52():
    config = TransformerConfig(source_vocabulary_size=37_000, target_vocabulary_size=37_000)
    model = build_transformer(config)
    random = np.random.default_rng(0)
    source, target, labels = (random.integers(4, 37_000, (2, 8)) for _ in range(3))
    logits = np.asarray(model({"encoder_token_ids": source, "decoder_token_ids": target}))
    loss = oracle.label_smoothed_cross_entropy(logits, labels, 0.0).mean()
    assert abs(loss - 10.52) < 1.5


# Half precision


@pytest.mark.case("13")
@pytest.mark.parametrize("variant", ["positions: sinusoidal", "pre-norm", "positions: relative"])
@pytest.mark.parametrize("name", ["mixed_float16", "mixed_bfloat16"])
def test_half_precision_stays_near_float32(name, variant):
    full = make_model(variant, hidden_dim=24, intermediate_dim=32)
    for stack in ("encoder", "decoder"):
        for block in full.get_layer(stack).blocks:
            dense = block.self_attention.query
            dense.kernel.assign(np.asarray(dense.kernel.value) * 12.0)
    attention = full.get_layer("encoder").blocks[0].self_attention
    x = full.get_layer("embedding")(ENCODER_IDS)
    query, (key, _) = attention.project_query(x), attention.project_key_value(x)
    scores = np.asarray(query) @ np.asarray(key).swapaxes(-1, -2) / math.sqrt(8)
    assert scores.max() > 50 and scores.min() < -50
    with policy(name):
        half = build_transformer(
            TransformerConfig(
                **{**BASE, **VARIANTS[variant], "hidden_dim": 24, "intermediate_dim": 32}
            )
        )
    half.set_weights(full.get_weights())
    assert half.get_layer("encoder").compute_dtype == name.removeprefix("mixed_")
    losses, probabilities = [], []
    for model in (full, half):
        with tf.GradientTape() as tape:
            logits = model(BOTH, training=True)
            nll = tf.nn.sparse_softmax_cross_entropy_with_logits(DECODER_IDS, logits)
            loss = tf.reduce_mean(nll[LIVE])
        assert logits.dtype == tf.float32
        for weight, gradient in zip(
            model.trainable_variables, tape.gradient(loss, model.trainable_variables), strict=True
        ):
            assert np.isfinite(np.asarray(tf.convert_to_tensor(gradient))).all(), weight.path
        losses.append(float(loss))
        probabilities.append(np.asarray(tf.nn.softmax(logits))[LIVE])
    assert abs(losses[1] - losses[0]) < 2e-2 * losses[0]
    if name == "mixed_float16":
        np.testing.assert_allclose(probabilities[1], probabilities[0], atol=2e-2)


@pytest.mark.case("13")
@pytest.mark.parametrize("name", ["mixed_float16", "mixed_bfloat16"])
def test_one_training_step_in_half_precision_is_finite(name):
    with policy(name):
        model = make_model(dropout=0.1, num_layers=1)
        model.compile(
            "adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)
        )
    before = model.get_weights()
    history = model.fit(BOTH, DECODER_IDS, epochs=2, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    assert all(np.isfinite(weight).all() for weight in model.get_weights())
    assert any((a != b).any() for a, b in zip(before, model.get_weights(), strict=True))


@pytest.mark.parametrize("position", ["sinusoidal", "sinusoidal_halves", "rotary", "relative"])
@pytest.mark.parametrize("name", ["mixed_float16", "mixed_bfloat16"])
def test_positions_past_2000_in_half_precision(name, position):
    fields = {**BASE, "position": position, "num_layers": 1}
    full = build_transformer(TransformerConfig(**fields))
    with policy(name):
        half = build_transformer(TransformerConfig(**fields))
    half.set_weights(full.get_weights())
    source = np.random.default_rng(0).integers(4, V, (1, 2_040))
    target = np.random.default_rng(1).integers(4, V, (1, 6))
    expected = run(full, source, target)
    np.testing.assert_allclose(run(half, source, target), expected, atol=5e-2)
    encoder_full, encoder_half = (model.get_layer("encoder") for model in (full, half))
    x = full.get_layer("embedding")(source)
    states = np.asarray(encoder_full(x))[0, 2_000:]
    rounded = np.asarray(encoder_half(x), "float32")[0, 2_000:]
    error = np.sqrt(np.mean((rounded - states) ** 2) / np.mean(states**2))
    assert error < 2e-2


# What is wrong is said


def test_ids_past_the_vocabulary_are_refused():
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=r"23|indices"):
        run(make_model(), ENCODER_IDS, np.array([[2, 4, 23, 0, 0]] * 3))


def test_it_learns():
    """A copy task that a model without working attention can't solve."""
    keras.utils.set_random_seed(1)
    model = build_transformer(TransformerConfig(**{**BASE, "hidden_dim": 48, "num_layers": 1}))
    model.compile(
        keras.optimizers.Adam(5e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    words = np.random.default_rng(0).integers(4, V, (1_024, 5))
    shifted = np.pad(words, ((0, 0), (1, 0)), constant_values=2)[:, :-1]
    inputs = {"encoder_token_ids": words, "decoder_token_ids": shifted}
    model.fit(inputs, words, epochs=12, batch_size=64, verbose=0)
    accuracy = (np.asarray(model(inputs)).argmax(-1) == words).mean()
    assert accuracy > 0.9

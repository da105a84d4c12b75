"""What is saved here opens in a process that only imports the package, exactly as it was."""

import json
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from tests.weights import fill_with_random
from tf_transformer import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    FeedForward,
    MultiHeadAttention,
    TokenEmbedding,
    TransformerConfig,
    build_transformer,
)
from tf_transformer.layers.positions import LearnedPositions, SinusoidalHalves, SinusoidalPositions
from training.objective.losses import SmoothedCrossEntropy
from training.objective.metrics import Perplexity, TokenAccuracy, TokenNLL
from training.optimizers.adafactor import Adafactor
from training.optimizers.optimizer import FusedAdam, FusedAdamW
from training.optimizers.schedule import (
    ConstantRate,
    CosineDecay,
    InverseSquareRoot,
    LinearDecay,
    TransformerSchedule,
)

D, V = 12, 23
SIZES = {"num_heads": 3, "intermediate_dim": 20}
LAYERS = {
    "attention": lambda: MultiHeadAttention(3, dropout=0.1),
    "attention, relative": lambda: MultiHeadAttention(3, position="relative"),
    "attention, rotary": lambda: MultiHeadAttention(3, position="rotary", use_bias=False),
    "feed-forward": lambda: FeedForward(20),
    "feed-forward, gated": lambda: FeedForward(20, activation="swish", gated=True),
    "sinusoidal": lambda: SinusoidalPositions(),
    "halves": lambda: SinusoidalHalves(),
    "learned": lambda: LearnedPositions(30),
    "encoder layer": lambda: EncoderLayer(**SIZES, position="relative"),
    "decoder layer": lambda: DecoderLayer(**SIZES, norm_first=True),
    "encoder": lambda: Encoder(2, **SIZES, position="learned", norm_first=True),
    "encoder, relative": lambda: Encoder(2, **SIZES, position="relative"),
    "decoder": lambda: Decoder(2, **SIZES, position="sinusoidal"),
    "decoder, rotary": lambda: Decoder(2, **SIZES, position="rotary", gated=True),
}
TWO_WAY = {"tie_embeddings": "two_way", "source_vocabulary_size": 19}
MODELS = {
    "the paper": {},
    "pre-norm, relative": {"norm_first": True, "position": "relative"},
    "learned, gated, bias": {"position": "learned", "gated": True, "output_bias": True},
    "two-way, rotary": {**TWO_WAY, "position": "rotary", "pad_vocabulary_to": 8},
    "untied": {**TWO_WAY, "tie_embeddings": "none", "num_decoder_layers": 1},
}
BASE = {
    "source_vocabulary_size": V,
    "target_vocabulary_size": V,
    "num_layers": 2,
    "hidden_dim": D,
    "num_heads": 3,
    "intermediate_dim": 20,
    "dropout": 0.0,
}
IDS = {
    "encoder_token_ids": np.array([[4, 9, 7, 11, 3, 0], [5, 3, 0, 0, 0, 0]]),
    "decoder_token_ids": np.array([[2, 14, 6, 8], [2, 9, 0, 0]]),
}
LABELS = np.array([[14, 6, 8, 3], [9, 3, 0, 0]])
EMBEDDED, EMBEDDED_LABELS = {"ids": np.array([[4, 9, 0]])}, np.array([[9, 7, 0]])

EMA = {"use_ema": True, "ema_momentum": 0.9}
OPTIMIZERS = {
    "adam": lambda: FusedAdam(InverseSquareRoot(0.01, 2), beta_2=0.98, **EMA),
    "adamw": lambda: FusedAdamW(CosineDecay(0.01, 2, 9), weight_decay=0.3, global_clipnorm=1.0),
    "adafactor": lambda: Adafactor(LinearDecay(0.01, 2, 9), clip_threshold=0.5, **EMA),
    "adafactor, absolute": lambda: Adafactor(ConstantRate(0.01, 2), relative_step=False),
    "loss scale": lambda: keras.optimizers.LossScaleOptimizer(FusedAdamW(CosineDecay(0.1, 2, 9))),
}


def layer_model(layer):
    """Vectors through a layer; one that takes two gets the same twice."""
    x = keras.Input((None, D), name="x")
    twice = isinstance(layer, (MultiHeadAttention, DecoderLayer, Decoder))
    return keras.Model({"x": x}, layer(x, x) if twice else layer(x))


def embedding_model():
    """Ids to rows and back to logits, by one table."""
    ids = keras.Input((None,), dtype="int32", name="ids")
    table = TokenEmbedding(V, D, output_bias=True)
    return keras.Model({"ids": ids}, table(table(ids), reverse=True))


def save(directory, model, inputs):
    directory.mkdir()
    fill_with_random(model, 4)
    np.savez(directory / "inputs.npz", **inputs)
    np.save(directory / "answer.npy", np.asarray(model(inputs)))
    model.save(directory / "model.keras")
    return model


def trained_model():
    model = build_transformer(TransformerConfig(**BASE))
    fill_with_random(model, 4)
    model.compile(
        keras.optimizers.Adam(TransformerSchedule(D, 10), beta_2=0.98, epsilon=1e-9),
        SmoothedCrossEntropy(0.1),
        metrics=[TokenNLL(), Perplexity(), TokenAccuracy()],
    )
    for _ in range(3):
        model.train_on_batch(IDS, LABELS)
    return model


def save_trained(directory, model, inputs, labels):
    directory.mkdir()
    np.savez(directory / "inputs.npz", **inputs)
    np.save(directory / "labels.npy", labels)
    np.save(directory / "answer.npy", np.asarray(model(inputs)))
    model.save(directory / "model.keras")
    return model


def model_trained_by(optimizer):
    model = embedding_model()
    fill_with_random(model, 4)
    model.compile(optimizer, SmoothedCrossEntropy(0.1), jit_compile=False)
    for _ in range(3):
        model.train_on_batch(EMBEDDED, EMBEDDED_LABELS)
    return model


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Everything saved, one process that loads it all, and its report."""
    root = tmp_path_factory.mktemp("saved")
    models = {}
    x = np.random.default_rng(0).normal(size=(2, 5, D)).astype("float32")
    for name, make in LAYERS.items():
        models[name] = save(root / name, layer_model(make()), {"x": x})
    models["embedding"] = save(root / "embedding", embedding_model(), EMBEDDED)
    for name, fields in MODELS.items():
        config = TransformerConfig(**{**BASE, **fields})
        models[name] = save(root / name, build_transformer(config), IDS)
        models[name].save_weights(root / name / "model.weights.h5")
        config.to_json(root / name / "model.json")
    models["trained"] = save_trained(root / "trained", trained_model(), IDS, LABELS)
    for name, make in OPTIMIZERS.items():
        model = model_trained_by(make())
        models[name] = save_trained(root / name, model, EMBEDDED, EMBEDDED_LABELS)

    tests = Path(__file__).parent
    environment = {**os.environ, "PYTHONPATH": str(tests.parent)}
    script = str(tests / "load_in_fresh_process.py")
    done = subprocess.run(
        [sys.executable, script, str(root)],
        env=environment,
        cwd=root,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    return root, models, json.loads((root / "report.json").read_text()), done.stderr


@pytest.mark.case("55")
@pytest.mark.case("57")
@pytest.mark.parametrize("name", [*LAYERS, "embedding", *MODELS, "trained", *OPTIMIZERS])
def test_keras_file_opens_with_the_same_answer_and_variables(saved, name):
    _, models, report, _ = saved
    assert report[name]["difference"] == 0.0
    assert report[name]["parameters"] == models[name].count_params()
    assert report[name]["paths"] == sorted(weight.path for weight in models[name].weights)


@pytest.mark.case("55")
@pytest.mark.parametrize("name", MODELS)
def test_weights_open_in_a_model_from_its_json(saved, name):
    assert saved[2][name]["weights"]["difference"] == 0.0


def test_loading_says_nothing_of_layers_without_weights(saved):
    assert "never built" not in saved[3] and "UserWarning" not in saved[3]


@pytest.mark.case("17")
@pytest.mark.parametrize("name", ["trained", *OPTIMIZERS])
def test_the_schedule_goes_on_where_it_was(saved, name):
    report, optimizer = saved[2][name], saved[1][name].optimizer
    assert report["iterations"] == 3
    schedule = getattr(optimizer, "inner_optimizer", optimizer)._learning_rate
    expected = [float(schedule(step)) for step in (0, 3, 4_000)]
    np.testing.assert_allclose(report["rates"], expected, rtol=0, atol=1e-12)


@pytest.mark.case("17")
@pytest.mark.parametrize("name", ["trained", *OPTIMIZERS])
def test_the_next_step_of_training_is_the_same(saved, name):
    """Shared tables stay shared; the optimizer keeps its moments, averages and what decays."""
    root, models, _, _ = saved
    model = models[name]
    batch = (IDS, LABELS) if name == "trained" else (EMBEDDED, EMBEDDED_LABELS)
    model.train_on_batch(*batch)
    with np.load(root / name / "after_training.npz") as arrays:
        theirs = list(arrays.values())
    ours = [np.asarray(variable) for variable in (*model.weights, *model.optimizer.variables)]
    for mine, loaded in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(loaded, mine, atol=1e-7)


def test_the_losses_may_be_the_first_import():
    """The package registers them; they import the package."""
    code = "from training.objective.losses import SmoothedCrossEntropy"
    root = Path(__file__).parent.parent
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2_000:]


@pytest.mark.case("57")
@pytest.mark.parametrize("name", LAYERS)
def test_every_layer_is_rebuilt_from_its_json(name):
    layer = LAYERS[name]()
    config = json.loads(json.dumps(keras.saving.serialize_keras_object(layer)))
    again = keras.saving.deserialize_keras_object(config)
    assert type(again) is type(layer)
    assert json.loads(json.dumps(again.get_config())) == config["config"]

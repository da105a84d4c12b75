"""Beginning with another run's weights: by name, by piece, and never needed again."""

import dataclasses
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest

from tests.tiny_run import PAIRS, VALID, write_corpus
from tests.tiny_translator import ENGLISH, FRENCH
from tests.training.test_train import assert_equal_weights, stopped_by, weights_in
from tests.weights import fill_with_random
from tf_transformer import InputError, TransformerConfig, Translator, build_transformer
from tf_transformer.tokenizers import SentencePieceTokenizer
from training.keeping.run_directory import RECIPE_FILE
from training.keeping.warm_start import warm_start
from training.recipe import load_recipe

MORE = ["le chien dort dans le jardin .", "the dog eats the bread , the cat sleeps ."]
TIES = {
    "three_way": dict(tie_embeddings="three_way", output_bias=True, pad_vocabulary_to=8),
    "two_way": dict(tie_embeddings="two_way"),
    "none": dict(tie_embeddings="none", output_bias=True, pad_vocabulary_to=8),
}


def learn(ties, texts, sizes):
    """Source and target tokenizer; one where the model has one table."""
    sides = ([*FRENCH, *texts], [*ENGLISH, *texts])
    if ties == "three_way":
        sides = ([*sides[0], *sides[1]],)
    made = [
        SentencePieceTokenizer.train(side, size, hard_vocab_limit=True)
        for side, size in zip(sides, sizes, strict=False)
    ]
    return made[0], made[-1]


def sizes_for(ties, tokenizers, **fields):
    return TransformerConfig(
        source_vocabulary_size=tokenizers[0].vocabulary_size,
        target_vocabulary_size=tokenizers[1].vocabulary_size,
        **{**dict(num_layers=1, hidden_dim=16, num_heads=2, intermediate_dim=32), **TIES[ties]},
        **fields,
    )


def a_run(folder: Path, ties="two_way", **fields):
    """A finished run with random weights: its directory, tokenizers and model."""
    tokenizers = learn(ties, [], (55, 45))
    config = sizes_for(ties, tokenizers, **fields)
    model = build_transformer(config)
    fill_with_random(model, 7)
    Translator(model, *tokenizers).save(folder, config)
    return folder, tokenizers, model


def by_path(model):
    return {weight.path: np.array(weight) for weight in model.weights}


@pytest.mark.parametrize("ties", TIES)
def test_rows_follow_their_pieces_into_another_vocabulary(ties, tmp_path):
    folder, olds, old_model = a_run(tmp_path / "old", ties)
    news = learn(ties, MORE, (62, 50))
    config = sizes_for(ties, news)
    model = build_transformer(config)
    drawn, old = by_path(model), by_path(old_model)
    said = warm_start(model, config, news, folder, seed=1)
    after = by_path(model)

    tables = {path for path in after if "embedding" in path}
    assert len(tables) == {"three_way": 2, "two_way": 2, "none": 4}[ties]
    for path in after.keys() - tables:
        np.testing.assert_array_equal(after[path], old[path], err_msg=path)
    for path in tables:
        side = 0 if path.startswith("encoder") else 1
        a, b, c = (
            x.T if "projection" in path else x for x in (after[path], old[path], drawn[path])
        )
        pieces, places = news[side].vocabulary(), {}
        for place, piece in enumerate(olds[side].vocabulary()):
            places[piece] = place
        known = [n for n, piece in enumerate(pieces) if piece in places]
        moved = [places[pieces[n]] for n in known]
        assert known != moved and {0, 1, 2, 3} <= set(known)
        np.testing.assert_array_equal(a[known], b[moved], err_msg=path)
        new = np.setdiff1d(np.arange(len(pieces)), known)
        real = b[4 : olds[side].vocabulary_size].astype("float64")
        assert len(new) > 5
        assert np.all(np.abs(a[new] - real.mean(0)) < 0.6 * real.std(0))  # six deviations
        assert len(np.unique(a[new], axis=0)) == len(new)
        np.testing.assert_array_equal(a[len(pieces) :], c[len(pieces) :])
        assert f"{len(known)} of {len(pieces)} pieces are known, {len(new)} new" in said
    assert str(folder / "model.weights.h5") in said


def test_the_same_vocabulary_gives_the_same_model(tmp_path):
    folder, tokenizers, old_model = a_run(tmp_path / "old")
    config = sizes_for("two_way", tokenizers, dropout=0.4, attention_dropout=0.1)
    model = build_transformer(config)
    said = warm_start(model, config, tokenizers, folder, seed=1)
    assert_equal_weights(by_path(model), by_path(old_model))
    assert "55 of 55 pieces are known, 0 new; 45 of 45" in said


@pytest.mark.filterwarnings("ignore:Skipping nested container")
def test_a_weight_file_of_no_run_is_taken_by_its_shapes(tmp_path):
    folder, tokenizers, old_model = a_run(tmp_path / "old")
    file = tmp_path / "taken.weights.h5"
    shutil.move(folder / "model.weights.h5", file)
    config = sizes_for("two_way", tokenizers)
    model = build_transformer(config)
    assert "taken for the same pieces" in warm_start(model, config, tokenizers, file, seed=1)
    assert_equal_weights(by_path(model), by_path(old_model))
    wider = dataclasses.replace(config, hidden_dim=32)
    with pytest.raises(InputError, match="taken.weights.h5 does not hold the weights"):
        warm_start(build_transformer(wider), wider, tokenizers, file, seed=1)


@pytest.mark.parametrize(
    ("field", "value", "was"),
    [
        ("hidden_dim", 32, 16),
        ("num_decoder_layers", 2, 1),
        ("norm_first", True, False),
        ("head_dim", 4, 8),
        ("position", "relative", "sinusoidal"),
        ("tie_embeddings", "none", "two_way"),
    ],
)
def test_another_model_is_refused_by_name(tmp_path, field, value, was):
    folder, tokenizers, _ = a_run(tmp_path / "old")
    config = dataclasses.replace(sizes_for("two_way", tokenizers), **{field: value})
    model = build_transformer(config)
    before = by_path(model)
    for origin in (folder, folder / "model.weights.h5"):
        with pytest.raises(InputError, match=f"its {field} is {was!r}, not {value!r}"):
            warm_start(model, config, tokenizers, origin, seed=1)
    assert_equal_weights(by_path(model), before)


def test_what_is_written_out_is_not_another_model(tmp_path):
    folder, tokenizers, _ = a_run(tmp_path / "old")
    config = sizes_for(
        "two_way", tokenizers, num_decoder_layers=1, head_dim=8, value_dim=8, max_positions=99
    )
    warm_start(build_transformer(config), config, tokenizers, folder, seed=1)


def test_what_is_not_there_is_refused(tmp_path):
    _, tokenizers, _ = a_run(tmp_path / "old")
    config = sizes_for("two_way", tokenizers)
    model = build_transformer(config)
    (tmp_path / "empty").mkdir()
    for origin, message in (("no", "there is no run or weight file .*no"), ("empty", "is no run")):
        with pytest.raises(InputError, match=message):
            warm_start(model, config, tokenizers, tmp_path / origin, seed=1)


# Whole runs.


SETTINGS = (
    "training.max_steps=6",
    "training.optimizer=adamw",
    "training.schedule=cosine",
    "training.learning_rate=0.01",
    "training.warmup_steps=2",
    "training.decay_steps=6",
    "training.ema_decay=0.9",
    "training.freeze=encoder/layer_0",
    "model.dropout=0.3",
    "tokenizer.vocabulary_size=55",
)


def test_a_run_on_other_text_begins_with_another_and_then_stands_alone(tiny_run, tmp_path):
    """With all that a recipe may name; in pieces it is the unbroken run to the bit."""
    place = tiny_run.place
    data = write_corpus(tmp_path / "data", PAIRS[30:], VALID)
    old = tmp_path / "old"
    shutil.copytree(tiny_run.run, old)
    settings = (*SETTINGS, f"training.warm_start={old}")
    said = place.train(tmp_path / "whole", *settings, data=data)
    assert f"Begins with the weights of {old / 'model.weights.h5'}; " in said
    assert ", 0 new" not in said and " of them frozen." in said
    assert load_recipe(tmp_path / "whole" / RECIPE_FILE).training.warm_start == str(old)

    pieces = tmp_path / "pieces"
    with stopped_by(signal.SIGINT, 1):
        place.train(pieces, *settings, data=data)
    states = sorted(path.name for path in (pieces / "checkpoints/state").iterdir())
    assert states == ["step-0.npz", "step-1.npz"]
    (pieces / "checkpoints/state/step-1.npz").unlink()  # as if killed before the first save
    shutil.rmtree(old)
    said = place.train(pieces, *settings, data=data)
    assert "Begins with" not in said
    whole, mended = (weights_in(tmp_path / run / "model.weights.h5") for run in ("whole", "pieces"))
    assert_equal_weights(mended, whole)
    frozen = weights_in(tiny_run.run / "model.weights.h5")
    for name, values in whole.items():
        same = values.shape == frozen[name].shape and np.array_equal(values, frozen[name])
        assert same == name.startswith("layers/encoder/blocks/"), name


def test_a_warm_start_that_is_refused_writes_nothing(tiny_run, tmp_path):
    setting = f"training.warm_start={tiny_run.run}"
    with pytest.raises(InputError, match="its hidden_dim is 16, not 32"):
        tiny_run.place.train(tmp_path / "run", setting, "model.hidden_dim=32")
    assert not (tmp_path / "run").exists()

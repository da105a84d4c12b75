"""training/train.py: a run from a recipe to a translator, stopped, gone on with, refused."""

import contextlib
import io
import json
import re
import shutil
import signal
import sys
from pathlib import Path

import h5py
import keras
import numpy as np
import pytest
import tensorflow as tf
from rich.console import Console

from tests.tiny_run import BATCHES, SETTINGS, TRAIN, VALID, digest, write_corpus
from tf_transformer.errors import InputError
from tf_transformer.translator import Translator
from training.callbacks import limits
from training.callbacks.limits import Limits
from training.corpora.corpus import mix
from training.corpora.pairs import corpus_of
from training.keeping.checkpoints import Checkpoints
from training.keeping.run_state import RunState
from training.recipe import load_recipe
from training.train import train

SOURCES = [pair[0] for pair in VALID]


@pytest.fixture(scope="session")
def place(tiny_run):
    return tiny_run.place


@pytest.fixture(scope="session")
def unbroken(tiny_run):
    """The directory of a run of 3 epochs without a stop, what it printed, its translator."""
    return tiny_run.run, tiny_run.printed, tiny_run.translator


@pytest.fixture
def copy(unbroken, tmp_path):
    """The unbroken run, to be changed."""
    return Path(shutil.copytree(unbroken[0], tmp_path / "run"))


@contextlib.contextmanager
def stopped_by(number: int, step: int):
    """The process is sent the signal after that update."""
    unchanged = Limits.on_train_batch_end

    def on_train_batch_end(self, batch, logs=None):
        unchanged(self, batch, logs)
        if self.state.step == step:
            signal.raise_signal(number)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Limits, "on_train_batch_end", on_train_batch_end)
            yield
    finally:
        signal.signal(signal.SIGINT, before)


def weights_in(file: Path) -> dict[str, np.ndarray]:
    found = {}
    with h5py.File(file) as opened:
        opened.visititems(
            lambda name, item: (
                found.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None
            )
        )
    return found


def assert_equal_weights(ours: dict, theirs: dict) -> None:
    assert ours and ours.keys() == theirs.keys()
    for name, values in ours.items():
        np.testing.assert_array_equal(values, theirs[name], err_msg=name)


def history(run: Path) -> list[dict]:
    return [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]


def test_a_run_directory_has_everything(unbroken):
    run, _, translator = unbroken
    names = {str(path.relative_to(run)) for path in run.rglob("*") if path.is_file()}
    events = {name for name in names if "events.out.tfevents" in name}
    assert {Path(name).parent.as_posix() for name in events} == {"logs/train", "logs/validation"}
    assert names - events == {
        "config.toml",
        "corpus.json",
        "model.json",
        "source.model",
        "translator.json",
        "model.weights.h5",
        "history.jsonl",
        "provenance.json",
        "report.html",
        *(f"checkpoints/step-{BATCHES * epoch}.weights.h5" for epoch in (1, 2, 3)),
        *(f"checkpoints/state/step-{3 * BATCHES - before}.npz" for before in (0, 1)),
    }
    assert translator(SOURCES) == Translator.load(run)(SOURCES)
    assert any(translator(SOURCES))


def test_the_recorded_recipe_is_the_recipe(unbroken, place):
    recorded = load_recipe(unbroken[0] / "config.toml").model_dump()
    assert recorded == load_recipe(place.recipe, SETTINGS).model_dump()


def test_the_loss_falls_and_each_epoch_is_a_line(unbroken):
    lines = history(unbroken[0])
    assert [(line["epoch"], line["step"]) for line in lines] == [(1, 10), (2, 20), (3, 30)]
    for name in ("loss", "nll", "val_loss", "val_nll"):
        values = [line[name] for line in lines]
        assert values == sorted(values, reverse=True), name
    assert lines[-1]["nll"] < lines[0]["nll"] - 0.5
    assert lines[-1]["accuracy"] > lines[0]["accuracy"]
    assert all(0 <= line["val_bleu"] <= 100 for line in lines)


def test_what_a_person_sees(unbroken):
    printed = unbroken[1]
    assert f"{len(TRAIN)} pairs" in printed and f"{BATCHES} batches an epoch" in printed
    for epoch in (1, 2, 3):
        assert re.search(
            rf"epoch {epoch}/3 .*loss \d.*accuracy \d.*tokens/s, step {10 * epoch}", printed
        )
    assert len(re.findall(r"valid BLEU \d+\.\d", printed)) == 3
    for source, reference in VALID[:2]:
        assert len(re.findall(rf"{re.escape(source)} -> .*{re.escape(reference)}", printed)) == 3
    assert "mean of step-20.weights.h5, step-30.weights.h5" in printed


@pytest.mark.case("81")
def test_the_final_weights_are_the_mean_of_the_last_two(unbroken):
    run = unbroken[0]
    last = [weights_in(run / f"checkpoints/step-{step}.weights.h5") for step in (20, 30)]
    final = weights_in(run / "model.weights.h5")
    arrays = {name: values for name, values in final.items() if values.dtype.kind == "f"}
    assert arrays
    for name, values in arrays.items():
        mean = (last[0][name].astype("float64") + last[1][name]) / 2
        np.testing.assert_allclose(values, mean, rtol=1e-6, err_msg=name)
        assert values.dtype == last[0][name].dtype == np.float32
    kernel = max(arrays, key=lambda name: arrays[name].size)
    assert not np.array_equal(final[kernel], last[1][kernel])


def test_a_run_that_is_done_is_left_as_it_is(copy, place):
    before = weights_in(copy / "model.weights.h5")
    printed = place.train(copy, "training.average_checkpoints=2")
    assert "All 30 updates were made before: nothing to train." in printed
    assert_equal_weights(weights_in(copy / "model.weights.h5"), before)
    assert len(history(copy)) == 3


@pytest.fixture(scope="module")
def in_pieces(place, tmp_path_factory):
    """The same 3 epochs, with Ctrl-C after update 14 and SIGTERM after the last."""
    run, handler = tmp_path_factory.mktemp("pieces") / "run", signal.getsignal(signal.SIGTERM)
    printed = []
    for number, step in ((signal.SIGINT, 14), (signal.SIGTERM, 30)):
        with stopped_by(number, step):
            place.train(run)
        printed.append(place.printed)
    assert signal.getsignal(signal.SIGTERM) == handler
    printed.append(place.train(run))
    return run, printed


def test_a_stop_says_what_is_kept_and_the_same_command_goes_on(in_pieces):
    _, printed = in_pieces
    assert "Going on" not in printed[0] and "Going on from update 14." in printed[1]
    for said, step in ((printed[0], 14), (printed[1], 30)):
        assert f"Stopped after update {step}, all of it kept: the same command goes on" in said
    assert "All 30 updates were made before" in printed[2]


def test_a_run_in_pieces_is_the_unbroken_run(in_pieces, unbroken):
    """Batches, dropout, Adam's moments and the rate go on where they were, to the last bit."""
    if tf.config.list_physical_devices("GPU"):
        pytest.skip("a GPU adds in any order: two unbroken runs differ as well")
    name = "checkpoints/step-30.weights.h5"
    assert_equal_weights(weights_in(in_pieces[0] / name), weights_in(unbroken[0] / name))
    # Stopped after the last update, before its weights were kept: they are the final ones.
    assert_equal_weights(
        weights_in(in_pieces[0] / "model.weights.h5"), weights_in(unbroken[0] / name)
    )


def test_a_run_with_sampled_subwords_in_pieces_is_the_unbroken_run(unbroken, place, tmp_path):
    settings = ("training.subword_sampling=both", "training.word_dropout=0.1")
    settings += ("training.epochs=2", "evaluation.samples=0")
    with stopped_by(signal.SIGINT, 13):
        place.train(tmp_path / "pieces", *settings)
    place.train(tmp_path / "pieces", *settings)
    place.train(tmp_path / "unbroken", *settings)
    pieces, whole, plain = (
        weights_in(run / "model.weights.h5")
        for run in (tmp_path / "pieces", tmp_path / "unbroken", unbroken[0])
    )
    assert_equal_weights(pieces, whole)
    assert any(not np.array_equal(values, plain[key]) for key, values in whole.items())


def test_skipped_updates_and_groups_of_batches_in_pieces(place, tmp_path, monkeypatch):
    """What float16's loss scale skips is counted, so that no batch is seen again; the rate is not
    moved by it. Two batches make an update, and the stop is in the middle of an epoch."""

    class TooLarge(keras.optimizers.LossScaleOptimizer):
        def __init__(self, inner_optimizer):
            super().__init__(inner_optimizer, initial_scale=2.0**22)

    monkeypatch.setattr(keras.optimizers, "LossScaleOptimizer", TooLarge)
    settings = ("training.precision=mixed_float16", "training.update_tokens=320")
    place.train(tmp_path / "whole", *settings, "training.max_steps=8")
    place.train(tmp_path / "pieces", *settings, "training.max_steps=3")
    printed = place.train(tmp_path / "pieces", *settings, "training.max_steps=8")
    assert "10 batches in 5 updates an epoch" in printed and "Going on from update 3." in printed
    last = history(tmp_path / "whole")[-1]
    made = last["learning_rate"] / (16**-0.5 * 20**-1.5)  # the rate rises with every update
    assert last["step"] == 8 and made == pytest.approx(round(made)) and 0 < round(made) < 8
    pieces, whole = (
        weights_in(tmp_path / name / "model.weights.h5") for name in ("pieces", "whole")
    )
    assert_equal_weights(pieces, whole)


def test_the_history_of_a_run_in_pieces(in_pieces, unbroken):
    """Epoch 2 was stopped in the middle and epoch 3 while it was measured: whole all the same."""
    ours, whole = history(in_pieces[0]), history(unbroken[0])
    assert [(line["epoch"], line["step"]) for line in ours] == [(1, 10), (2, 20), (3, 30)]
    for line, other in zip(ours, whole, strict=True):
        for name in ("loss", "nll", "accuracy", "val_loss", "val_nll", "learning_rate"):
            assert line[name] == other[name], name


def test_more_epochs_and_steps_go_on(copy, place):
    printed = place.train(copy, "training.epochs=4", "training.max_steps=33")
    assert "Going on from update 30." in printed and "epoch 3/4" not in printed
    printed = place.train(copy, "training.epochs=4", "decoding.num_beams=1")
    assert "Going on from update 33." in printed and "epoch 4/4" in printed
    assert [line["step"] for line in history(copy)] == [10, 20, 30, 33, 40]
    assert load_recipe(copy / "config.toml").training.epochs == 4
    assert Translator.load(copy).options.num_beams == 1


def test_a_learning_rate_that_is_too_high_stops_with_a_sentence(place, tmp_path):
    with pytest.raises(
        InputError,
        match=r"loss is (nan|inf) at update \d+, with a learning rate of \d.*: lower ",
    ):
        place.train(tmp_path / "run", "training.learning_rate=1e30", "training.epochs=1")
    assert not (tmp_path / "run" / "checkpoints").exists()  # nothing of it is kept


@pytest.mark.case("31")
def test_one_tokenizer_a_side_as_large_as_the_text_allows(place, tmp_path, caplog):
    settings = ["tokenizer.shared=false", "model.tie_embeddings=two_way"]
    settings += ["tokenizer.vocabulary_size=8000", "training.max_steps=2"]
    run = tmp_path / "run"
    place.train(run, *settings)
    tokenizers = place.translator.tokenizers
    config = json.loads((run / "model.json").read_text())
    for side, word, other in (("source", "maison", "house"), ("target", "house", "maison")):
        tokenizer = getattr(tokenizers, side)
        assert tokenizer.vocabulary_size == config[f"{side}_vocabulary_size"] < 100
        assert f"for a vocabulary of {tokenizer.vocabulary_size} only, asked for were 8000" in (
            caplog.text
        )
        assert tokenizer.pieces(word) != tokenizer.pieces(other)
    assert tokenizers.source.pieces("house") != tokenizers.target.pieces("house")
    again = Translator.load(run).tokenizers
    assert again.target.pieces("house") == tokenizers.target.pieces("house")
    assert history(run)[-1]["step"] == 2  # in the middle of an epoch
    assert "All 2 updates were made before" in place.train(run, *settings)


def test_a_run_in_half_precision_translates_in_float32(place, tmp_path):
    settings = ("training.precision=mixed_bfloat16", "training.max_steps=1")
    printed = place.train(tmp_path / "run", *settings, "evaluation.samples=1")
    assert f"{SOURCES[0]} -> " in printed
    layers = place.translator.model.layers
    assert {layer.compute_dtype for layer in layers if layer.weights} == {"float32"}
    assert keras.config.dtype_policy().name == "float32"


@pytest.mark.case("41")
def test_a_corpus_smaller_than_a_batch_is_trained_on(place, tmp_path):
    data = write_corpus(tmp_path / "data", TRAIN[:3])
    settings = ("tokenizer.vocabulary_size=40", "training.epochs=2", "training.batch_tokens=4096")
    place.train(tmp_path / "run", *settings, data=data)
    lines = history(tmp_path / "run")
    assert [line["step"] for line in lines] == [1, 2]  # one update an epoch, of all pairs
    steps = [weights_in(tmp_path / f"run/checkpoints/step-{n}.weights.h5") for n in (1, 2)]
    assert any(not np.array_equal(steps[0][name], steps[1][name]) for name in steps[0])


@pytest.mark.parametrize("name", ["wmt14_en_de_base", "wmt14_en_de_big"])
def test_the_wmt14_recipes_start(place, tmp_path, name):
    """On a few lines and with a small model: the settings work together."""
    sizes = {"num_layers": 1, "hidden_dim": 16, "num_heads": 2, "intermediate_dim": 32}
    settings = [f"model.{key}={value}" for key, value in sizes.items()]
    recipe = load_recipe(name, [*settings, "training.max_steps=1", "evaluation.samples=0"])
    translator = train(recipe, place.data, tmp_path / "run", Console(file=io.StringIO()))
    assert history(tmp_path / "run")[-1]["step"] == 1
    assert translator.options.num_beams == 4 and len(translator(SOURCES)) == len(SOURCES)


def test_a_run_on_pairs_from_python_mixed_by_weight(place, tmp_path):
    """And with fixed shapes; no file is read."""
    settings = ["training.max_steps=3", "training.static_shapes=true", "evaluation.samples=0"]
    recipe, run = load_recipe(place.recipe, settings), tmp_path / "run"

    def go(weight):
        screen = io.StringIO()
        pairs = tf.data.Dataset.from_generator(
            lambda: iter(TRAIN[:40]), output_signature=(tf.TensorSpec([], tf.string),) * 2
        )
        mixed = mix([(corpus_of(pairs), 1.0), (corpus_of(TRAIN[40:]), weight)])
        given = {"train": mixed, "valid": iter(VALID)}
        train(recipe, None, run, Console(file=screen, width=200), corpora=given)
        return screen.getvalue()

    assert "60 pairs" in go(2.5)
    assert history(run)[-1]["step"] == 3
    assert "All 3 updates were made before" in go(2.5)
    with pytest.raises(InputError, match="holds a run on another corpus"):
        go(2.0)


# What is refused, and leaves everything as it was.


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("model.hidden_dim=32", "model.hidden_dim = 16, now it is 32"),
        ("tokenizer.vocabulary_size=60", "tokenizer.vocabulary_size = 50, now it is 60"),
        ("training.batch_tokens=200", "training.batch_tokens = 160, now it is 200"),
        ("training.seed=2", "training.seed = 1, now it is 2"),
        ("model.dropout=0.2", "model.dropout = 0.1, now it is 0.2"),
        ("data.max_length=12", "data.max_length = 128, now it is 12"),
    ],
)
@pytest.mark.case("83")
def test_another_recipe_is_refused_with_the_difference(unbroken, place, setting, message):
    before = digest(unbroken[0])
    with pytest.raises(InputError, match=re.escape(message)):
        place.train(unbroken[0], setting)
    assert digest(unbroken[0]) == before


def test_another_corpus_is_refused(unbroken, place, tmp_path):
    before = digest(unbroken[0])
    data = write_corpus(tmp_path / "data", TRAIN[:-1])
    message = "another corpus, and its vocabulary, than .*train.src.*training.warm_start = "
    with pytest.raises(InputError, match=message):
        place.train(unbroken[0], data=data)
    assert digest(unbroken[0]) == before


def test_another_vocabulary_is_refused(copy, place, tmp_path):
    config = json.loads((copy / "model.json").read_text())
    size = config["source_vocabulary_size"]
    config["source_vocabulary_size"] = config["target_vocabulary_size"] = size + 1
    (copy / "model.json").write_text(json.dumps(config))
    before = digest(copy)
    with pytest.raises(InputError, match=rf"vocabulary: {size + 1} and .* ids, now {size} and"):
        place.train(copy)
    assert digest(copy) == before


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


DAMAGES = {
    "no recipe": (lambda run: (run / "config.toml").unlink(), "config.toml is missing"),
    "recipe cut": (lambda run: cut(run / "config.toml"), "config.toml"),
    "no tokenizer": (lambda run: (run / "source.model").unlink(), "source.model cannot be read"),
    "tokenizer cut": (lambda run: cut(run / "source.model"), "source.model: "),
    "model cut": (lambda run: cut(run / "model.json"), "model.json"),
    "corpus cut": (lambda run: cut(run / "corpus.json"), "corpus.json is broken"),
    "states cut": (
        lambda run: set(map(cut, (run / "checkpoints/state").iterdir())),
        "step-30.npz cannot be restored",
    ),
    "no state": (
        lambda run: shutil.rmtree(run / "checkpoints/state"),
        "state holds no state to go on from",
    ),
    "no checkpoints": (
        lambda run: shutil.rmtree(run / "checkpoints"),
        "state holds no state to go on from",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_run_that_is_half_written_is_refused(copy, place, damage):
    harm, message = DAMAGES[damage]
    harm(copy)
    before = digest(copy)
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        place.train(copy, "training.epochs=4")
    assert str(copy) in str(caught.value) and "\n" not in str(caught.value)
    assert digest(copy) == before


def test_a_run_without_its_translator_is_completed(copy, place):
    """Stopped while the final files were written: what `translate` refuses, `train` repairs."""
    before = weights_in(copy / "model.weights.h5")
    for file in ("translator.json", "model.weights.h5"):
        (copy / file).unlink()
    with pytest.raises(InputError, match="translator.json is missing"):
        Translator.load(copy)
    place.train(copy, "training.average_checkpoints=2")
    assert_equal_weights(weights_in(copy / "model.weights.h5"), before)


def test_what_is_no_run_directory_is_refused_and_left(place, tmp_path):
    file = tmp_path / "file"
    file.write_text("mine")
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.txt").write_text("mine")
    before = digest(tmp_path)
    for path, message in (
        (file, "file must be a directory for the run, but is a file"),
        (file / "run", "file/run can't be made"),
        (foreign, "foreign is not empty and holds no run"),
    ):
        with pytest.raises(InputError, match=message):
            place.train(path)
    assert digest(tmp_path) == before


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["data.max_length=3"], "no pair is left, all 60 have more than 3 tokens"),
        (["training.batch_tokens=4"], "no pair is left, all 60 have more than 4 tokens"),
        (["tokenizer.vocabulary_size=9"], "No vocabulary of 9 can be learnt"),
        (["decoding.alpha=11"], "`alpha` must be a number from -10 to 10"),
        (["decoding.max_source_length=1"], "`max_source_length` must be"),
        (
            [
                "training.schedule=linear",
                "training.learning_rate=0.01",
                "training.decay_steps=29",
            ],
            r"rate is 0 from update 29 on, but 30 are to be made \(3 epochs of 10\)",
        ),
        (["data.train=no.tsv"], "There is no file .*no.tsv"),
        (["data.valid=no.tsv"], "There is no file .*no.tsv"),
    ],
)
@pytest.mark.case("41")
@pytest.mark.case("31")
def test_nothing_is_written_for_what_cannot_be_trained(place, tmp_path, settings, message):
    with pytest.raises(InputError, match=message):
        place.train(tmp_path / "run", *settings)
    assert not (tmp_path / "run").exists()


def test_bleu_that_cannot_be_computed_is_refused_before_training(place, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(InputError, match=r"tf_transformer\[evaluate\]"):
        place.train(tmp_path / "run", "evaluation.bleu=greedy")
    assert not (tmp_path / "run").exists()


@pytest.mark.case("33")
@pytest.mark.parametrize("split", ["train", "valid"])
def test_unequal_files_are_refused_before_training(place, tmp_path, split):
    data = write_corpus(tmp_path / "data")
    with open(data / f"{split}.tgt", "a") as file:
        file.write("one more\n")
    lines = {"train": 60, "valid": 10}[split]
    with pytest.raises(
        InputError, match=rf"{split}.src has {lines} and .*{split}.tgt has {lines + 1}"
    ):
        place.train(tmp_path / "run", data=data)
    assert not (tmp_path / "run").exists()


# The parts.


def tiny_model(value: float = 0.0, width: int = 3) -> keras.Model:
    x = keras.Input((2,))
    model = keras.Model(x, keras.layers.Dropout(0.5)(keras.layers.Dense(width)(x)))
    model.set_weights([np.full_like(weight, value) for weight in model.get_weights()])
    model.compile(keras.optimizers.Adam(), "mse")
    return model


@pytest.mark.case("81")
def test_the_last_weights_are_so_by_step_not_by_name(tmp_path):
    model = tiny_model()
    checkpoints = Checkpoints(tmp_path, model)
    assert checkpoints.weights() == []
    for step in (1000, 98, 999, 10_000):
        checkpoints.state.step = step
        checkpoints.save_weights()
    checkpoints.keep([999, 1000, 10_000])
    (tmp_path / "checkpoints" / "step-5.weights.h5.old").touch()
    names = [path.name for path in checkpoints.weights()]
    assert names == [f"step-{step}.weights.h5" for step in (999, 1000, 10_000)]


def test_weight_files_hold_no_optimizer(tmp_path):
    """Adam's moments would make them three times as large."""
    model = tiny_model()
    model.fit(np.ones((2, 2)), np.ones((2, 3)), verbose=0)
    checkpoints = Checkpoints(tmp_path, model)
    checkpoints.save_weights()
    sizes = sorted(values.size for values in weights_in(checkpoints.weights()[0]).values())
    assert sizes == [3, 6]


def test_the_state_holds_dropout_and_optimizer(tmp_path):
    model = tiny_model(1)
    inputs, labels = np.ones((4, 2)), np.ones((4, 3))
    model.train_on_batch(inputs, labels)
    checkpoints = Checkpoints(tmp_path, model)
    checkpoints.state.step = 1
    checkpoints.save_state()
    following = [np.asarray(model(inputs, training=True)) for _ in range(2)]
    model.train_on_batch(inputs, labels)
    keras.utils.set_random_seed(99)
    again = tiny_model()
    assert Checkpoints(tmp_path, again).restore() == 1
    for expected in following:
        np.testing.assert_array_equal(np.asarray(again(inputs, training=True)), expected)
    again.train_on_batch(inputs, labels)
    for ours, theirs in zip(again.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_state_of_another_model_is_refused(tmp_path):
    checkpoints = Checkpoints(tmp_path, tiny_model(1))
    checkpoints.save_state()
    with pytest.raises(InputError, match="step-0.npz cannot be restored"):
        Checkpoints(tmp_path, tiny_model(width=4)).restore()


def test_minutes_end_a_run_and_it_is_kept(monkeypatch):
    times = iter(range(0, 10_000, 20))  # 20 seconds go by between two looks
    monkeypatch.setattr(limits.time, "monotonic", lambda: next(times))
    minutes = Limits(RunState(), None, max_minutes=1)
    minutes.set_model(tiny_model())
    stopped = []
    for batch in range(5):
        minutes.on_train_batch_end(batch)
        stopped.append(minutes.model.stop_training)
    assert stopped == [False, False, False, True, True]

"""Averages of checkpoints: by hand, of a run, and of what must not be mixed."""

import io
import json
import shutil
from pathlib import Path

import keras
import numpy as np
import pytest
from rich.console import Console

from tests.tiny_run import TRAIN, VALID, digest
from tf_transformer.config import TransformerConfig
from tf_transformer.errors import InputError
from tf_transformer.model import build_transformer
from tf_transformer.tokenizers import SentencePieceTokenizer
from tf_transformer.translator import Translator
from training.keeping.averaging import average, average_run
from training.reporting.report import write_report

SOURCES = [pair[0] for pair in VALID]


class Counter(keras.layers.Layer):
    """Has a weight that is no float."""

    def build(self, shape):
        self.count = self.add_weight((2,), dtype="int32", initializer="zeros", trainable=False)

    def call(self, x):
        return x


def small_model(value: float = 0.0, width: int = 3, count: int = 0) -> keras.Model:
    x = keras.Input((2,))
    model = keras.Model(x, Counter()(keras.layers.Dense(width)(x)))
    model.set_weights([*(np.full(w.shape, value) for w in model.weights[:2]), np.full(2, count)])
    model.compile(keras.optimizers.Adam(), "mse")
    return model


@pytest.mark.case("81")
@pytest.mark.filterwarnings("ignore:Skipping nested container")
def test_average(tmp_path):
    """The order of files and their number of times do what a mean does."""
    files = {}
    for value in (1, 2, 6):
        files[value] = tmp_path / f"{value}.weights.h5"
        small_model(value, count=value).save_weights(files[value])
    for chosen, mean in (
        ((1, 2, 6), 3.0),
        ((6, 1, 2), 3.0),
        ((2, 6), 4.0),
        ((6,), 6.0),
        ((2, 2), 2.0),
    ):
        model = small_model(count=40)
        average(model, [files[value] for value in chosen])
        *weights, count = model.get_weights()
        for weight in weights:
            np.testing.assert_allclose(weight, mean, rtol=1e-6)
            assert weight.dtype == np.float32
        assert count.dtype == np.int32 and count.tolist() == [40, 40]
        assert int(model.optimizer.iterations) == 0
    small_model(1, width=4).save_weights(tmp_path / "other.weights.h5")
    (tmp_path / "text.weights.h5").write_text("no weights")
    for file in ("other", "text", "missing"):
        with pytest.raises(InputError, match=f"{file}.weights.h5 does not hold the weights"):
            average(small_model(), [files[1], tmp_path / f"{file}.weights.h5"])
    with pytest.raises(InputError, match="at least one"):
        average(small_model(), [])


def test_many_files_are_summed_in_double_precision(tmp_path):
    """1e8 + 1 is 1e8 in float32; the mean of 1e8, 1, ... would lose every 1."""
    values, files = [1e8, *[1.0] * 40, -1e8], []
    for place, value in enumerate(values):
        files.append(tmp_path / f"{place}.weights.h5")
        small_model(value).save_weights(files[-1])
    model = small_model()
    average(model, files)
    np.testing.assert_allclose(model.get_weights()[0], 40 / 42, rtol=1e-6)


# Of a run, as `tf-transformer average` does it.


@pytest.fixture
def copy(tiny_run, tmp_path) -> Path:
    """A finished run of three checkpoints, to be changed."""
    return Path(shutil.copytree(tiny_run.run, tmp_path / "copy"))


@pytest.fixture
def constant(copy) -> Path:
    """The same with weights that are all 1, 2 and 6 at the steps 98, 999 and 1000."""
    model = build_transformer(TransformerConfig.from_json(copy / "model.json"))
    for old in (copy / "checkpoints").glob("*.weights.h5"):
        old.unlink()
    for step, value in ((98, 1), (999, 2), (1000, 6)):
        model.set_weights([np.full(weight.shape, value) for weight in model.weights])
        model.save_weights(copy / "checkpoints" / f"step-{step}.weights.h5")
    return copy


def made(run: Path, *weights: Path, last: int | None = None, out: Path | None = None) -> str:
    screen = io.StringIO()
    average_run(run, weights, last, out, Console(file=screen, width=500))
    return screen.getvalue()


def assert_all(run: Path, value: float) -> None:
    for weight in Translator.load(run).model.get_weights():
        np.testing.assert_array_equal(weight, value)


@pytest.mark.case("81")
def test_the_last_checkpoints_of_a_run_become_a_run(constant, tmp_path):
    before = digest(constant)
    made(constant, last=2, out=tmp_path / "two")
    assert_all(tmp_path / "two", 4.0)  # 2 and 6: by step, not by name
    said = made(constant, out=tmp_path / "five")
    assert_all(tmp_path / "five", 3.0)
    assert "There are 3 checkpoints only, asked for were 5." in said
    assert digest(constant) == before


@pytest.mark.case("81")
def test_named_files_in_any_order(constant, tmp_path):
    one, two, six = (constant / f"checkpoints/step-{n}.weights.h5" for n in (98, 999, 1000))
    for place, files in (("a", (one, two, six)), ("b", (six, one, two))):
        made(constant, *files, out=tmp_path / place)
        assert_all(tmp_path / place, 3.0)
    elsewhere = tmp_path / "taken.weights.h5"  # of no run: its shapes are looked at
    shutil.copy(six, elsewhere)
    made(constant, elsewhere, two, out=tmp_path / "mean.weights.h5")
    model = build_transformer(TransformerConfig.from_json(constant / "model.json"))
    model.load_weights(tmp_path / "mean.weights.h5")
    for weight in model.get_weights():
        np.testing.assert_array_equal(weight, 4.0)


@pytest.mark.case("81")
def test_a_run_with_itself_is_itself(tiny_run, tmp_path):
    """Runs as well as their files; tokenizers and the way to decode come along."""
    run = tiny_run.run
    made(run, run, run / "model.weights.h5", run, out=tmp_path / "same")
    same = Translator.load(tmp_path / "same")
    ours, theirs = same.model.get_weights(), tiny_run.translator.model.get_weights()
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(mine, other)
    assert same.options == tiny_run.translator.options
    assert same(SOURCES) == tiny_run.translator(SOURCES)


def test_in_place(constant):
    written = {"model.weights.h5", "provenance.json"}
    before = {k: v for k, v in digest(constant).items() if k not in written}
    made(constant, last=1)
    assert_all(constant, 6.0)
    assert {k: v for k, v in digest(constant).items() if k not in written} == before


def test_in_place_is_recorded_and_reported(constant, tmp_path):
    """Where the final weights come from, for whoever was not there; the rest stays as it was."""
    before = json.loads((constant / "provenance.json").read_text())
    elsewhere = tmp_path / "taken.weights.h5"
    shutil.copy(constant / "checkpoints/step-98.weights.h5", elsewhere)
    made(constant, constant / "checkpoints/step-1000.weights.h5", elsewhere)
    assert_all(constant, 3.5)  # of 6 and 1
    after = json.loads((constant / "provenance.json").read_text())
    final, final_before = after.pop("final_weights"), before.pop("final_weights")
    assert after == before
    assert final["files"] == ["step-1000.weights.h5", str(elsewhere.resolve())]
    assert final["update"] == final_before["update"]
    text = write_report(constant).read_text()
    assert f"the mean of step-1000.weights.h5, {elsewhere.resolve()}" in text
    assert "as tf-transformer average has made it" in text


def test_in_place_of_a_run_that_recorded_nothing(constant):
    """As one that `average --out` has made."""
    for file in ("provenance.json", "history.jsonl"):
        (constant / file).unlink()
    made(constant, last=2)
    assert json.loads((constant / "provenance.json").read_text())["final_weights"]["files"] == [
        "step-999.weights.h5",
        "step-1000.weights.h5",
    ]
    assert "the mean of step-999.weights.h5, step-1000" in write_report(constant).read_text()


def test_a_run_in_training_gives_one_that_translates(constant, tmp_path):
    for file in ("translator.json", "model.weights.h5"):
        (constant / file).unlink()
    made(constant, last=3, out=tmp_path / "early")
    assert_all(tmp_path / "early", 3.0)
    made(constant, constant, out=tmp_path / "latest")
    assert_all(tmp_path / "latest", 6.0)
    with pytest.raises(InputError, match="is not finished, so it has no final weights"):
        made(constant)


def other_sizes(run: Path) -> None:
    fields = json.loads((run / "model.json").read_text())
    (run / "model.json").write_text(json.dumps({**fields, "num_heads": 4}))


def other_pieces(run: Path) -> None:
    size = json.loads((run / "model.json").read_text())["source_vocabulary_size"]
    texts = [text for pair in TRAIN for text in pair]
    SentencePieceTokenizer.train(texts, size, model_type="bpe").save(run / "source.model")


@pytest.mark.case("81")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (other_sizes, "is of another model: its num_heads is 4, not 2"),
        (other_pieces, r"has another source vocabulary than .*: id \d+ is '.+', not '.+'"),
    ],
)
def test_another_model_or_vocabulary_is_refused_by_name(tiny_run, copy, tmp_path, change, message):
    change(copy)
    for named in (copy, copy / "model.weights.h5", copy / "checkpoints/step-20.weights.h5"):
        with pytest.raises(InputError, match=message):
            made(tiny_run.run, tiny_run.run, named, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_cannot_be_averaged_is_refused_and_nothing_written(copy, tmp_path):
    free, taken = tmp_path / "free", tmp_path / "taken.weights.h5"
    taken.write_text("mine")
    checkpoint = copy / "checkpoints/step-20.weights.h5"
    before = digest(tmp_path)
    for arguments, message in (
        ((tmp_path,), "is no run: neither translator.json nor config.toml is there"),
        ((copy, tmp_path), "is no run"),
        ((copy, tmp_path / "no.weights.h5"), "no.weights.h5 does not hold the weights"),
    ):
        with pytest.raises(InputError, match=message):
            made(*arguments, out=free)
    for out, message in ((copy, "is no empty directory"), (taken, "exists: name another file")):
        with pytest.raises(InputError, match=message):
            made(copy, out=out)
    with pytest.raises(InputError, match="--last is of a run's own checkpoints"):
        made(copy, checkpoint, last=2, out=free)
    assert digest(tmp_path) == before
    shutil.rmtree(copy / "checkpoints")
    with pytest.raises(InputError, match="holds no checkpoints to average"):
        made(copy, out=free)
    assert not free.exists()

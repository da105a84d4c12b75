"""tf_transformer/saved.py: an export is used as a translator is."""

import json
import logging
from pathlib import Path

import pytest
import tensorflow as tf

from tests.tiny_translator import (
    FRENCH,
    export_unchecked,
    make_config,
    make_translator,
    save_module,
    tokenizers,
)
from tf_transformer.errors import InputError
from tf_transformer.options import DecodingOptions
from tf_transformer.saved import (
    SavedTranslator,
    find_saved_model,
    is_saved_model,
    open_translator,
    versions,
)
from tf_transformer.translator import Translator


@pytest.fixture(scope="module")
def translator() -> Translator:
    made = make_translator()
    options = DecodingOptions(extra_length=8, max_source_length=24)
    return Translator(made.model, *tokenizers(), options)


@pytest.fixture(scope="module")
def run(translator: Translator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("run")
    translator.save(directory, make_config())
    return directory


@pytest.fixture(scope="module")
def models(translator: Translator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of versions whose highest by number, not by name, is the translator."""
    directory = tmp_path_factory.mktemp("models")
    for name in ("2", "9"):
        (directory / name).mkdir()
        (directory / name / "saved_model.pb").write_bytes(b"not this one")
    assert export_unchecked(translator, directory) == directory / "10"
    return directory


@pytest.fixture(scope="module")
def saved(models: Path) -> SavedTranslator:
    return SavedTranslator.load(models)


def test_it_translates_as_the_translator(translator: Translator, saved: SavedTranslator) -> None:
    texts = [*FRENCH, "", " ", "\ud800", *FRENCH[::-1]]
    assert saved(iter(texts)) == translator(texts)
    assert saved([]) == []
    for found, right in zip(saved.stream(texts), translator.stream(texts), strict=True):
        assert found["text"] == right["text"]
        assert found["score"] == pytest.approx(right["score"], abs=1e-4)


def test_it_can_be_told_about(saved: SavedTranslator) -> None:
    assert saved.metadata["decoding"]["max_source_length"] == 24
    described = {name: sides for name, *sides in saved.signatures()}
    assert described["serving_default"] == [
        "text: string (None,)",
        "score: float32 (None,), text: string (None,), truncated: bool (None,)",
    ]


def test_a_line_that_is_cut_is_told(
    translator: Translator, saved: SavedTranslator, caplog: pytest.LogCaptureFixture
) -> None:
    fits, long = "a" * 22, "le chat dort sur la chaise . " * 3
    lines = [FRENCH[1], fits, long, ""]
    told = []
    for one in (saved, translator):
        with caplog.at_level(logging.WARNING):
            assert len(one(lines)) == 4
        told.append([record.getMessage() for record in caplog.records])
        caplog.clear()
    length = len(tokenizers()[0].encode([long])[0]) + 1
    assert length > 24 >= len(tokenizers()[0].encode([fits])[0]) + 1
    assert told[0] == told[1]
    assert told[0] == [f"Line 3: the source has {length} tokens and is cut at 24."]


def test_the_highest_version_is_found(models: Path, tmp_path: Path) -> None:
    assert find_saved_model(models) == models / "10"
    assert find_saved_model(models / "9") == models / "9"
    assert list(versions(models)) == [2, 9, 10]
    for junk in ("v1", "-3", "1.5", "²", "exporting_1"):
        (tmp_path / junk).mkdir()
        (tmp_path / junk / "saved_model.pb").touch()
    (tmp_path / "3").mkdir()  # not yet a SavedModel
    assert not is_saved_model(tmp_path)
    assert versions(tmp_path / "missing") == {}
    assert is_saved_model(models)


def test_both_kinds_open(run: Path, models: Path) -> None:
    assert isinstance(open_translator(models), SavedTranslator)
    assert isinstance(open_translator(models / "10"), SavedTranslator)
    opened = open_translator(run, num_beams=2)
    assert isinstance(opened, Translator)
    assert opened.options.num_beams == 2


def test_the_search_of_an_export_is_fixed(models: Path) -> None:
    with pytest.raises(InputError, match="fixed inside .* Received: alpha=1.0, num_beams=2"):
        open_translator(models, num_beams=2, alpha=1.0)


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="missing: it does not exist"):
        open_translator(tmp_path / "missing")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file: it is a file"):
        open_translator(tmp_path / "file")
    with pytest.raises(InputError, match="no translator.json.* no saved_model.pb"):
        open_translator(tmp_path)
    with pytest.raises(InputError, match="is not a SavedModel: no saved_model.pb"):
        SavedTranslator.load(tmp_path)


def test_a_broken_export_is_named(models: Path) -> None:
    with pytest.raises(InputError, match=r"9 cannot be loaded: "):
        SavedTranslator.load(models / "9")


@pytest.mark.parametrize("name", ["serving_default", "other"])
def test_a_model_of_another_kind_is_no_translator(tmp_path: Path, name: str) -> None:
    spec = tf.TensorSpec([None], tf.float32, name="x")
    function = tf.function(lambda x: {"y": x + 1.0}, input_signature=[spec])
    save_module(tf.Module(), tmp_path, **{name: function})
    problem = {
        "serving_default": r"must map .* Received: x: float32 \(None,\) -> y: float32 \(None,\)",
        "other": "has no signature serving_default",
    }[name]
    with pytest.raises(InputError, match=f"is no translator: .*{problem}"):
        SavedTranslator.load(tmp_path)


def test_a_translator_of_somebody_else_has_no_metadata(tmp_path: Path) -> None:
    spec = tf.TensorSpec([None], tf.string, name="text")

    def shout(text: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"text": tf.strings.upper(text), "score": tf.zeros(tf.shape(text))}

    save_module(tf.Module(), tmp_path, serving_default=tf.function(shout, input_signature=[spec]))
    saved = SavedTranslator.load(tmp_path)
    assert saved(["a", "b"]) == ["A", "B"]
    assert json.dumps(saved.metadata) == "{}"
    assert saved(["x" * 9999, "y"]) == ["X" * 9999, "Y"]

"""Corpora that are not files: Python's iterables, tf.data, TensorFlow Datasets; and the filters."""

import logging
import sys
import types

import numpy as np
import pytest
import tensorflow as tf

from tests.tiny_run import TRAIN, VALID, write_pairs
from tests.training.batches.test_batching import Numbers, sentence
from tf_transformer.errors import InputError
from training.batches.batching import Batches
from training.corpora.corpus import Corpus, without_duplicates
from training.corpora.pairs import corpus_of
from training.corpora.reading import read_split
from training.corpora.splits import read_splits
from training.settings.data import DataSettings

PAIRS = [("ein", "one"), ("zwei é", "two")]
SOURCE, TARGET = map(list, zip(*PAIRS, strict=True))


def both(corpus):
    return list(zip(corpus.source, corpus.target, strict=True))


@pytest.mark.parametrize(
    "given",
    [
        PAIRS,
        [list(pair) for pair in PAIRS],
        (pair for pair in PAIRS),
        [(source.encode(), target.encode()) for source, target in PAIRS],
        dict(PAIRS).items(),
        tf.data.Dataset.from_tensor_slices((SOURCE, TARGET)),
    ],
    ids=["tuples", "lists", "generator", "bytes", "items", "tf.data"],
)
def test_pairs_of_any_kind(given):
    assert both(corpus_of(given)) == PAIRS


def test_a_corpus_is_itself_and_what_is_read_is_cleaned():
    corpus = Corpus(["a"], ["b"])
    assert corpus_of(corpus) is corpus
    cleaned = corpus_of([(" a\u2028b\n", "c"), ("", "d")])
    assert both(cleaned) == [("a b", "c")] and cleaned.dropped == {"blank on one side": 1}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "it: the corpus is empty"),
        ("ab", "it must be pairs of texts. Received: 'ab'"),
        (3, "it must be pairs of texts. Received: 3"),
        ([("a", "b"), "cd"], "it must be pairs of texts. Received: number 2, 'cd'"),
        ([("a", "b", "c")], r"Received: number 1, \('a', 'b', 'c'\)"),
        ([("a", 3)], r"Received: number 1, \('a', 3\)"),
        ([("a", None)], r"Received: number 1, \('a', None\)"),
        ([("a", b"\xff")], "it must be UTF-8, but pair 1 is not"),
        (tf.data.Dataset.from_tensor_slices(["a"]), "it must be pairs of texts"),
        (tf.data.Dataset.from_tensor_slices((["a"], ["b"])).batch(2), "it must be pairs of texts"),
    ],
)
def test_what_is_no_pairs_is_refused(given, message):
    with pytest.raises(InputError, match=message):
        corpus_of(given, "it")


# TensorFlow Datasets.


class Builder:
    """What `tfds.builder` returns, as far as it is used."""

    def __init__(self, name):
        if name != "talks/de_en":
            raise ValueError(f"Dataset {name} not found.\nAvailable: many")
        self.info = types.SimpleNamespace(
            supervised_keys=("de", "en"), features={"de": "Text", "en": "Text", "id": "Text"}
        )
        self.downloaded = False

    def download_and_prepare(self):
        self.downloaded = True

    def as_dataset(self, split):
        assert self.downloaded
        if split != "train":
            raise ValueError(f"Unknown split {split!r}.")
        return [{"de": de.encode(), "en": en.encode(), "id": b"x"} for de, en in PAIRS]


@pytest.fixture
def tfds(monkeypatch):
    library = types.SimpleNamespace(builder=Builder, as_numpy=iter)
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", library)


def test_a_dataset_by_name(tfds):
    assert both(read_split(None, "train", ["tfds:talks/de_en:train"])) == PAIRS
    turned = read_split(None, "train", ["tfds:talks/de_en:train:en:de"])
    assert both(turned) == [(target, source) for source, target in PAIRS]
    assert turned.name == "tfds:talks/de_en:train:en:de"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tfds:talks/de_en", "is called tfds:NAME:SPLIT or .* Received: 'tfds:talks/de_en'"),
        ("tfds:talks/de_en:train:en", "is called tfds:NAME:SPLIT or "),
        ("tfds::train", "is called tfds:NAME:SPLIT or "),
        ("tfds:nothing:train", "tfds:nothing:train can't be read: Dataset nothing not found.$"),
        ("tfds:talks/de_en:dev", "can't be read: Unknown split 'dev'"),
        ("tfds:talks/de_en:train:fr:de", "has the features de, en, id, not 'fr'"),
    ],
)
def test_a_dataset_that_cannot_be_read(tfds, name, message):
    with pytest.raises(InputError, match=message):
        read_split(None, "train", [name])


def test_without_the_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    with pytest.raises(InputError, match=r"tfds:a:train needs .*tf_transformer\[tfds\]"):
        read_split(None, "train", ["tfds:a:train"])


def test_a_real_dataset(tmp_path):
    """Made on the spot: the library itself agrees with the one above."""
    tfds = pytest.importorskip("tensorflow_datasets", reason="no tensorflow-datasets to try")

    class OurTalks(tfds.core.GeneratorBasedBuilder):
        VERSION = tfds.core.Version("1.0.0")

        def _info(self):
            features = {"de": tfds.features.Text(), "en": tfds.features.Text()}
            return self.dataset_info_from_configs(
                features=tfds.features.FeaturesDict(features), supervised_keys=("de", "en")
            )

        def _split_generators(self, dl_manager):
            return {"train": self._generate_examples()}

        def _generate_examples(self):
            for number, (de, en) in enumerate(PAIRS):
                yield number, {"de": de, "en": en}

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TFDS_DATA_DIR", str(tmp_path))
        patch.setattr(tfds, "builder", lambda name: OurTalks(data_dir=str(tmp_path)))
        assert sorted(both(read_split(None, "train", ["tfds:our_talks:train"]))) == PAIRS
        with pytest.raises(InputError, match="can't be read"):
            read_split(None, "train", ["tfds:our_talks:nope"])


# Splits of a run.


def test_splits_from_files_from_python_and_mixed(tmp_path):
    write_pairs(tmp_path, "train", TRAIN)
    write_pairs(tmp_path, "valid", VALID)
    write_pairs(tmp_path, "more", PAIRS)
    read = read_splits(DataSettings(), tmp_path)
    assert both(read["train"]) == TRAIN and both(read["valid"]) == VALID
    corpora = [
        {"files": ["train.src", "train.tgt"]},
        {"files": ["more.src", "more.tgt"], "weight": 2.5},
    ]
    read = read_splits(DataSettings(corpora=corpora), tmp_path, {"valid": PAIRS})
    assert both(read["train"]) == TRAIN + PAIRS and both(read["valid"]) == PAIRS
    assert [(part.pairs, part.weight) for part in read["train"].parts] == [(60, 1.0), (2, 2.5)]
    assert (
        both(read_splits(DataSettings(), None, {"train": PAIRS, "valid": PAIRS})["train"]) == PAIRS
    )


def test_splits_that_are_missing_or_unknown(tmp_path):
    with pytest.raises(InputError, match="The valid split is in files: .* --data"):
        read_splits(DataSettings(), None, {"train": PAIRS})
    with pytest.raises(InputError, match="may hold train and valid. Received: 'dev'"):
        read_splits(DataSettings(), tmp_path, {"dev": PAIRS})


# Filters.


def test_the_same_pair_is_kept_once(caplog):
    pairs = [("a", "A"), ("b", "B"), ("a", "A"), ("a", "B"), ("a", "A")]
    corpus = Corpus(*map(list, zip(*pairs, strict=True)), dropped={"x": 1}, name="it")
    with caplog.at_level(logging.INFO):
        once = without_duplicates(corpus)
    assert both(once) == [("a", "A"), ("b", "B"), ("a", "B")]
    assert once.dropped == {"x": 1, "duplicate": 2}
    assert "it: 3 pairs; pairs dropped: 2 (duplicate)" in caplog.text
    assert without_duplicates(once) is once


def test_pairs_of_unequal_lengths_are_left_out_and_counted(caplog):
    lengths = [(5, 2), (6, 2), (2, 5), (2, 6), (1, 4), (9, 9), (40, 40), (40, 1)]  # END: one more
    sides = [[sentence(9, n) for n in side] for side in zip(*lengths, strict=True)]
    with caplog.at_level(logging.INFO):
        batches = Batches(Corpus(*sides), Numbers(), Numbers(), max_length=30, max_length_ratio=2.0)
    assert np.array_equal(batches.kept, [0, 2, 5])
    assert batches.dropped == {"too long": 2, "too unequal": 3}
    assert "3 of 8 pairs are more than 2 times as long on one side and are left out" in caplog.text
    with pytest.raises(InputError, match="all 2 have more .* or 1 times as many as on the other"):
        Batches(Corpus(*[side[:2] for side in sides]), Numbers(), Numbers(), max_length_ratio=1.0)

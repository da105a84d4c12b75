"""One trained model, asked in every way there is: the same answers to all held-out lines.

By default the run is a short one. `TF_TRANSFORMER_RUN=runs/demo TF_TRANSFORMER_LINES=FILE pytest
tests/test_one_model.py` asks another, such as that of `make demo`.
"""

import os
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from export import SessionModel, export_ctranslate2, export_litert
from export.answers import Request, c_library_answers, object_loader_answers
from export.c_library import LibraryNotFound
from export.client import Client
from export.meta_graph import read_meta_graph
from export.rest_client import RestClient
from export.server import Server
from tests.tiny_run import PAIRS, Place
from tests.tiny_translator import export_unchecked
from tf_transformer import Translator

# So that its answers mean something.
LONGER = (
    "model.hidden_dim=32",
    "model.dropout=0.0",
    "training.epochs=25",
    "training.warmup_steps=80",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    given = os.environ.get("TF_TRANSFORMER_RUN")
    if given:
        return Path(given)
    place = Place(tmp_path_factory.mktemp("one_model"))
    place.train(place.folder / "run", *LONGER)
    return place.folder / "run"


@pytest.fixture(scope="module")
def lines():
    given = os.environ.get("TF_TRANSFORMER_LINES")
    if given:
        return Path(given).read_text(encoding="utf-8").splitlines()
    return [source for source, _ in PAIRS[70:]]


@pytest.fixture(scope="module")
def translator(run):
    # What every engine has: greedy search, the score the sum of log-probabilities.
    return Translator.load(run, search="greedy", alpha=0.0)


@pytest.fixture(scope="module")
def expected(translator, lines):
    """Texts and scores in process."""
    found = list(translator.stream(lines))
    assert len({one["text"] for one in found}) > 1, (
        "a model that always says the same proves little"
    )
    return [one["text"] for one in found], [one["score"] for one in found]


@pytest.fixture(scope="module")
def saved_model(translator, tmp_path_factory):
    return export_unchecked(translator, tmp_path_factory.mktemp("models"))


def agree(expected, texts, scores=None):
    right, numbers = expected
    assert [text.decode() if isinstance(text, bytes) else text for text in texts] == right
    if scores is not None:
        np.testing.assert_allclose(scores, numbers, atol=1e-3)


def test_a_keras_file(translator, expected, lines, tmp_path):
    translator.model.save(tmp_path / "model.keras")
    model = keras.models.load_model(tmp_path / "model.keras")
    sides = translator.tokenizers.source, translator.tokenizers.target
    found = list(Translator(model, *sides, translator.options).stream(lines))
    agree(expected, [one["text"] for one in found], [one["score"] for one in found])


def test_a_saved_model_by_pythons_loader(saved_model, expected, lines):
    request = Request("translate", {"text": np.array([x.encode() for x in lines], object)})
    (found,) = object_loader_answers(saved_model, [request])
    agree(expected, found["text"], found["score"])


def test_a_saved_model_as_a_server_loads_it(saved_model, expected, lines):
    with SessionModel(saved_model) as model:
        found = model("serving_default", {"text": np.array([x.encode() for x in lines], object)})
    agree(expected, found["text"], found["score"])


def test_a_saved_model_in_the_c_library_without_python_tensorflow(saved_model, expected, lines):
    request = Request("translate", {"text": np.array([x.encode() for x in lines], object)})
    try:
        (found,) = c_library_answers(saved_model, read_meta_graph(saved_model), [request])
    except LibraryNotFound as error:
        pytest.skip(str(error))
    agree(expected, found["text"].tolist(), found["score"])


@pytest.fixture(scope="module")
def server(saved_model):
    with Server(saved_model.parent, name="one") as running:
        yield running


@pytest.mark.parametrize("kind", [Client, RestClient])
def test_a_saved_model_behind_a_server(kind, server, expected, lines):
    """Many small requests, which the server joins with one another."""
    port = server.port if kind is Client else server.rest_port
    with kind(f"127.0.0.1:{port}", "one") as client:
        found = list(client.stream(lines, batch=7))
    agree(expected, [row["text"] for row in found], [row["score"] for row in found])


def test_litert(translator, expected, lines, tmp_path):
    pytest.importorskip("ai_edge_litert", reason="the extra litert is not installed")
    from export.litert_check import open_file

    if obstacle := translator.tokenizers.target.litert_obstacle:
        pytest.skip(f"LiteRT takes no text of this run: {obstacle}")
    path = export_litert(translator, tmp_path / "model.tflite")
    translate = open_file(path.read_bytes()).get_signature_runner("translate")
    found = [translate(text=np.array([line.encode()], object)) for line in lines]
    agree(expected, [x["text"][0].strip() for x in found], [x["score"][0] for x in found])


def test_ctranslate2(translator, expected, lines, tmp_path):
    engine = pytest.importorskip("ctranslate2", reason="the extra ctranslate2 is not installed")
    folder = export_ctranslate2(translator, tmp_path / "ct2")
    model = engine.Translator(str(folder), compute_type="float32", inter_threads=1)
    source, target = translator.tokenizers.source, translator.tokenizers.target
    texts = []
    for line in lines:
        pieces = source.pieces(line)
        longest = len(pieces) + 1 + translator.options.extra_length
        (found,) = model.translate_batch([pieces], beam_size=1, max_decoding_length=longest)
        ids = tf.constant([target.piece_ids(found.hypotheses[0])], tf.int32)
        texts.append(target.detokenize(ids).numpy()[0])
    agree(expected, texts)

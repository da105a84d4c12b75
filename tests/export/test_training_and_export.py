"""A model may have come from anywhere and be in the middle of training; the export is the same."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from export import export_saved_model
from export.answers import Refused, object_loader_answers, session_answers
from export.meta_graph import all_nodes, read_meta_graph
from tests.export.asking import assert_alike, text_requests
from tests.tiny_translator import (
    FRENCH,
    TEXTS,
    make_batch,
    make_translator,
    tokenizers,
)
from tf_transformer.translator import Translator

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def only_scans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each export's answers are compared here, so its own checks leave them out, for time."""
    monkeypatch.setattr("export.checks.check_answers", lambda *arguments: [])


def answers_of(translator: Translator) -> dict[str, np.ndarray]:
    """To TEXTS, in this process."""
    return {key: x.numpy() for key, x in translator.translate(tf.constant(TEXTS)).items()}


def compiled(translator: Translator, rate: float = 0.01, **options: Any) -> keras.Model:
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    translator.model.compile(keras.optimizers.SGD(rate), loss, **options)
    return translator.model


LOADED_FROM_KERAS = """
import sys, keras
from tf_transformer import SentencePieceTokenizer, Translator
from tf_transformer.options import DecodingOptions
from tests.tiny_translator import export_unchecked
folder = sys.argv[1]
model = keras.models.load_model(folder + "/model.keras")
tokenizers = [SentencePieceTokenizer.load(f"{folder}/{x}.model") for x in ("source", "target")]
export_unchecked(Translator(model, *tokenizers, DecodingOptions(extra_length=8)), folder)
"""


@pytest.mark.case("59")
def test_a_fresh_translator_exports(tmp_path: Path) -> None:
    translator = make_translator(seed=5)  # never called before
    folder = export_saved_model(translator, tmp_path)
    (found,) = object_loader_answers(folder, text_requests(TEXTS))
    assert len(TEXTS) == 20
    assert_alike(found, answers_of(translator))


@pytest.mark.case("59")
def test_a_model_from_a_keras_file_exports_in_another_process(tmp_path: Path) -> None:
    translator = make_translator(seed=6)
    translator.model.save(tmp_path / "model.keras")
    for side, tokenizer in zip(("source", "target"), tokenizers(), strict=True):
        tokenizer.save(tmp_path / f"{side}.model")
    command = [sys.executable, "-c", LOADED_FROM_KERAS, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (found,) = object_loader_answers(tmp_path / "1", text_requests(TEXTS))
    assert_alike(found, answers_of(translator))


class ExportInTraining(keras.callbacks.Callback):
    """Exports after the first of several epochs, and notes what the translator says then."""

    def __init__(self, translator: Translator, directory: Path) -> None:
        super().__init__()
        self.translator, self.directory = translator, directory

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        if epoch == 0:
            self.folder = export_saved_model(self.translator, self.directory)
            found = self.translator.translate(tf.constant([FRENCH[0]] * 20))
            self.text, self.score = found["text"].numpy(), found["score"].numpy()


@pytest.mark.case("61")
def test_dropout_is_off_in_the_export_and_on_in_training(tmp_path: Path) -> None:
    translator = make_translator(
        dropout=0.5, attention_dropout=0.5, intermediate_dropout=0.5, embedding_dropout=0.5
    )
    model, batch = compiled(translator), make_batch()
    exporting = ExportInTraining(translator, tmp_path)
    model.fit(*batch, epochs=5, callbacks=[exporting], verbose=0)

    sentence = FRENCH[0].encode()
    requests = text_requests([sentence] * 20, *[[sentence]] * 20)
    for answers in session_answers(exporting.folder, requests):
        assert not isinstance(answers, Refused), answers
        assert set(answers["text"]) == {exporting.text[0]}
        np.testing.assert_allclose(answers["score"], exporting.score[0], rtol=0, atol=1e-4)
    graph = read_meta_graph(exporting.folder)
    assert not [op for op in all_ops(graph) if "random" in op.lower() or "uniform" in op.lower()]

    # The very train step of `fit`, with weights that stand still: only dropout can differ.
    model.optimizer.learning_rate = 0.0
    losses = {float(model.train_on_batch(*batch)) for _ in range(4)}
    assert len(losses) == 4
    assert len({float(model.test_on_batch(*batch)) for _ in range(4)}) == 1


def all_ops(graph: Any) -> set[str]:
    return {node.op for node in all_nodes(graph)}


@pytest.mark.case("63")
def test_a_model_trained_with_xla_exports(tmp_path: Path) -> None:
    translator, batch = make_translator(seed=7), make_batch()
    model = compiled(translator, jit_compile=True)  # "auto", the default, is in the test above
    before = [np.array(weight) for weight in model.get_weights()]
    model.fit(*batch, epochs=2, verbose=0)
    assert any((a != b).any() for a, b in zip(before, model.get_weights(), strict=True))

    folder = export_saved_model(translator, tmp_path)
    for answers in (object_loader_answers, session_answers):
        assert_alike(answers(folder, text_requests(TEXTS))[0], answers_of(translator))
    graph = read_meta_graph(folder)
    for function in graph.graph_def.library.function:
        assert not {"_XlaMustCompile", "_XlaCompile"} & {k for k, v in function.attr.items() if v.b}
    assert not [op for op in all_ops(graph) if op.startswith("Xla")]

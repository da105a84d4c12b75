"""training/callbacks/tensorboard.py and attention_images.py: what TensorBoard reads of a run."""

import json
import struct
import time

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tests.tiny_run import VALID
from tf_transformer.translator import Translator
from training.callbacks.attention_images import AttentionImages
from training.callbacks.tensorboard import TensorBoardLogs
from training.keeping.run_state import RunState
from training.reporting.plots import draw_attention


def events(folder) -> EventAccumulator:
    found = EventAccumulator(str(folder), size_guidance={"images": 0, "tensors": 0})
    found.Reload()
    return found


def points(folder, name: str) -> dict[int, float]:
    return {point.step: point.value for point in events(folder).Scalars(name)}


@pytest.fixture(scope="module")
def history(tiny_run):
    return [json.loads(line) for line in (tiny_run.run / "history.jsonl").read_text().splitlines()]


def test_the_curves_are_the_history(tiny_run, history):
    for folder, prefix, names in (
        ("train", "", ["loss", "nll", "accuracy", "learning_rate"]),
        ("validation", "val_", ["loss", "nll", "accuracy", "bleu"]),
    ):
        for name in names:
            expected = {line["step"]: line[prefix + name] for line in history}
            found = points(tiny_run.run / "logs" / folder, name)
            assert found == pytest.approx(expected, rel=1e-6), (folder, name)
        nll = points(tiny_run.run / "logs" / folder, "nll")
        perplexity = points(tiny_run.run / "logs" / folder, "perplexity")
        assert perplexity == pytest.approx({step: np.exp(x) for step, x in nll.items()}, rel=1e-5)


def test_samples_are_a_table(tiny_run, history):
    found = events(tiny_run.run / "logs/validation").Tensors("samples")
    assert [point.step for point in found] == [10, 20, 30]
    for point, line in zip(found, history, strict=True):
        (text,) = point.tensor_proto.string_val
        for sample, (source, reference) in zip(line["samples"], VALID, strict=False):
            row = f"| {source} | {sample['translation']} | {reference} |"
            assert row in text.decode()


def test_attention_is_a_picture_an_epoch(tiny_run):
    found = events(tiny_run.run / "logs/validation").Images("cross_attention")
    assert [point.step for point in found] == [10, 20, 30]
    for point in found:
        width, height = size_of_png(point.encoded_image_string)
        assert width > height > 100  # two heads, one layer


def size_of_png(content: bytes) -> tuple[int, int]:
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", content[16:24])


def test_the_weights_that_are_drawn(tiny_run):
    """Each piece of the target looks at the pieces of the source, in shares of 1."""
    source, target = VALID[0]
    translator = Translator.load(tiny_run.run)
    translator.model.compile("adam", "mse")
    images = AttentionImages(translator, logs=None)
    weights, rows, columns = images.weights(source, target)
    tokenizers = translator.tokenizers
    assert columns == [*tokenizers.source.pieces(source), "END"]
    assert rows == [*tokenizers.target.pieces(target), "END"]
    assert weights.shape == (1, 2, len(rows), len(columns))
    np.testing.assert_allclose(weights.sum(-1), 1.0, rtol=1e-5)
    # The first piece has seen START alone: another target changes the rows after it only.
    other, others, _ = images.weights(source, VALID[1][1])
    assert others != rows
    np.testing.assert_allclose(other[:, :, 0], weights[:, :, 0], rtol=1e-5)


def test_pieces_that_matplotlib_could_trip_over():
    weights = np.full((2, 3, 2, 2), 0.5, "float32")
    tall = size_of_png(draw_attention(weights, ["$x_$", "日本"], ["$", "\\frac{"]))
    flat = size_of_png(draw_attention(weights[:1], ["$x_$", "日本"], ["$", "\\frac{"]))
    assert tall[1] > flat[1] and tall[0] == flat[0]


def test_what_a_killed_process_wrote_ahead_is_taken_back(tmp_path):
    """It was at update 7 when it was killed, its state at 4: from 5 on the second one counts."""

    class Updates:
        state = RunState()
        learning_rate, speed = 0.5, 100.0

    for steps, loss in ((range(1, 8), 1.0), (range(5, 10), 2.0)):
        logs = TensorBoardLogs(tmp_path, Updates())
        for step in steps:
            Updates.state.logs = {"loss": loss}
            logs.tell({"step": step, "val_nll": loss})
        logs.close()
        time.sleep(1.1)  # files are read in the order of the seconds in their names
    expected = {step: 1.0 if step < 5 else 2.0 for step in range(1, 10)}
    assert points(tmp_path / "train", "loss") == expected
    assert points(tmp_path / "validation", "nll") == expected
    assert len(events(tmp_path / "train").Scalars("loss")) == 9

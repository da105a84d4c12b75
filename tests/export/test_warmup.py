"""export/warmup.py: what a server replays before it serves a version."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2

from export import SessionModel
from export.answers import Request
from export.kit import BATCH_SIZES
from export.meta_graph import read_meta_graph, signatures
from export.warmup import WARMUP_FILE, check_warmup, read_warmup, write_warmup
from tests.export.asking import text_requests
from tests.tiny_translator import tokenizers
from tf_transformer.errors import InputError


def records(folder: Path) -> list[prediction_log_pb2.PredictionLog]:
    """As a server reads them."""
    found = tf.data.TFRecordDataset(str(folder / "assets.extra" / "tf_serving_warmup_requests"))
    return [prediction_log_pb2.PredictionLog.FromString(x) for x in found.as_numpy_iterator()]


@pytest.mark.case("69")
def test_the_records_are_what_a_server_replays(exported: Path) -> None:
    """Each signature, a short and a long text, in every size of batch that a server makes."""
    logs = [log.predict_log.request for log in records(exported)]
    assert 1 <= len(logs) <= 1000
    expected = signatures(read_meta_graph(exported))
    asked: dict[str, set[tuple[int, bool]]] = {name: set() for name in expected}
    for log in logs:
        assert log.HasField("model_spec") and not log.model_spec.name
        signature = expected[log.model_spec.signature_name]
        assert set(log.inputs) == set(signature.inputs)
        for key, tensor in log.inputs.items():
            assert tensor.dtype == signature.inputs[key].dtype
        rows = {tensor.tensor_shape.dim[0].size for tensor in log.inputs.values()}
        if "length" in log.inputs:
            lengths = tf.make_ndarray(log.inputs["length"]).tolist()
        else:
            texts = log.inputs["source" if "source" in log.inputs else "text"].string_val
            lengths = [len(ids) for ids in tokenizers()[0].encode([x.decode() for x in texts])]
        asked[log.model_spec.signature_name].add((rows.pop(), min(lengths) >= 48))
    for name, found in asked.items():
        assert found == {(rows, long) for rows in BATCH_SIZES for long in (False, True)}, name


@pytest.mark.case("69")
def test_the_records_run(exported: Path, session: SessionModel) -> None:
    result = check_warmup(exported, session)
    assert result.ok and result.detail == f"{len(records(exported))} records replayed"


def test_requests_survive_the_file(tmp_path: Path) -> None:
    ids = np.array([[4, 5], [6, 0]], "int32")
    written = [Request("generate_ids", {"ids": ids, "length": np.array([2, 1], "int32")})]
    written += text_requests([b"a\xff", "漢"], [])
    write_warmup(tmp_path, written)
    for found, expected in zip(read_warmup(tmp_path), written, strict=True):
        assert found.signature == expected.signature
        for key, values in expected.inputs.items():
            np.testing.assert_array_equal(found.inputs[key], values)


@pytest.mark.case("69")
@pytest.mark.parametrize(
    "kind", ["no records", "another log", "fails", "unknown", "too many", "none"]
)
def test_a_file_that_would_stop_a_server_is_seen(
    kind: str, exported: Path, session: SessionModel, tmp_path: Path
) -> None:
    path = tmp_path / WARMUP_FILE
    path.parent.mkdir()
    fine = text_requests(["a"])
    if kind == "no records":
        path.write_text("This is a file of text, not of records. " * 9)
        expected = "is no file of warm-up records: corrupted record at 0"
    elif kind == "another log":
        log = prediction_log_pb2.PredictionLog(
            classify_log=prediction_log_pb2.ClassifyLog()
        ).SerializeToString()
        with tf.io.TFRecordWriter(str(path)) as writer:
            writer.write(log)
        expected = "record 1 is no request to predict"
    elif kind == "fails":
        write_warmup(
            tmp_path, [*fine, Request("serving_default", {"words": fine[0].inputs["text"]})]
        )
        expected = "record 2, for serving_default, fails: serving_default takes"
    elif kind == "unknown":
        write_warmup(tmp_path, [*fine, *fine, Request("translate_back", fine[0].inputs)])
        expected = "record 3, for translate_back, fails: "
    elif kind == "too many":
        write_warmup(tmp_path, fine * 1001)
        expected = "1001 records, and a server takes 1 to 1000"
    else:
        write_warmup(tmp_path, [])
        expected = "0 records"
    result = check_warmup(tmp_path, session)
    assert not result.ok
    assert expected in result.detail


def test_no_file_is_no_failure(tmp_path: Path, session: SessionModel) -> None:
    result = check_warmup(tmp_path, session)
    assert result.ok and result.detail.startswith("skipped: there is no assets.extra/")


def test_a_broken_file_is_named(exported: Path, tmp_path: Path) -> None:
    shutil.copytree(exported / "assets.extra", tmp_path / "assets.extra")
    content = (tmp_path / WARMUP_FILE).read_bytes()
    (tmp_path / WARMUP_FILE).write_bytes(content[:-5])
    with pytest.raises(InputError, match="tf_serving_warmup_requests is no file of warm-up"):
        read_warmup(tmp_path)

"""export/saved_model.py: what is written answers like the translator, and harms nothing."""

import errno
import hashlib
import json
import shutil
import threading
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from export import (
    CheckResult,
    ExportError,
    answer_in_fresh_process,
    checks,
    export_saved_model,
    graph_scan,
)
from export.answers import (
    Answers,
    c_library_answers,
    function_answers,
    object_loader_answers,
    session_answers,
)
from export.saved_model import place
from tests.tiny_translator import (
    FRENCH,
    TEXTS,
    export_unchecked,
    make_translator,
    tokenizers,
)
from tf_transformer.errors import InputError
from tf_transformer.translator import Translator


def content(directory: Path) -> dict[str, bytes]:
    """Every file below, by its relative path."""
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


BATCHES = [TEXTS, TEXTS[:1], []]


@pytest.fixture(scope="module")
def expected(translator: Translator) -> list[Answers]:
    """The translator's own answers to BATCHES."""
    return function_answers(translator.translate, BATCHES)


@pytest.fixture(scope="module")
def found(exported: Path) -> dict[str, list[Answers]]:
    """The export's, by each loader."""
    return {
        "object loader": object_loader_answers(exported, BATCHES),
        "session loader": session_answers(exported, BATCHES),
        "C library": c_library_answers(exported, graph_scan.read_meta_graph(exported), BATCHES),
    }


@pytest.mark.parametrize("loader", ["object loader", "session loader", "C library"])
def test_every_loader_gives_the_same_answers(
    loader: str, expected: list[Answers], found: dict[str, list[Answers]]
) -> None:
    assert len(set(expected[0].texts)) > 10, "answers that are all alike prove nothing"
    for answers, right in zip(found[loader], expected, strict=True):
        assert answers.texts == right.texts
        np.testing.assert_allclose(answers.scores, right.scores, rtol=0, atol=1e-4)


@pytest.mark.parametrize("loader", ["object loader", "session loader", "C library"])
def test_the_tokenizers_are_kept_apart(
    loader: str, translator: Translator, found: dict[str, list[Answers]]
) -> None:
    """Two SentencePiece models in one SavedModel have been swapped on reload (text #1304)."""
    token_ids, lengths, _ = translator.encode_source(tf.constant(FRENCH))
    best = translator.generate(token_ids, lengths + translator.options.extra_length)
    ids = [[int(i) for i in row if i not in (0, 2, 3)] for row in best.token_ids[:, 0]]
    source, target = (tokenizer._python for tokenizer in tokenizers())
    right, swapped = (
        [text.strip().encode() for text in side.decode(ids)] for side in (target, source)
    )
    assert right != swapped
    assert found[loader][0].texts[: len(FRENCH)] == right


def test_a_process_without_this_package_answers(translator: Translator, exported: Path) -> None:
    lines = [*FRENCH, "", "漢字"] * 7  # more than one batch
    assert answer_in_fresh_process(exported, lines) == translator(lines)


def test_a_fresh_process_that_fails_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("export.fresh_process._PROGRAM", "raise OSError('no file')")
    with pytest.raises(ExportError, match="not answer in a fresh process: OSError: no file"):
        answer_in_fresh_process(tmp_path, ["a"])


def test_the_signature_is_what_clients_expect(exported: Path) -> None:
    signatures = graph_scan.signatures(graph_scan.read_meta_graph(exported))
    default = signatures["serving_default"]
    assert set(default.inputs) == {"text"}
    assert set(default.outputs) == {"text", "score", "truncated"}
    assert default.method_name == "tensorflow/serving/predict"
    assert default.inputs["text"].dtype == default.outputs["text"].dtype == tf.string
    assert default.outputs["score"].dtype == tf.float32
    assert set(signatures) == {"serving_default", "translate", "source_length"}


def test_source_length_counts_the_tokens_and_end(exported: Path) -> None:
    loaded = tf.saved_model.load(str(exported))
    found = loaded.signatures["source_length"](text=tf.constant([*FRENCH, ""]))["length"]
    expected = [len(ids) + 1 for ids in tokenizers()[0].encode([*FRENCH, ""])]
    assert found.numpy().tolist() == expected


def test_variables_are_saved_once(translator: Translator, exported: Path) -> None:
    shards = exported.glob("variables/variables.data-*")
    size = sum(shard.stat().st_size for shard in shards)
    weights = 4 * translator.model.count_params()
    assert weights <= size < 1.1 * weights + 4096, "the checkpoint's own table is under 4 kB here"


def test_a_moved_directory_answers(exported: Path, expected: list[Answers], tmp_path: Path) -> None:
    there = tmp_path / "first" / "1"
    shutil.copytree(exported, there)
    moved = shutil.move(there, tmp_path / "second")
    shutil.rmtree(tmp_path / "first")
    for answers in (object_loader_answers, session_answers):
        assert answers(Path(moved), [TEXTS])[0].texts == expected[0].texts


def test_metadata_tells_what_is_inside(translator: Translator, exported: Path) -> None:
    metadata = json.loads((exported / "assets.extra" / "metadata.json").read_text("utf-8"))
    weights = b"".join(np.asarray(w, "float32").tobytes() for w in translator.model.get_weights())
    assert metadata["weights_sha256"] == hashlib.sha256(weights).hexdigest()
    assert metadata["decoding"]["extra_length"] == 8
    sizes = [metadata["tokenizers"][side]["vocabulary_size"] for side in ("source", "target")]
    assert sizes == [55, 45]
    assert metadata["versions"]["tensorflow"] == tf.__version__
    text = {"dtype": "string", "shape": [None]}
    score = {"dtype": "float32", "shape": [None]}
    assert metadata["signatures"]["serving_default"] == {
        "inputs": {"text": text},
        "outputs": {"text": text, "score": score, "truncated": {"dtype": "bool", "shape": [None]}},
    }


def test_a_server_of_another_user_may_read_it(exported: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    assert exported.stat().st_mode == plain.stat().st_mode


def test_versions_count_up_and_are_never_overwritten(
    translator: Translator, tmp_path: Path
) -> None:
    (tmp_path / "007").mkdir()
    (tmp_path / "notes").mkdir()
    assert export_unchecked(translator, tmp_path) == tmp_path / "8"
    before = content(tmp_path)
    for taken in (7, 8):
        with pytest.raises(InputError, match=f"Version {taken} exists in .* never overwritten"):
            export_saved_model(translator, tmp_path, version=taken)
    assert content(tmp_path) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["007", "8", "notes"]


@pytest.mark.parametrize("version", [0, -1, "3", 1.0, True])
def test_a_version_is_a_number(translator: Translator, tmp_path: Path, version: object) -> None:
    with pytest.raises(InputError, match="`version` must be a whole number of at least 1"):
        export_saved_model(translator, tmp_path, version=version)  # type: ignore[arg-type]


def test_exports_at_once_get_different_versions(tmp_path: Path) -> None:
    written = [tmp_path / f"written_{i}" for i in range(16)]
    for folder in written:
        folder.mkdir()
        (folder / "saved_model.pb").write_text(folder.name)
    models = tmp_path / "models"
    models.mkdir()
    gate = threading.Barrier(len(written))

    def move(folder: Path) -> None:
        gate.wait()
        place(folder, models, None)

    threads = [threading.Thread(target=move, args=(folder,)) for folder in written]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(int(path.name) for path in models.iterdir()) == list(range(1, 17))
    texts = {path.read_text() for path in models.glob("*/saved_model.pb")}
    assert texts == {folder.name for folder in written}


def test_a_version_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    for name in ("written", "models/3"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "saved_model.pb").write_text(name)
    with pytest.raises(InputError, match="Version 3 exists"):
        place(tmp_path / "written", tmp_path / "models", 3)
    assert content(tmp_path / "models") == {"3/saved_model.pb": b"models/3"}


@pytest.mark.parametrize("exists", [True, False])
def test_a_failed_check_leaves_the_directory_as_it_was(
    translator: Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exists: bool
) -> None:
    directory = tmp_path / "models" / "fr-en"
    if exists:
        (directory / "1").mkdir(parents=True)
        (directory / "1" / "saved_model.pb").write_bytes(b"the first")
    before = content(tmp_path)
    failure = CheckResult("planted", False, "nothing is right")
    monkeypatch.setattr(checks, "SCANS", [lambda graph: failure])
    monkeypatch.setattr(checks, "check_answers", lambda *arguments: [])
    with pytest.raises(ExportError, match="the check `planted` failed: nothing is right"):
        export_saved_model(translator, directory)
    assert content(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == (["models"] if exists else [])
    if exists:
        assert [path.name for path in directory.iterdir()] == ["1"]


def test_a_failed_write_leaves_nothing(
    translator: Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def disk_full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("export.saved_model.write_metadata", disk_full)
    with pytest.raises(InputError, match="cannot be written: No space left on device"):
        export_saved_model(translator, tmp_path / "models")
    assert not list(tmp_path.iterdir())


def test_a_file_is_no_directory(translator: Translator, tmp_path: Path) -> None:
    (tmp_path / "models").write_text("a file")
    with pytest.raises(InputError, match="models cannot be written"):
        export_saved_model(translator, tmp_path / "models")


def test_a_version_is_no_directory_of_versions(translator: Translator, exported: Path) -> None:
    with pytest.raises(InputError, match="is itself a version"):
        export_saved_model(translator, exported)
    assert not list(exported.glob("[0-9]*"))


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision_is_refused(policy: str, tmp_path: Path) -> None:
    keras.config.set_dtype_policy(policy)
    try:
        translator = make_translator()
    finally:
        keras.config.set_dtype_policy("float32")
    with pytest.raises(InputError, match=f"in float32 .*Received: {policy.split('_')[1]}"):
        export_saved_model(translator, tmp_path)
    assert not list(tmp_path.iterdir())

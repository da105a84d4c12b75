"""export/saved_model.py: what is written answers like the translator, and harms nothing."""

import errno
import hashlib
import json
import shutil
import threading
from pathlib import Path
from typing import Any

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
)
from export.answers import (
    c_library_answers,
    function_answers,
    object_loader_answers,
    session_answers,
)
from export.meta_graph import read_meta_graph
from export.places import place, remove_older
from tests.export.asking import assert_alike, text_requests
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


REQUESTS = text_requests(TEXTS, TEXTS[:1], [])


@pytest.fixture(scope="module")
def expected(translator: Translator) -> list[Any]:
    """The translator's own answers to REQUESTS."""
    return function_answers({"serving_default": translator.translate}, REQUESTS)


@pytest.fixture(scope="module")
def found(exported: Path) -> dict[str, list[Any]]:
    """The export's, by each loader."""
    return {
        "object loader": object_loader_answers(exported, REQUESTS),
        "session loader": session_answers(exported, REQUESTS),
        "C library": c_library_answers(exported, read_meta_graph(exported), REQUESTS),
    }


def test_a_server_with_a_gpu_can_run_it(exported: Path) -> None:
    """Nothing asks for TensorFlow's serial executor, which refuses GPUs."""
    assert b"SINGLE_THREADED_EXECUTOR" not in (exported / "saved_model.pb").read_bytes()


@pytest.mark.parametrize("loader", ["object loader", "session loader", "C library"])
def test_every_loader_gives_the_same_answers(
    loader: str, expected: list[Any], found: dict[str, list[Any]]
) -> None:
    assert len(set(expected[0]["text"])) > 10, "answers that are all alike prove nothing"
    for answers, right in zip(found[loader], expected, strict=True):
        assert_alike(answers, right)


@pytest.mark.parametrize("loader", ["object loader", "session loader", "C library"])
def test_the_tokenizers_are_kept_apart(
    loader: str, translator: Translator, found: dict[str, list[Any]]
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
    assert found[loader][0]["text"][: len(FRENCH)].tolist() == right


def test_a_process_without_this_package_answers(translator: Translator, exported: Path) -> None:
    lines = [*FRENCH, "", "漢字"] * 7  # more than one batch
    assert answer_in_fresh_process(exported, lines) == translator(lines)


def test_a_fresh_process_that_fails_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("export.fresh_process._PROGRAM", "raise OSError('no file')")
    with pytest.raises(ExportError, match="not answer in a fresh process: OSError: no file"):
        answer_in_fresh_process(tmp_path, ["a"])


def test_variables_are_saved_once(translator: Translator, exported: Path) -> None:
    shards = exported.glob("variables/variables.data-*")
    size = sum(shard.stat().st_size for shard in shards)
    weights = 4 * translator.model.count_params()
    assert weights <= size < 1.1 * weights + 4096, "the checkpoint's own table is under 4 kB here"


def test_a_moved_directory_answers(exported: Path, expected: list[Any], tmp_path: Path) -> None:
    there = tmp_path / "first" / "1"
    shutil.copytree(exported, there)
    moved = shutil.move(there, tmp_path / "second")
    shutil.rmtree(tmp_path / "first")
    for answers in (object_loader_answers, session_answers):
        assert_alike(answers(Path(moved), REQUESTS[:1])[0], expected[0])


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
    truncated = {"dtype": "bool", "shape": [None]}
    assert metadata["signatures"]["serving_default"] == {
        "inputs": {"text": text},
        "outputs": {"text": text, "score": score, "truncated": truncated},
    }
    graph = (exported / "saved_model.pb").read_bytes()
    assert metadata["files_sha256"]["saved_model.pb"] == hashlib.sha256(graph).hexdigest()
    fingerprint = tf.saved_model.experimental.read_fingerprint(str(exported))
    assert metadata["fingerprint"]["checkpoint_hash"] == str(fingerprint.checkpoint_hash)


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


def numbered(directory: Path, *names: str) -> None:
    for name in names:
        (directory / name).mkdir()
        (directory / name / "saved_model.pb").write_text(name)


@pytest.mark.parametrize(
    ("placed", "keep", "left"),
    [
        ("7", 1, ["7", "9"]),
        ("7", 2, ["6", "7", "9"]),
        ("7", 9, ["002", "3", "6", "7", "9"]),
        ("3", 1, ["3", "6", "7", "9"]),
    ],
)
def test_older_versions_go_when_asked(
    placed: str, keep: int, left: list[str], tmp_path: Path
) -> None:
    """By number, never a newer one, and nothing that is no version."""
    numbered(tmp_path, "002", "3", "6", "7", "9", "notes", "serving")
    gone = remove_older(tmp_path / placed, keep)
    assert sorted(path.name for path in tmp_path.iterdir()) == [*left, "notes", "serving"]
    assert sorted(path.name for path in gone) == sorted({"002", "3", "6", "7", "9"} - {*left})
    assert content(tmp_path)[f"{placed}/saved_model.pb"] == placed.encode()


def test_keep_deletes_only_when_the_new_one_is_in_place(
    translator: Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbered(tmp_path, "1", "2", "3")
    before = content(tmp_path)
    for keep in (0, True, "2"):
        with pytest.raises(InputError, match="`keep` must be a whole number of at least 1"):
            export_unchecked(translator, tmp_path, keep=keep)
    failure = CheckResult("planted", False, "nothing is right")
    with monkeypatch.context() as patch:
        patch.setattr(checks, "SCANS", [lambda graph: failure])
        patch.setattr(checks, "check_answers", lambda *arguments: [])
        with pytest.raises(ExportError):
            export_saved_model(translator, tmp_path, keep=1)
    assert content(tmp_path) == before
    assert export_unchecked(translator, tmp_path, keep=2) == tmp_path / "4"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["3", "4"]


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

"""export/checks.py and graph_scan.py: each fault that a server would choke on is seen."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
import tensorflow_text as tf_text

from export import CheckResult, c_library, checks, run_checks
from export.graph_scan import SCANS, read_meta_graph
from tests.tiny_translator import make_translator, save_module, tokenizers
from tf_transformer.errors import InputError

TEXT = tf.TensorSpec([None], tf.string, name="text")
NUMBERS = tf.TensorSpec([None], tf.float32, name="x")


def scan(folder: Path) -> dict[str, CheckResult]:
    graph = read_meta_graph(folder)
    return {result.name: result for result in (check(graph) for check in SCANS)}


def failures(folder: Path) -> dict[str, str]:
    return {name: result.detail for name, result in scan(folder).items() if not result.ok}


def save(folder: Path, function: Any, *specs: tf.TensorSpec, **options: Any) -> Path:
    """A SavedModel with this function as serving_default."""
    graph = tf.function(function, input_signature=specs, autograph=False, **options)
    return save_module(tf.Module(), folder / "model", serving_default=graph)


def by_name(results: list[CheckResult]) -> dict[str, CheckResult]:
    return {result.name: result for result in results}


def test_a_translator_passes_everything(exported: Path) -> None:
    """Without the translator too, and as the directory of its versions."""
    results = run_checks(exported.parent)
    assert all(result.ok and "skipped" not in result.detail for result in results)
    names = "operations signatures randomness paths object_loader session_loader C_library"
    assert [result.name.replace(" ", "_") for result in results] == names.split()


def test_a_plain_model_passes_the_scans(tmp_path: Path) -> None:
    """The planted faults below are the only difference."""
    assert not failures(save(tmp_path, lambda x: {"y": x + 1.0}, NUMBERS))


def test_code_in_python_is_seen(tmp_path: Path) -> None:
    def function(x: tf.Tensor) -> dict[str, tf.Tensor]:
        y = tf.numpy_function(lambda x: x, [x], tf.float32)
        return {"y": tf.ensure_shape(y, [None])}

    assert failures(save(tmp_path, function, NUMBERS)) == {
        "operations": "PyFunc runs in Python only"
    }


def test_a_function_for_xla_is_seen(tmp_path: Path) -> None:
    found = failures(save(tmp_path, lambda x: {"y": x + 1.0}, NUMBERS, jit_compile=True))
    assert set(found) == {"operations"}
    assert "must be compiled with XLA" in found["operations"]


def test_xla_inside_a_function_is_seen(tmp_path: Path) -> None:
    inner = tf.function(lambda x: x * 2.0, jit_compile=True)
    found = failures(save(tmp_path, lambda x: {"y": inner(x)}, NUMBERS))
    assert "must be compiled with XLA" in found["operations"]


def test_an_operation_that_servers_lack_is_seen(tmp_path: Path) -> None:
    def function(text: tf.Tensor) -> dict[str, tf.Tensor]:
        trimmer = tf_text.RoundRobinTrimmer(5)
        return {"x": trimmer.trim([tf.strings.bytes_split(text)])[0].to_tensor()}

    found = failures(save(tmp_path, function, TEXT))
    assert found == {"operations": "TFText>RoundRobinTrim is unknown to TF Serving before 2.20"}


@pytest.mark.parametrize(
    ("function", "specs", "problem"),
    [
        (
            lambda x, n: {"y": x + n},
            (NUMBERS, tf.TensorSpec([], tf.float32, name="n")),
            "serving_default: input `n` is a scalar",
        ),
        (lambda x: {"n": tf.size(x)}, (NUMBERS,), "serving_default: output `n` is a scalar"),
        (
            lambda x: {"y": x},
            (tf.TensorSpec([4], tf.float32, name="x"),),
            "serving_default: input `x` has the fixed batch size 4; "
            "serving_default: output `y` has the fixed batch size 4",
        ),
        (
            lambda x: {"y": tf.reshape(x, tf.cast(x, tf.int32))},
            (NUMBERS,),
            "serving_default: output `y` has an unknown rank",
        ),
        (
            lambda text: {"pieces": tf.strings.split(text)},
            (TEXT,),
            "serving_default: output `pieces` is ragged or sparse",
        ),
    ],
    ids=["scalar input", "scalar output", "fixed batch", "unknown rank", "ragged"],
)
def test_a_tensor_that_cannot_be_batched_is_seen(
    function: Any, specs: tuple, problem: str, tmp_path: Path
) -> None:
    assert failures(save(tmp_path, function, *specs)) == {"signatures": problem}


def test_a_missing_default_is_seen(tmp_path: Path) -> None:
    function = tf.function(lambda x: {"y": x}, input_signature=[NUMBERS])
    folder = save_module(tf.Module(), tmp_path / "model", other=function)
    assert failures(folder) == {"signatures": "there is no serving_default"}


@pytest.mark.parametrize(
    "noise",
    [
        lambda x: tf.nn.dropout(x, 0.5),
        lambda x: tf.random.stateless_normal(tf.shape(x), [1, 2]) + x,
        lambda x: tf.cast(tf.random.categorical([[0.5, 0.5]], 1)[0], tf.float32) + x,
        lambda x: tf.random.shuffle(x),
        lambda x: tf.map_fn(lambda y: y + tf.random.truncated_normal([]), x),
    ],
    ids=["dropout", "stateless", "categorical", "shuffle", "in a loop"],
)
def test_randomness_is_seen(noise: Any, tmp_path: Path) -> None:
    folder = save(tmp_path, lambda x: {"y": tf.ensure_shape(noise(x), [None])}, NUMBERS)
    assert set(failures(folder)) == {"randomness"}


def test_randomness_that_no_signature_reaches_is_none(tmp_path: Path) -> None:
    """Somebody's SavedModel may hold its training step beside what is served."""
    module = tf.Module()
    module.train = tf.function(lambda x: tf.nn.dropout(x, 0.5), input_signature=[NUMBERS])
    serve = tf.function(lambda x: {"y": x * 2.0}, input_signature=[NUMBERS])
    assert not failures(save_module(module, tmp_path / "model", serving_default=serve))


def test_a_path_of_this_machine_is_seen(tmp_path: Path) -> None:
    table = tmp_path / "words.txt"
    table.write_text("a\nb\n")

    def function(text: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"y": tf.strings.join([text, tf.io.read_file(os.fspath(table))])}

    found = failures(save(tmp_path, function, TEXT))
    assert found == {"paths": f"{os.fspath(table)!r} is a path of this machine"}


def test_what_the_object_loader_alone_restores_is_seen(tmp_path: Path) -> None:
    """A tf.Module around a Keras model: right in Python, without variables in a server."""
    translator = make_translator(seed=2)
    save_module(translator, tmp_path, serving_default=translator.translate)
    results = by_name(run_checks(tmp_path, translator))
    assert results["object loader"].ok
    for name in ("session loader", "C library"):
        assert not results[name].ok
        assert results[name].detail.startswith("it does not answer: Could not find variable")


def test_swapped_tokenizers_are_seen(tmp_path: Path, without_c_library: None) -> None:
    """Without names of their own, Python's loader takes one for the other (text #1304)."""
    module = tf.Module()
    module.tokenizers = [
        tf_text.SentencepieceTokenizer(tokenizer.model) for tokenizer in tokenizers()
    ]

    def translate(text: tf.Tensor) -> dict[str, tf.Tensor]:
        source, target = module.tokenizers
        ids = source.tokenize(text) % target.vocab_size()
        return {"text": target.detokenize(ids), "score": tf.zeros(tf.shape(text))}

    function = tf.function(translate, input_signature=[TEXT], autograph=False)
    results = by_name(run_checks(save_module(module, tmp_path / "model", serving_default=function)))
    assert not results["session loader"].ok
    assert "it answers" in results["session loader"].detail


def test_other_answers_than_the_translators_are_seen(
    exported: Path, without_c_library: None
) -> None:
    results = by_name(run_checks(exported, make_translator(seed=4)))
    for name in ("object loader", "session loader"):
        assert not results[name].ok
        assert "it answers" in results[name].detail


def test_what_is_no_translator_is_scanned_only(tmp_path: Path) -> None:
    results = run_checks(save(tmp_path, lambda x: {"y": x + 1.0}, NUMBERS))
    assert results[-1].ok
    assert results[-1].detail.startswith("skipped: serving_default does not map `text`")


def echo(text: tf.Tensor) -> dict[str, tf.Tensor]:
    return {"text": text, "score": tf.zeros(tf.shape(text))}


def test_text_that_is_not_utf8_is_seen(tmp_path: Path, without_c_library: None) -> None:
    result = by_name(run_checks(save(tmp_path, echo, TEXT)))["session loader"]
    assert not result.ok
    assert "which is not UTF-8" in result.detail


@pytest.fixture
def without_c_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*arguments: Any) -> Any:
        raise c_library.LibraryNotFound("there is no libtensorflow_cc.* in /nowhere")

    monkeypatch.setattr(checks, "c_library_answers", missing)


def test_a_missing_library_is_said_and_no_failure(tmp_path: Path, without_c_library: None) -> None:
    result = run_checks(save(tmp_path, echo, TEXT))[-1]
    assert result.ok
    assert result.detail == "skipped: there is no libtensorflow_cc.* in /nowhere"


def test_the_c_library_needs_no_package_of_python() -> None:
    """Isolated and without site-packages it starts, and says that TensorFlow is not there."""
    command = [sys.executable, "-I", "-S", c_library.__file__, "model", "in:0", "out:0"]
    done = subprocess.run(command, input="[]", capture_output=True, text=True)
    assert done.returncode == c_library.NO_LIBRARY
    assert done.stderr.strip() == "the package tensorflow is not installed"


def test_nothing_to_check(tmp_path: Path, exported: Path) -> None:
    with pytest.raises(InputError, match="is not a SavedModel: there is no saved_model.pb"):
        run_checks(tmp_path)
    (tmp_path / "saved_model.pb").write_bytes(b"\xff\xff\xff")
    with pytest.raises(InputError, match="saved_model.pb cannot be read"):
        run_checks(tmp_path)
    (tmp_path / "saved_model.pb").write_bytes(b"")
    with pytest.raises(InputError, match='has no graph with the tag "serve"'):
        run_checks(tmp_path)


def test_a_half_copied_model_is_seen(exported: Path, tmp_path: Path) -> None:
    shutil.copytree(exported, tmp_path / "model")
    shutil.rmtree(tmp_path / "model" / "variables")
    results = by_name(run_checks(tmp_path / "model"))
    for name in ("object loader", "session loader", "C library"):
        assert not results[name].ok
        assert results[name].detail.startswith("it does not answer: ")

"""export/checks.py and graph_scan.py: each fault that a server would choke on is seen."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
import tensorflow_text as tf_text

from export import CheckResult, c_library, checks, make_endpoints, run_checks
from export.file_scan import check_metadata, check_size
from export.graph_scan import SCANS, check_servers
from export.meta_graph import read_meta_graph
from tests.tiny_translator import export_unchecked, make_translator, save_module, tokenizers
from tf_transformer.errors import InputError
from tf_transformer.translator import Translator

TEXT = tf.TensorSpec([None], tf.string, name="text")
NUMBERS = tf.TensorSpec([None], tf.float32, name="x")


def scan(folder: Path) -> dict[str, CheckResult]:
    graph = read_meta_graph(folder)
    return {result.name: result for result in (check(graph) for check in [*SCANS, check_servers])}


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
    reported: list[CheckResult] = []
    results = run_checks(exported.parent, report=reported.append)
    assert all(result.ok and "skipped" not in result.detail for result in results), results
    names = """servers operations signatures randomness training tokenizers paths size metadata
        object_loader session_loader sendable warm-up C_library"""
    assert [result.name.replace(" ", "_") for result in results] == names.split()
    assert reported == results


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
    assert found == {
        "servers": "; ".join(
            f"TensorFlow Serving {version} lacks TFText>RoundRobinTrim"
            for version in ("2.16", "2.17", "2.18", "2.19")
        )
    }


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


def test_a_file_that_is_opened_is_seen(tmp_path: Path) -> None:
    table = tmp_path / "words.txt"
    table.write_text("a\nb\n")

    def function(text: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"y": tf.strings.join([text, tf.io.read_file(os.fspath(table))])}

    found = failures(save(tmp_path, function, TEXT))
    assert found == {"paths": f"{os.fspath(table)!r} is opened by ReadFile"}


def test_a_folder_of_this_machine_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")

    def function(text: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"y": tf.strings.join([text, "model of /home/somebody/runs/7"])}

    found = failures(save(tmp_path, function, TEXT))
    assert found == {"paths": "'model of /home/somebody/runs/7' is a path of this machine"}


def test_words_that_look_like_paths_are_no_paths(tmp_path: Path) -> None:
    """A vocabulary may hold /tmp and /usr/lib, which exist here too."""

    def function(text: tf.Tensor) -> dict[str, tf.Tensor]:
        words = tf.constant(["/tmp", "/usr/lib", os.__file__, "/usr/local", "/"])
        text = tf.strings.regex_replace(text, "/usr", "/tmp")
        return {"y": tf.strings.join([text, tf.gather(words, tf.strings.length(text) % 5)])}

    assert not failures(save(tmp_path, function, TEXT))


def test_an_asset_of_the_model_is_no_path_of_this_machine(tmp_path: Path) -> None:
    table = tmp_path / "words.txt"
    table.write_text("a\n/tmp\n")
    module = tf.Module()
    kind = tf.lookup.TextFileIndex
    initializer = tf.lookup.TextFileInitializer(
        str(table), tf.string, kind.WHOLE_LINE, tf.int64, kind.LINE_NUMBER
    )
    module.table = tf.lookup.StaticVocabularyTable(initializer, 1)
    function = tf.function(lambda text: {"id": module.table.lookup(text)}, input_signature=[TEXT])
    assert not failures(save_module(module, tmp_path / "model", serving_default=function))


def test_what_trains_at_a_request_is_seen(tmp_path: Path) -> None:
    module = tf.Module()
    module.count = tf.Variable(0.0)

    def counting(x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"y": x + module.count.assign_add(1.0)}

    function = tf.function(counting, input_signature=[NUMBERS], autograph=False)
    found = failures(save_module(module, tmp_path / "model", serving_default=function))
    assert found == {"training": "AssignAddVariableOp changes the model at a request"}


@pytest.mark.parametrize("extra", ["nothing", "a copy", "an optimizer"])
def test_variables_that_no_signature_needs_are_seen(extra: str, tmp_path: Path) -> None:
    module = tf.Module()
    module.weights = [tf.Variable(tf.zeros([100, 1000]))]
    module.copies = [tf.Variable(tf.zeros([100, 1000]))] * (extra == "a copy")
    module.optimizer = [tf.Variable(tf.zeros([100, 1000])) for _ in range(2)]
    if extra != "an optimizer":
        module.optimizer = []
    function = tf.function(
        lambda x: {"y": x + module.weights[0][0, 0]}, input_signature=[NUMBERS], autograph=False
    )
    folder = save_module(module, tmp_path / "model", serving_default=function)
    result = check_size(folder, read_meta_graph(folder))
    stored = {"nothing": 0.38, "a copy": 0.76, "an optimizer": 1.14}[extra]  # MiB of 400,000 bytes
    assert result.detail == f"{stored} MiB of variables stored, 0.38 MiB used by signatures"
    assert result.ok == (extra == "nothing")


def test_a_file_that_is_not_the_one_exported_is_seen(exported: Path, tmp_path: Path) -> None:
    shutil.copytree(exported, tmp_path / "model")
    graph = read_meta_graph(exported)
    assert check_metadata(tmp_path / "model", graph).ok
    (index,) = (tmp_path / "model" / "variables").glob("*.index")
    index.write_bytes(index.read_bytes()[:-1] + b"x")
    (tmp_path / "model" / "assets" / "more.txt").write_text("words")
    result = check_metadata(tmp_path / "model", graph)
    assert not result.ok
    expected = "assets/more.txt, variables/variables.index"
    assert result.detail == f"not the file that was exported: {expected}"
    (tmp_path / "model" / "assets.extra" / "metadata.json").write_text("{}")
    assert "metadata.json is broken" in check_metadata(tmp_path / "model", graph).detail


def test_what_the_object_loader_alone_restores_is_seen(tmp_path: Path) -> None:
    """A tf.Module around a Keras model: right in Python, without variables in a server."""
    translator = make_translator(seed=2)
    save_module(translator, tmp_path, serving_default=translator.translate)
    results = by_name(run_checks(tmp_path, make_endpoints(translator, ["translate"])))
    assert results["this process"].ok and results["object loader"].ok
    for name in ("session loader", "C library"):
        assert not results[name].ok
        assert "it does not answer: Could not find variable" in results[name].detail


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
    assert "of `text` is" in results["session loader"].detail
    assert not results["tokenizers"].ok
    assert "2 SentencePiece models are called" in results["tokenizers"].detail


def test_other_answers_than_the_translators_are_seen(
    translator: Translator, tmp_path: Path, without_c_library: None
) -> None:
    folder = export_unchecked(translator, tmp_path, signatures=["translate"])
    endpoints = make_endpoints(make_translator(seed=4), ["translate"])
    results = by_name(run_checks(folder, endpoints))
    for name in ("object loader", "session loader"):
        assert not results[name].ok
        assert re.search(r"row \d of `\w+` is ", results[name].detail)


def test_what_is_no_translator_is_asked_too(tmp_path: Path) -> None:
    results = by_name(run_checks(save(tmp_path, lambda x: {"y": x + 1.0}, NUMBERS)))
    assert all(result.ok for result in results.values())
    assert results["object loader"].detail == "1 signatures, 3 requests answered"
    assert results["C library"].detail == "3 requests answered alike"
    for name in ("metadata", "warm-up"):
        assert results[name].detail.startswith("skipped: there is no assets.extra/")


def test_widths_that_depend_on_the_batch_are_seen(tmp_path: Path, without_c_library: None) -> None:
    """A server joins the requests of strangers: each would get the width of the longest."""

    def function(text: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"letters": tf.strings.bytes_split(text).to_tensor()}

    result = by_name(run_checks(save(tmp_path, function, TEXT)))["sendable"]
    assert not result.ok
    assert "serving_default: output `letters` is as wide as its batch" in result.detail


def test_numbers_that_json_lacks_are_seen(tmp_path: Path, without_c_library: None) -> None:
    function = lambda x: {"y": tf.math.log(x * 0.0)}  # noqa: E731
    result = by_name(run_checks(save(tmp_path, function, NUMBERS)))["sendable"]
    assert (
        result.detail == "serving_default: output `y` is not finite, and JSON has no word for that"
    )


def test_what_a_model_does_not_accept_is_said(tmp_path: Path, without_c_library: None) -> None:
    """Somebody's model may take numbers that are none of ours; zeros at least are tried."""

    def picky(x: tf.Tensor) -> dict[str, tf.Tensor]:
        tf.debugging.assert_less(tf.abs(x), 0.001)
        return {"y": x}

    def refusing(x: tf.Tensor) -> dict[str, tf.Tensor]:
        tf.debugging.assert_greater(x, 1e6, message="too small")
        return {"y": x}

    for function, expected in (
        (picky, "1 signatures, 3 requests answered"),
        (
            refusing,
            "0 signatures, 1 requests answered; skipped: serving_default accepts no probe: ",
        ),
    ):
        folder = save(tmp_path / function.__name__, function, NUMBERS)
        result = by_name(run_checks(folder))["object loader"]
        assert result.ok and result.detail.startswith(expected)


def test_a_server_that_is_not_known_is_named(exported: Path) -> None:
    with pytest.raises(InputError, match="`server` must be one of 2.16, .*Received: '3.0'"):
        run_checks(exported, servers=["2.20", "3.0"])


def echo(text: tf.Tensor) -> dict[str, tf.Tensor]:
    return {"text": text, "score": tf.zeros(tf.shape(text))}


def test_text_that_is_not_utf8_is_seen(tmp_path: Path, without_c_library: None) -> None:
    result = by_name(run_checks(save(tmp_path, echo, TEXT)))["sendable"]
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
    command = [sys.executable, "-I", "-S", c_library.__file__, "model"]
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
    assert results["metadata"].detail.startswith("not the file that was exported: variables/")
    for name in ("object loader", "session loader", "C library"):
        assert not results[name].ok
        assert re.match("it does not load: |.*it does not answer: ", results[name].detail)

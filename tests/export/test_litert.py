"""One LiteRT file: the same ids and texts as in process, with built-in operations only."""

import io
import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import tensorflow as tf

from export.id_endpoints import generate_ids
from export.litert import TEXT_OPERATIONS, export_litert, text_obstacle
from export.litert_check import check_answers, open_file
from export.litert_graph import convert, custom_operations
from export.parts import Parts
from export.result import ExportError
from tests.tiny_translator import FRENCH, TEXTS, make_config, make_translator
from tests.trained_translator import trained_translator
from tf_transformer import build_transformer
from tf_transformer.errors import InputError
from tf_transformer.tokenizers import SentencePieceTokenizer

pytest.importorskip("ai_edge_litert", reason="the extra litert is not installed")

# Of 1 to 30 tokens, in groups of other sizes; bytes that are not UTF-8 are for `translate` alone.
SENTENCES = [*FRENCH, "", "le", "x", *("le chat dort " * n for n in range(1, 10))]


@pytest.fixture(scope="module")
def translator():
    return trained_translator().with_options(num_beams=3, max_source_length=40)


@pytest.fixture(scope="module")
def content(translator, tmp_path_factory):
    path = tmp_path_factory.mktemp("litert") / "deep" / "model.tflite"
    assert export_litert(translator, path) == path
    assert [other.name for other in path.parent.iterdir()] == ["model.tflite"]
    return path.read_bytes()


@pytest.mark.case("71")
@pytest.mark.parametrize(
    "name, search", [("generate_ids", "beam"), ("generate_ids_greedy", "greedy")]
)
def test_ids_are_those_of_the_graph_without_operations_of_others(translator, content, name, search):
    run = open_file(content, text_operations=False).get_signature_runner(name)
    endpoint = generate_ids(Parts(translator.with_options(search=search)))
    first = 0
    for size in (1, 3, 7, 2, 7):
        request = endpoint.request(SENTENCES[first : first + size])
        expected, found = endpoint.answer(**request), run(**request)
        for key in ("ids", "length", "truncated"):
            np.testing.assert_array_equal(found[key], expected[key].numpy(), err_msg=key)
        np.testing.assert_allclose(found["score"], expected["score"].numpy(), atol=1e-4)
        first += size
    assert first == len(SENTENCES)


def test_texts_are_those_of_the_graph(translator, content):
    run = open_file(content).get_signature_runner("translate")
    texts = [*TEXTS, *(sentence.encode() for sentence in SENTENCES)]
    # Bytes that are not UTF-8 get an answer, but LiteRT cannot repair them as the graph does.
    assert all(run(text=np.array([text], object))["text"].shape == (1,) for text in texts)
    texts = [text for text in texts if text.decode("utf-8", "replace").encode() == text]
    expected = translator.translate(tf.constant(texts))
    for place, text in enumerate(texts):
        found = run(text=np.array([text], object))
        unknown_at_an_end = b"\xe2\x81\x87" in found["text"][0]
        answer = found["text"][0].strip() if unknown_at_an_end else found["text"][0]
        assert answer == expected["text"].numpy()[place], text
        assert found["truncated"][0] == expected["truncated"].numpy()[place], text
        np.testing.assert_allclose(found["score"][0], expected["score"].numpy()[place], atol=1e-4)


@pytest.mark.case("73")
def test_the_only_operations_that_are_not_built_in_are_the_two_of_text(content):
    assert custom_operations(content) == set(TEXT_OPERATIONS)
    plain = open_file(content, text_operations=False)
    with pytest.raises((RuntimeError, ValueError), match="(?i)unresolved custom op"):
        plain.get_signature_runner("translate")(text=np.array([b"le chat"], object))


def test_the_readers_example_runs_without_tensorflow(content, tmp_path):
    """The vocabulary is in the file: pieces in, pieces out, with numpy and LiteRT alone."""
    (tmp_path / "model.tflite").write_bytes(content)
    script = """
import sys, zipfile
import numpy as np
from ai_edge_litert.interpreter import Interpreter
archive = zipfile.ZipFile(sys.argv[1])
read = lambda name: archive.read(name).decode().splitlines()
source, target = read("source_vocabulary.txt"), read("target_vocabulary.txt")
ids = [source.index(piece) for piece in sys.argv[2].split()] + [3]
run = Interpreter(sys.argv[1]).get_signature_runner("generate_ids")
found = run(ids=np.array([ids], np.int32), length=np.array([len(ids)], np.int32))
print("".join(target[i] for i in found["ids"][0] if i > 3).replace("\\u2581", " ").strip())
assert "tensorflow" not in sys.modules
"""
    pieces = trained_translator().tokenizers.source.pieces(FRENCH[0])
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "model.tflite"), " ".join(pieces)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == trained_translator()([FRENCH[0]])[0]


def test_the_file_is_an_archive_of_its_vocabulary(translator, content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        metadata = json.loads(archive.read("metadata.json"))
        pieces = archive.read("source_vocabulary.txt").decode().split("\n")
        assert archive.read("target.model") == translator.tokenizers.target.content
    assert pieces[:-1] == translator.tokenizers.source.vocabulary()
    assert metadata["signatures"] == ["generate_ids", "generate_ids_greedy", "translate"]
    assert metadata["search"] == {"search": "beam", "num_beams": 3, "alpha": 0.6}
    assert metadata["max_target_length"] == 40 + translator.options.extra_length


@pytest.mark.slow
@pytest.mark.parametrize("quantization", ["float16", "int8"])
def test_a_quantized_file_still_knows_what_was_learnt(quantization, tmp_path):
    translator = trained_translator().with_options(search="greedy", max_source_length=40)
    path = export_litert(translator, tmp_path / "model.tflite", quantization)
    run = open_file(path.read_bytes()).get_signature_runner("translate")
    found = [run(text=np.array([text.encode()], object))["text"][0].decode() for text in FRENCH]
    assert sum(a == b for a, b in zip(found, translator(FRENCH), strict=True)) >= 7


def test_quantized_weights_are_smaller():
    kernel = tf.random.stateless_normal([256, 256], [1, 2])
    spec = [tf.TensorSpec([None, 256], tf.float32, name="x")]
    functions = {"product": (lambda x: {"y": tf.matmul(x, kernel)}, spec)}
    sizes = {kind: len(convert(functions, {}, kind)) for kind in (None, "float16", "int8")}
    assert sizes["float16"] < 0.55 * sizes[None]
    assert sizes["int8"] < 0.3 * sizes[None]


def test_without_litert_operations_for_its_text_a_file_takes_ids(tmp_path):
    pieces = SentencePieceTokenizer.train(FRENCH, 40, model_type="bpe", hard_vocab_limit=True)
    translator = make_translator()
    config = make_config(position="learned")
    sides = translator.tokenizers.source, pieces
    model = build_transformer(
        type(config)(**{**vars(config), "target_vocabulary_size": pieces.vocabulary_size})
    )
    mixed = type(translator)(model, *sides, translator.options).with_options(search="greedy")
    assert text_obstacle(mixed) == "of the target side, its SentencePiece model is bpe, not unigram"
    path = export_litert(mixed, tmp_path / "model.tflite")
    assert custom_operations(path.read_bytes()) == set()
    assert [*open_file(path.read_bytes()).get_signature_list()] == ["generate_ids"]


def test_an_operation_that_no_runtime_has_is_found_at_once():
    spec = [tf.TensorSpec([None], tf.float32, name="x")]
    functions = {"product": (lambda x: {"y": tf.math.cumprod(x)}, spec)}
    with pytest.raises(ExportError, match="no operation Cumprod"):
        convert(functions, {"product": TEXT_OPERATIONS})
    with pytest.raises(ExportError, match="LiteRT has no such operations"):
        convert(functions, {})


def test_a_file_of_another_model_is_refused(translator, content):
    other = make_translator(seed=2).with_options(num_beams=3, max_source_length=40)
    with pytest.raises(ExportError, match="`generate_ids.*` answers otherwise"):
        check_answers(content, other.with_options(extra_length=20), exact=True)
    check_answers(content, other.with_options(extra_length=20), exact=False)


def test_what_is_there_and_what_is_unknown_is_refused(tmp_path):
    path = tmp_path / "model.tflite"
    path.write_text("mine")
    with pytest.raises(InputError, match="exists and is never overwritten"):
        export_litert(make_translator(), path)
    assert path.read_text() == "mine"
    with pytest.raises(InputError, match="`quantization` must be one of float16, int8"):
        export_litert(make_translator(), tmp_path / "new", "int4")
    with pytest.raises(InputError, match="cannot be written"):
        from export.litert import _write

        _write(b"", path / "below")

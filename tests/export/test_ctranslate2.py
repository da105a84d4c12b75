"""The same weights in CTranslate2's engine: the same tokens and scores."""

import json

import numpy as np
import pytest
import tensorflow as tf

from export.ctranslate2 import export_ctranslate2
from export.ctranslate2_search import search_arguments
from tests.tiny_translator import ENGLISH, FRENCH, TEXTS, make_batch, make_translator
from tests.trained_translator import trained_translator
from tf_transformer.errors import InputError
from tf_transformer.tokenizers import SentencePieceTokenizer

ctranslate2 = pytest.importorskip("ctranslate2", reason="the extra ctranslate2 is not installed")

LENGTH = 12
VARIANTS = {
    "the paper": {},
    "pre-norm": dict(norm_first=True, num_layers=2, num_decoder_layers=1),
    "gelu, gated": dict(activation="gelu", gated=True),
    "swish": dict(activation="swish", norm_first=True),
    "no biases": dict(attention_bias=False),
    "no output bias": dict(output_bias=False),
    "padded vocabulary": dict(pad_vocabulary_to=8),
    "epsilon": dict(layer_norm_epsilon=1e-2),
    "halves": dict(position="sinusoidal_halves"),
    "learned": dict(position="learned", max_positions=64),
    "relative": dict(position="relative", max_relative_distance=3),
    "rotary": dict(position="rotary"),
    "no positions": dict(position="none"),
}


def ours(translator, texts, length=LENGTH):
    ids = translator.encode_source(tf.constant(texts)).token_ids
    found = translator.generate(ids, tf.fill([len(texts)], length))
    names = translator.tokenizers.target.vocabulary()
    rows = []
    for row in range(len(texts)):
        ids = found.token_ids[row, 0, : found.lengths[row, 0]].numpy()
        rows.append([names[i] for i in ids if i != 3])
    return rows


def theirs(translator, folder, texts, **arguments):
    engine = ctranslate2.Translator(str(folder), compute_type="float32", inter_threads=1)
    source = [translator.tokenizers.source.pieces(text.decode()) for text in texts]
    settings = {**search_arguments(translator), "max_decoding_length": LENGTH, **arguments}
    return [found.hypotheses[0] for found in engine.translate_batch(source, **settings)]


@pytest.mark.parametrize("fields", VARIANTS.values(), ids=VARIANTS)
def test_tokens_and_probabilities_are_the_same(fields, tmp_path):
    translator = make_translator(**{"output_bias": True, **fields})
    translator = translator.with_options(search="greedy", alpha=0.0)
    if fields.get("output_bias", True):
        # Where PAD and START have no share of the probability, the engine's is ours.
        bias = translator.model.get_layer("decoder_embedding").bias
        bias.assign(np.where(np.isin(np.arange(bias.shape[0]), [0, 2]), -50.0, bias))
    folder = export_ctranslate2(translator, tmp_path / "ct2", max_positions=64)
    texts = [text.encode() for text in FRENCH]
    assert theirs(translator, folder, texts) == ours(translator, texts)
    if fields.get("output_bias", True):
        for row, (expected, found) in enumerate(forced(translator, folder)):
            np.testing.assert_allclose(found, expected, atol=1e-4, err_msg=f"sentence {row}")


def forced(translator, folder):
    """Of each pair the log-probabilities of its target tokens and END: ours, the engine's."""
    inputs, labels = make_batch()
    log_probs = tf.nn.log_softmax(translator.model(inputs)).numpy()
    engine = ctranslate2.Translator(str(folder), compute_type="float32", inter_threads=1)
    pieces = [
        [tokenizer.pieces(text) for text in texts]
        for tokenizer, texts in (
            (translator.tokenizers.source, FRENCH),
            (translator.tokenizers.target, ENGLISH),
        )
    ]
    for row, found in enumerate(engine.score_batch(*pieces)):
        live = labels[row] != 0
        yield log_probs[row, live, labels[row, live]], found.log_probs


def test_beam_search_of_a_trained_model(tmp_path):
    translator = trained_translator().with_options(num_beams=4, alpha=0.0)
    texts = [text.encode() for text in FRENCH]
    folder = export_ctranslate2(translator, tmp_path / "ct2")
    expected = ours(translator, texts, 40)
    found = theirs(translator, folder, texts, max_decoding_length=40)
    assert found == expected


def test_pad_and_start_never_come_out(tmp_path):
    translator = make_translator(output_bias=True).with_options(search="greedy", alpha=0.0)
    bias = translator.model.get_layer("decoder_embedding").bias
    bias.assign(np.where(np.isin(np.arange(bias.shape[0]), [0, 2]), 50.0, 0.0))
    folder = export_ctranslate2(translator, tmp_path / "ct2")
    found = theirs(translator, folder, [FRENCH[0].encode()])
    assert not {"<pad>", "<s>"} & set(found[0])
    assert found == ours(translator, [FRENCH[0].encode()])


def test_the_folder_has_tokenizers_and_the_search(tmp_path):
    translator = make_translator().with_options(length_penalty="power")
    folder = export_ctranslate2(translator, tmp_path / "deep" / "ct2", quantization="int8")
    metadata = json.loads((folder / "metadata.json").read_text())
    assert metadata["quantization"] == "int8"
    assert metadata["translate_batch"] == search_arguments(translator)
    loaded = SentencePieceTokenizer.load(folder / "target.model")
    assert loaded.content == translator.tokenizers.target.content
    assert ctranslate2.contains_model(str(folder))
    assert [path.name for path in folder.parent.iterdir()] == ["ct2"]


def test_int8_is_smaller(tmp_path):
    translator = make_translator(hidden_dim=64, intermediate_dim=256, num_layers=2)
    translator = translator.with_options(search="greedy")
    sizes = {
        kind: (export_ctranslate2(translator, tmp_path / str(kind), kind) / "model.bin")
        .stat()
        .st_size
        for kind in (None, "int8")
    }
    assert sizes["int8"] < 0.5 * sizes[None]


def test_what_the_engine_lacks_is_refused_by_name(tmp_path):
    with pytest.raises(InputError, match=r"num_heads \* head_dim.*Received: 8, 16 and 16"):
        export_ctranslate2(make_translator(head_dim=4), tmp_path / "ct2")
    with pytest.raises(InputError, match="`quantization` must be one of int8, .*'int4'"):
        export_ctranslate2(make_translator(), tmp_path / "ct2", quantization="int4")
    assert not any(tmp_path.iterdir())


def test_what_is_there_is_never_overwritten(tmp_path):
    (tmp_path / "ct2").mkdir()
    with pytest.raises(InputError, match="exists and is never overwritten"):
        export_ctranslate2(make_translator(), tmp_path / "ct2")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="cannot be written"):
        greedy = make_translator().with_options(search="greedy")
        export_ctranslate2(greedy, tmp_path / "file" / "ct2")
    assert (tmp_path / "file").read_text() == "mine"


def test_nasty_texts(tmp_path):
    translator = make_translator().with_options(search="greedy", alpha=0.0)
    texts = [text.decode("utf-8", "replace").encode() for text in TEXTS]
    pieces = translator.tokenizers.source.pieces
    texts = [text for text in texts if pieces(text.decode())]  # to nothing the answer is nothing
    folder = export_ctranslate2(translator, tmp_path / "ct2")
    found, expected = theirs(translator, folder, texts), ours(translator, texts)
    assert found == expected

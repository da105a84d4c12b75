"""SentencePiece: one vocabulary, the same ids in the graph and in Python, text never a control."""

import io
import re

import pytest
import sentencepiece

from tests.tokenizers.texts import (
    SENTENCES,
    VARIANTS,
    back,
    in_graph,
    nasty_texts,
    round_trip,
    trained,
)
from tf_transformer import InputError
from tf_transformer.tokenizers import SentencePieceTokenizer


@pytest.mark.parametrize("variant", VARIANTS)
def test_two_thousand_nasty_texts_have_the_ids_of_the_package(variant):
    tokenizer = trained(variant)
    package = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model)
    texts = nasty_texts(2_000)
    assert in_graph(tokenizer, texts) == package.encode(texts)


def test_byte_pieces_bring_every_text_back():
    tokenizer = trained("unigram, bytes")
    for text in ("hello\U0001f600 the cat", "Ωμέγα", "a € b", "𝄞", "</s>"):
        assert round_trip(tokenizer, text) == text
    # Bytes that are no letter, as a model may emit them: replaced, never invalid.
    e9, first = tokenizer.encode(["é\U0001f600"])[0][-1], tokenizer.encode(["\U0001f600"])[0][1]
    assert back(tokenizer, [[first, first, e9, first]])[0].count("\ufffd") >= 2


@pytest.mark.parametrize("variant", ["unigram, bytes", "bpe, bytes"])
def test_text_that_came_back_once_comes_back_as_it_is(variant):
    """What normalisation changes, it changes once."""
    tokenizer = trained(variant)
    once = back(tokenizer, tokenizer.encode(nasty_texts(1_000)))
    assert back(tokenizer, tokenizer.encode(once)) == once


def test_without_normalisation_only_blanks_are_lost():
    tokenizer = SentencePieceTokenizer.train(
        SENTENCES * 3, 400, byte_fallback=True, normalization="identity"
    )
    texts = [" ".join(text.replace("▁", " ").split(" ")).strip() for text in nasty_texts(1_000)]
    texts = [re.sub(" +", " ", text) for text in texts]
    assert back(tokenizer, tokenizer.encode(texts)) == texts


# Files


def train_raw(**ids):
    """A `.model` of the library with other special ids."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES),
        model_writer=written,
        vocab_size=80,
        hard_vocab_limit=False,
        minloglevel=2,
        **ids,
    )
    return written.getvalue()


@pytest.mark.parametrize(
    ("ids", "received"),
    [
        ({}, "-1, 0, 1, 2"),
        ({"pad_id": 3, "unk_id": 0, "bos_id": 1, "eos_id": 2}, "3, 0, 1, 2"),
        ({"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": 2}, "0, 1, -1, 2"),
    ],
)
def test_a_model_of_other_special_ids_is_refused(ids, received, tmp_path):
    (tmp_path / "other.model").write_bytes(train_raw(**ids))
    with pytest.raises(InputError, match=rf"other\.model.*0, 1, 2, 3.*{received}"):
        SentencePieceTokenizer.load(tmp_path / "other.model")


def test_a_model_of_the_library_with_our_ids_is_taken():
    model = train_raw(pad_id=0, unk_id=1, bos_id=2, eos_id=3)
    assert SentencePieceTokenizer(model).encode(["the cat"]) != [[]]


def test_text_as_a_control_symbol_is_refused():
    """Else "</s>" in a sentence would be END."""
    with pytest.raises(InputError, match="0, 1, 2, 3"):
        SentencePieceTokenizer.train(SENTENCES, 120, user_defined_symbols="</s>")


@pytest.mark.parametrize("cut", [0, 5, 1000, -1])
def test_a_broken_file_is_refused(cut, tmp_path):
    path = tmp_path / "source.model"
    path.write_bytes(trained().model[:cut])
    with pytest.raises(InputError, match=r"source\.model: .*no SentencePiece model") as caught:
        SentencePieceTokenizer.load(path)
    assert "\n" not in str(caught.value) and ".cc" not in str(caught.value)


# Learning


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model_type": "wordpiece"}, "`model_type` must be one of unigram, bpe.*'wordpiece'"),
        ({"normalization": "nfd"}, "`normalization` must be one of .*identity.*'nfd'"),
        ({"character_coverage": 99.95}, "`character_coverage`.*0.98 to 1.*99.95"),
        ({"no_such_option": 1}, "no_such_option"),
    ],
)
def test_a_wrong_option_is_named(options, message):
    with pytest.raises(InputError, match=message) as caught:
        SentencePieceTokenizer.train(SENTENCES, 120, **options)
    assert ".cc" not in str(caught.value) and "\n" not in str(caught.value)

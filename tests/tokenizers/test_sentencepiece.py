"""SentencePiece: one vocabulary, the same ids in the graph and in Python, text never a control."""

import io
import logging
import random
from concurrent.futures import ThreadPoolExecutor

import pytest
import sentencepiece
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tokenizers.texts import (
    NASTY,
    SENTENCES,
    VARIANTS,
    nasty_bytes,
    nasty_texts,
    trained,
)
from tf_transformer import END_ID, PAD_ID, START_ID, UNK_ID, InputError
from tf_transformer.tokenizers import SentencePieceTokenizer

CONTROLS = {PAD_ID, START_ID, END_ID}


def in_graph(tokenizer, texts):
    """The ids of `tokenize`, as lists."""
    return tokenizer.tokenize(tf.constant(texts, tf.string)).to_list()


def back(tokenizer, ids):
    """`detokenize`, as str; strict UTF-8."""
    found = tokenizer.detokenize(tf.constant(ids, tf.int32)).numpy().tolist()
    return [text.decode("utf-8") for text in found]


def round_trip(tokenizer, text):
    """One text to ids and back."""
    return back(tokenizer, tokenizer.encode([text]))[0]


# The graph and Python

TEXTS = st.lists(st.one_of(st.sampled_from(NASTY), st.text(max_size=30)), max_size=4).map("".join)


@pytest.mark.parametrize("variant", VARIANTS)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(texts=st.lists(TEXTS, max_size=15))
def test_the_graph_and_python_give_the_same_ids(variant, texts):
    """Of 40 lists of up to 15 texts; none of PAD, START, END comes out of text."""
    tokenizer = trained(variant)
    ids = tokenizer.encode(texts)
    assert in_graph(tokenizer, texts) == ids
    for row in ids:
        assert not CONTROLS & set(row)
        assert all(0 <= token < tokenizer.vocabulary_size for token in row)


@pytest.mark.parametrize("variant", VARIANTS)
def test_two_thousand_nasty_texts_have_the_ids_of_the_package(variant):
    tokenizer = trained(variant)
    package = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model)
    texts = nasty_texts(2_000)
    assert in_graph(tokenizer, texts) == package.encode(texts)


@pytest.mark.case("27")
@pytest.mark.parametrize("variant", ["unigram", "bpe, bytes"])
def test_a_thousand_texts_of_damaged_bytes_have_the_ids_of_repaired_ones(variant):
    tokenizer, texts = trained(variant), nasty_bytes(1_000)
    repaired = [text.decode("utf-8", "replace") for text in texts]
    assert in_graph(tokenizer, texts) == tokenizer.encode(repaired)


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_letter_is_a_control_or_makes_the_graph_differ(variant):
    """All code points to U+2FFF, every 53rd above, in front of and inside a word."""
    letters = [chr(code) for code in (*range(0x3000), *range(0x3000, 0x110000, 53))]
    letters = [letter for letter in letters if not 0xD800 <= ord(letter) <= 0xDFFF]
    texts = [text for letter in letters for text in (f"{letter}the", f"a{letter}b")]
    tokenizer = trained(variant)
    ids = tokenizer.encode(texts)
    assert in_graph(tokenizer, texts) == ids
    assert not CONTROLS & set().union(*map(set, ids))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("typed", ["<s>", "</s>", "<pad>", "<unk>", "<0x41>"])
def test_control_tokens_that_users_type_are_text(variant, typed):
    tokenizer = trained(variant)
    for text in (typed, f"the {typed} cat", f"the{typed}cat", typed * 3):
        (ids,) = tokenizer.encode([text])
        assert ids and not CONTROLS & set(ids)
        if VARIANTS[variant].get("byte_fallback"):
            assert back(tokenizer, [ids]) == [text] and UNK_ID not in ids


def test_byte_pieces_bring_every_text_back():
    tokenizer = trained("unigram, bytes")
    for text in ("hello\U0001f600 the cat", "Ωμέγα", "a € b", "𝄞", "</s>"):
        assert round_trip(tokenizer, text) == text
    # Bytes that are no letter, as a model may emit them: replaced, never invalid.
    e9, first = tokenizer.encode(["é\U0001f600"])[0][-1], tokenizer.encode(["\U0001f600"])[0][1]
    assert back(tokenizer, [[first, first, e9, first]])[0].count("\ufffd") >= 2


def test_eight_threads_get_what_one_gets():
    """add_bos and add_eos of the library race: here nothing may depend on who else calls."""
    tokenizer = trained()
    generator = random.Random(1)
    texts = [" ".join(generator.choices(" ".join(SENTENCES).split(), k=n % 9)) for n in range(160)]
    ids = tokenizer.encode(texts)
    backs = [text for row in ids for text in back(tokenizer, [row])]

    def work(number):
        wrong = 0
        for step in range(150):
            place = (number * 37 + step * 11) % len(texts)
            wrong += in_graph(tokenizer, [texts[place]])[0] != ids[place]
            wrong += tokenizer.encode([texts[place]])[0] != ids[place]
            wrong += back(tokenizer, [ids[place]])[0] != backs[place]
        return wrong

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(work, range(8))) == 0


def test_two_tokenizers_never_swap(tmp_path):
    """Each in a function of its own, here and after a reload (tensorflow/text #1304)."""
    one, two = trained("unigram"), trained("bpe")
    texts = ["the old dog", "hello the children"]
    expected = {"one": one.encode(texts), "two": two.encode(texts)}
    assert expected["one"] != expected["two"]

    def function(tokenizer):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
        def there_and_back(text):
            ids = tokenizer.tokenize(text).to_tensor()
            return {"ids": ids, "text": tokenizer.detokenize(ids)}

        return there_and_back

    module = tf.Module()
    module.one, module.two = function(one), function(two)
    signatures = {"one": module.one, "two": module.two}
    tf.saved_model.save(module, str(tmp_path / "saved"), signatures=signatures)
    loaded = tf.saved_model.load(str(tmp_path / "saved"))
    for name, ids in expected.items():
        for call in (signatures[name], getattr(loaded, name), loaded.signatures[name]):
            found = call(tf.constant(texts))
            rows = found["ids"].numpy().tolist()
            assert [[token for token in row if token] for row in rows] == ids
            assert found["text"].numpy().tolist() == [text.encode() for text in texts]


def test_it_survives_the_clearing_of_tensorflow_kernels():
    tokenizer = trained()
    expected = tokenizer.encode(["the cat"])
    for seed in range(2):
        tf.random.set_seed(seed)  # drops TensorFlow's cached kernels and what only they hold
        assert in_graph(tokenizer, ["the cat"]) == expected
        assert back(tokenizer, expected) == ["the cat"]


# Signs, blanks and bytes that are none


@pytest.mark.case("25")
@pytest.mark.parametrize("variant", VARIANTS)
def test_an_unknown_sign_does_not_swallow_the_word(variant):
    tokenizer = trained(variant)
    (hello,) = tokenizer.encode(["hello"])
    assert UNK_ID not in hello
    (glued,) = tokenizer.encode(["hello\U0001f600"])
    assert glued[: len(hello)] == hello
    (inside,) = tokenizer.encode(["hello\u200bthe"])
    the = tokenizer.encode(["the"])[0]
    assert "".join(tokenizer.pieces("hello\u200bthe")).count("the") == 1
    assert inside.count(UNK_ID) <= 1 and len(inside) <= len(hello) + len(the) + 3
    text = round_trip(tokenizer, "hello\u200bthe")
    assert text.startswith("hello") and text.endswith("the") and "#" not in text
    assert round_trip(tokenizer, "hello\U0001f600").startswith("hello")


@pytest.mark.case("27")
@pytest.mark.parametrize("variant", VARIANTS)
def test_bytes_that_are_not_utf8_harm_nobody(variant):
    tokenizer = trained(variant)
    broken = [b"hello \xe9 the", b"\xff\xfe hello", b"a \xff b \xe9", b"\xc3", b"\xf0\x9f\x98"]
    clean = ["the cat sat", "café"]
    ids = in_graph(tokenizer, [clean[0], *broken, clean[1]])
    assert [ids[0], ids[-1]] == tokenizer.encode(clean)
    # Each bad byte is U+FFFD, as `bytes.decode` and the reading of corpora have it.
    assert ids[1:-1] == tokenizer.encode([text.decode("utf-8", "replace") for text in broken])
    for row, text in zip(ids[1:4], ("hello", "hello", "a"), strict=True):
        assert text in back(tokenizer, [row])[0]


@pytest.mark.case("27")
def test_learning_from_text_with_replacement_characters_goes_on():
    texts = [text.decode("utf-8", "replace") for text in (b"hello \xe9 the", b"\xff\xfe hello")]
    tokenizer = SentencePieceTokenizer.train([*SENTENCES, *texts], 120)
    assert round_trip(tokenizer, "hello the") == "hello the"


@pytest.mark.case("29")
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    "text", ["foo (bar)", "don't", "3.5 %", "a-b", "我爱北京", "l'élève", "hello, world: the"]
)
def test_normal_text_comes_back_as_it_was(variant, text):
    tokenizer = SentencePieceTokenizer.train(
        [*SENTENCES, "foo (bar)", "l'élève, world:"],
        **{"vocabulary_size": 150, **VARIANTS[variant]},
    )
    assert round_trip(tokenizer, text) == text
    ids = tokenizer.encode([text])[0]
    assert back(tokenizer, [[START_ID, *ids, END_ID, *ids, PAD_ID]]) == [text]
    assert back(tokenizer, [[*ids, END_ID, PAD_ID, PAD_ID]]) == [text]


@pytest.mark.case("29")
@pytest.mark.parametrize("variant", VARIANTS)
def test_no_blank_at_the_ends(variant):
    tokenizer = trained(variant)
    blank = tokenizer.encode(["a b"])[0]  # a lone blank piece is among these, or glued to a letter
    for ids in ([UNK_ID], [UNK_ID, *blank, UNK_ID], [*blank, blank[0]], [blank[0], *blank]):
        text = back(tokenizer, [ids])[0]
        assert text == text.strip() and text
    assert round_trip(tokenizer, "  hello   the ") in ("hello the", "hello   the")


# Ids that are none


@pytest.mark.parametrize("variant", VARIANTS)
def test_ids_outside_the_vocabulary_are_left_out(variant):
    tokenizer = trained(variant)
    size, (the,) = tokenizer.vocabulary_size, tokenizer.encode(["the"])
    strange = [-1, size, size + 1, 2**31 - 1, -(2**31), PAD_ID, START_ID]
    assert back(tokenizer, [[*strange, *the, *strange], [*strange, *[0] * len(the), *strange]]) == [
        "the",
        "",
    ]


def test_every_id_alone_and_every_pair_can_be_detokenized():
    tokenizer = trained("unigram, bytes")
    size = tokenizer.vocabulary_size
    ids = [[one, (one * 7) % size] for one in range(-2, size + 2)]
    assert len(back(tokenizer, ids)) == len(ids)


def test_nothing_follows_end():
    tokenizer = trained()
    (ids,) = tokenizer.encode(["the cat"])
    rows = [[*ids, END_ID, *ids], [END_ID, *ids, *ids], [*ids, *ids, END_ID]]
    assert back(tokenizer, rows) == ["the cat", "", "the cat the cat"]


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


@pytest.mark.parametrize("variant", VARIANTS)
def test_learning_is_deterministic(variant):
    options = {"vocabulary_size": 120, **VARIANTS[variant]}
    again = SentencePieceTokenizer.train(iter(SENTENCES * 3), **options)
    assert again.model == trained(variant).model


@pytest.mark.case("31")
@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_a_vocabulary_larger_than_the_text_comes_out_smaller(model_type, caplog):
    with caplog.at_level(logging.WARNING):
        tokenizer = SentencePieceTokenizer.train(["hello world"], 8_000, model_type=model_type)
    # At least 4 special ids and the 8 signs of "hello world"; no more than its 66 substrings.
    assert 12 <= tokenizer.vocabulary_size <= 4 + 66
    assert f"{tokenizer.vocabulary_size} only" in caplog.text and "8000" in caplog.text
    assert round_trip(tokenizer, "hello world") == "hello world"
    assert max(tokenizer.encode(["hello world"])[0]) < tokenizer.vocabulary_size


@pytest.mark.case("31")
@pytest.mark.parametrize("texts", [[], [""], ["", "  ", "\t\n"]])
def test_a_text_without_a_letter_is_refused(texts):
    with pytest.raises(InputError, match="no letter") as caught:
        SentencePieceTokenizer.train(texts, 8_000)
    assert ".cc" not in str(caught.value)


@pytest.mark.case("31")
def test_lines_of_5_000_letters_are_learnt_from():
    generator = random.Random(0)
    lines = ["".join(generator.choices("abcdefghij", k=5_000)) for _ in range(10)]
    tokenizer = SentencePieceTokenizer.train(lines, 200)
    assert 100 < tokenizer.vocabulary_size <= 200
    assert round_trip(tokenizer, lines[0]) == lines[0]


@pytest.mark.case("31")
@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_too_few_ids_are_refused_with_the_number_that_works(model_type):
    """26 letters, the blank and 4 special ids are 31."""
    alphabet = ["abcdefghijklmnopqrstuvwxyz"] * 3
    with pytest.raises(InputError, match=r"vocabulary of 10 .*need 31") as caught:
        SentencePieceTokenizer.train(alphabet, 10, model_type=model_type)
    assert ".cc" not in str(caught.value) and "\n" not in str(caught.value)
    assert SentencePieceTokenizer.train(alphabet, 31, model_type=model_type).vocabulary_size == 31


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


def test_what_goes_wrong_in_reading_comes_through():
    def lines():
        yield from SENTENCES
        raise InputError("train.fr must be UTF-8, but line 9 is not.")

    with pytest.raises(InputError, match=r"^train\.fr must be UTF-8, but line 9 is not\.$"):
        SentencePieceTokenizer.train(lines(), 120)

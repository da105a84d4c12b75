"""What holds for every tokenizer: graph and Python agree, no text is a control, no harm is done."""

import logging
import random
from concurrent.futures import ThreadPoolExecutor

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tokenizers.texts import (
    EVERY,
    NASTY,
    SENTENCES,
    VARIANTS,
    back,
    in_graph,
    learn,
    nasty_bytes,
    nasty_texts,
    round_trip,
    trained,
)
from tf_transformer import END_ID, PAD_ID, START_ID, UNK_ID, InputError

CONTROLS = {PAD_ID, START_ID, END_ID}
LEARNT = [kind for kind in EVERY if kind != "bytes"]
KINDS = ["unigram", "bpe, bytes", "wordpiece", "bytes"]
LOSSLESS = ["unigram, bytes", "bpe, bytes", "bytes"]  # of letters; no text has an unknown one

every = pytest.mark.parametrize("kind", EVERY)

# The graph and Python

TEXTS = st.lists(st.one_of(st.sampled_from(NASTY), st.text(max_size=30)), max_size=4).map("".join)


@every
@settings(max_examples=30, deadline=None, derandomize=True)
@given(texts=st.lists(TEXTS, max_size=15))
def test_the_graph_and_python_give_the_same_ids(kind, texts):
    """Of 30 lists of up to 15 texts; none of PAD, START, END comes out of text."""
    tokenizer = trained(kind)
    ids = tokenizer.encode(texts)
    assert in_graph(tokenizer, texts) == ids
    for row in ids:
        assert not CONTROLS & set(row)
        assert all(0 <= token < tokenizer.vocabulary_size for token in row)


@every
def test_two_thousand_nasty_texts_have_the_same_ids(kind):
    tokenizer, texts = trained(kind), nasty_texts(2_000)
    ids = tokenizer.encode(texts)
    assert in_graph(tokenizer, texts) == ids
    assert not CONTROLS & set().union(*map(set, ids))
    assert len(back(tokenizer, ids)) == len(texts)


@every
def test_no_letter_is_a_control_or_makes_the_graph_differ(kind):
    """All code points to U+2FFF, every 97th above, in front of and inside a word."""
    letters = [chr(code) for code in (*range(0x3000), *range(0x3000, 0x110000, 97))]
    letters = [letter for letter in letters if not 0xD800 <= ord(letter) <= 0xDFFF]
    texts = [text for letter in letters for text in (f"{letter}the", f"a{letter}b")]
    tokenizer = trained(kind)
    ids = tokenizer.encode(texts)
    assert in_graph(tokenizer, texts) == ids
    assert not CONTROLS & set().union(*map(set, ids))


CONTROLS_TYPED = ["<s>", "</s>", "<pad>", "<unk>", "<0x41>", "##", "##e"]
CONTROLS_TYPED += [f"[{name}]" for name in ("PAD", "UNK", "START", "END", "CLS", "SEP", "MASK")]


@every
def test_control_tokens_that_users_type_are_text(kind):
    letters = "".join(CONTROLS_TYPED)
    for tokenizer in (trained(kind), learn(kind, [*SENTENCES, " ".join(letters)] * 3, 180)):
        for typed in CONTROLS_TYPED:
            texts = [typed, f"the {typed} cat", f"the{typed}cat", typed * 3]
            ids = tokenizer.encode(texts)
            assert in_graph(tokenizer, texts) == ids
            assert all(ids) and not CONTROLS & set().union(*map(set, ids))
            if UNK_ID not in set().union(*map(set, ids)):
                assert back(tokenizer, ids) == texts
    # The second knows all their letters, so these were looked at.
    assert UNK_ID not in tokenizer.encode(["<s> </s> <pad> [PAD] [UNK] ##e"])[0]


@pytest.mark.parametrize("kind", KINDS)
def test_eight_threads_get_what_one_gets(kind):
    """add_bos and add_eos of the library race: here nothing may depend on who else calls."""
    tokenizer = trained(kind)
    generator = random.Random(1)
    words = [*" ".join(SENTENCES).split(), "\U0001f600", "\0", "<s>", "\u0301x"]
    texts = [" ".join(generator.choices(words, k=n % 9)) for n in range(160)]
    ids = tokenizer.encode(texts)
    backs = back(tokenizer, ids)

    def work(number):
        wrong = 0
        for step in range(100):
            place = (number * 37 + step * 11) % len(texts)
            wrong += in_graph(tokenizer, [texts[place]])[0] != ids[place]
            wrong += tokenizer.encode([texts[place]])[0] != ids[place]
            found = tokenizer.detokenize(tf.constant([ids[place]], tf.int32)).numpy()
            wrong += found[0].decode() != backs[place]
        return wrong

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(work, range(8))) == 0


@pytest.mark.parametrize(
    "kinds", [("unigram", "bpe"), ("wordpiece", "other"), ("wordpiece", "bpe"), ("bytes", "bpe")]
)
def test_two_tokenizers_never_swap(kinds, tmp_path):
    """Each in a function of its own, here and after a reload (tensorflow/text #1304)."""
    one, two = (
        learn("wordpiece", SENTENCES[:4], 40) if kind == "other" else trained(kind)
        for kind in kinds
    )
    texts = ["the old dog", "hello the children"]
    expected = {"one": one.encode(texts), "two": two.encode(texts)}
    assert expected["one"] != expected["two"] and one.name != two.name

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


@pytest.mark.parametrize("kind", KINDS)
def test_it_survives_the_clearing_of_tensorflow_kernels(kind):
    tokenizer = trained(kind)
    expected = tokenizer.encode(["the cat"])
    for seed in range(2):
        tf.random.set_seed(seed)  # drops TensorFlow's cached kernels and what only they hold
        assert in_graph(tokenizer, ["the cat"]) == expected
        assert back(tokenizer, expected) == ["the cat"]


# Signs, blanks and bytes that are none


@pytest.mark.case("25")
@every
def test_an_unknown_sign_does_not_swallow_the_word(kind):
    tokenizer = trained(kind)
    (hello,) = tokenizer.encode(["hello"])
    assert UNK_ID not in hello
    for text in ("hello\U0001f600", "hello\u4e02", "hello\U000e0001"):
        (glued,) = tokenizer.encode([text])
        assert glued[: len(hello)] == hello and glued.count(UNK_ID) <= 1
        assert round_trip(tokenizer, text).startswith("hello")
    (inside,) = tokenizer.encode(["hello\u200bthe"])
    the = tokenizer.encode(["the"])[0]
    assert inside.count(UNK_ID) <= 1 and len(inside) <= len(hello) + len(the) + 3
    text = round_trip(tokenizer, "hello\u200bthe")
    assert text.startswith("hello") and text.endswith("the") and "#" not in text
    # In front of a word too, and in a word longer than the 100 bytes that WordPiece reads.
    text = round_trip(tokenizer, "\U0001f600hello " + "a" * 300 + "\u4e02" + "b" * 300)
    assert "hello" in text and "a" * 300 in text and text.endswith("b" * 300)


@pytest.mark.case("27")
@every
def test_bytes_that_are_not_utf8_harm_nobody(kind):
    tokenizer = trained(kind)
    broken = [b"hello \xe9 the", b"\xff\xfe hello", b"a \xff b \xe9", b"\xc3", b"\xf0\x9f\x98"]
    clean = ["the cat sat", "café"]
    ids = in_graph(tokenizer, [clean[0], *broken, clean[1]])
    assert [ids[0], ids[-1]] == tokenizer.encode(clean)
    for row, text in zip(ids[1:4], ("hello", "hello", "a"), strict=True):
        assert text in back(tokenizer, [row])[0]
    # Each bad byte is U+FFFD, as `bytes.decode` and the reading of corpora have it; if not before
    # the ids, as in bytes, then after.
    repaired = [text.decode("utf-8", "replace") for text in broken]
    if kind != "bytes":
        assert ids[1:-1] == tokenizer.encode(repaired)
    assert back(tokenizer, ids[1:-1]) == back(tokenizer, tokenizer.encode(repaired))


@pytest.mark.case("27")
@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_texts_of_damaged_bytes_are_read_as_repaired_ones(kind):
    tokenizer, texts = trained(kind), nasty_bytes(1_000)
    repaired = [text.decode("utf-8", "replace") for text in texts]
    ids = in_graph(tokenizer, texts)
    if kind == "bytes":
        assert back(tokenizer, ids) == repaired
    else:
        assert ids == tokenizer.encode(repaired)


@pytest.mark.case("27")
@pytest.mark.parametrize("kind", LEARNT)
def test_learning_from_text_with_replacement_characters_goes_on(kind):
    texts = [text.decode("utf-8", "replace") for text in (b"hello \xe9 the", b"\xff\xfe hello")]
    tokenizer = learn(kind, [*SENTENCES, *texts])
    assert round_trip(tokenizer, "hello the") == "hello the"


@pytest.mark.case("29")
@every
def test_normal_text_comes_back_as_it_was(kind):
    texts = ["foo (bar)", "don't", "3.5 %", "a-b", "我爱北京", "l'élève", "hello, world: the"]
    tokenizer = learn(kind, [*SENTENCES, "foo (bar)", "l'élève, world:"], 150)
    ids = tokenizer.encode(texts)
    assert back(tokenizer, ids) == texts
    for row, text in zip(ids, texts, strict=True):
        assert back(tokenizer, [[START_ID, *row, END_ID, *row, PAD_ID]]) == [text]
        assert back(tokenizer, [[*row, END_ID, PAD_ID, PAD_ID]]) == [text]


@pytest.mark.case("29")
@pytest.mark.parametrize("kind", LEARNT)  # bytes give blanks back where they were
def test_no_blank_at_the_ends(kind):
    tokenizer = trained(kind)
    blank = tokenizer.encode(["a b"])[0]  # a lone blank piece is among these, or glued to a letter
    for ids in ([UNK_ID], [UNK_ID, *blank, UNK_ID], [*blank, blank[0]], [blank[0], *blank]):
        text = back(tokenizer, [ids])[0]
        assert text == text.strip() and text
    assert round_trip(tokenizer, "  hello   the ") in ("hello the", "hello   the")


@pytest.mark.parametrize("kind", LOSSLESS)
def test_where_nothing_is_unknown_every_letter_comes_back(kind):
    for text in ("hello\U0001f600 the cat", "Ωμέγα", "a € b", "𝄞", "</s>", "<0x41>", "[UNK] ##e"):
        assert round_trip(trained(kind), text) == text


# Ids that are none


@every
def test_ids_outside_the_vocabulary_are_left_out(kind):
    tokenizer = trained(kind)
    size, (the,) = tokenizer.vocabulary_size, tokenizer.encode(["the"])
    strange = [-1, size, size + 1, 2**31 - 1, -(2**31), PAD_ID, START_ID]
    assert back(tokenizer, [[*strange, *the, *strange], [*strange, *strange]]) == ["the", ""]


@every
def test_every_id_alone_and_every_pair_can_be_detokenized(kind):
    tokenizer = trained(kind)
    size = tokenizer.vocabulary_size
    ids = [[one, (one * 7) % size] for one in range(-2, size + 2)]
    assert len(back(tokenizer, ids)) == len(ids)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_follows_end(kind):
    tokenizer = trained(kind)
    (ids,) = tokenizer.encode(["the cat"])
    rows = [[*ids, END_ID, *ids], [END_ID, *ids, *ids], [*ids, END_ID, END_ID]]
    assert back(tokenizer, rows) == ["the cat", "", "the cat"]


# Learning


@every
def test_learning_is_deterministic(kind):
    assert learn(kind, SENTENCES * 3).content == trained(kind).content


@pytest.mark.parametrize("kind", LEARNT)
def test_a_generator_is_enough_to_learn_from(kind):
    again = type(trained(kind)).train(
        (text for text in SENTENCES * 3),
        **(
            {"vocabulary_size": 120, **VARIANTS[kind]}
            if kind in VARIANTS
            else {"vocabulary_size": 240}
        ),
    )
    assert again.content == trained(kind).content


@pytest.mark.case("31")
@pytest.mark.parametrize("kind", ["unigram", "bpe", "wordpiece"])
def test_a_vocabulary_larger_than_the_text_comes_out_smaller(kind, caplog):
    with caplog.at_level(logging.WARNING):
        tokenizer = learn(kind, ["hello world"], 8_000)
    # 4 special ids and the letters of "hello world"; no more than its 66 substrings twice.
    assert 12 <= tokenizer.vocabulary_size <= 4 + 66 * 2
    assert f"{tokenizer.vocabulary_size} only" in caplog.text and "000" in caplog.text
    assert round_trip(tokenizer, "hello world") == "hello world"
    assert max(tokenizer.encode(["hello world"])[0]) < tokenizer.vocabulary_size


@pytest.mark.case("31")
@pytest.mark.parametrize("kind", ["unigram", "bpe", "wordpiece"])
@pytest.mark.parametrize("texts", [[], [""], ["", "  ", "\t\n"]])
def test_a_text_without_a_letter_is_refused(kind, texts):
    with pytest.raises(InputError, match="no letter") as caught:
        learn(kind, texts, 8_000)
    assert ".cc" not in str(caught.value)


@pytest.mark.case("31")
@pytest.mark.parametrize("kind", ["unigram", "wordpiece"])
def test_lines_of_5_000_letters_are_learnt_from(kind):
    generator = random.Random(0)
    lines = ["".join(generator.choices("abcdefghij", k=5_000)) for _ in range(10)]
    tokenizer = learn(kind, lines, 200)
    assert 100 < tokenizer.vocabulary_size <= 400
    assert round_trip(tokenizer, lines[0]) == lines[0]


@pytest.mark.case("31")
@pytest.mark.parametrize(("kind", "needed"), [("unigram", 31), ("bpe", 31), ("wordpiece", 56)])
def test_too_few_ids_are_refused_with_the_number_that_works(kind, needed):
    """26 letters, the blank and 4 special ids are 31; WordPiece has each letter twice, no blank."""
    cls, alphabet = type(trained(kind)), ["abcdefghijklmnopqrstuvwxyz"] * 3
    options = VARIANTS.get(kind, {})
    for size in (10, needed - 1):
        with pytest.raises(InputError, match=rf"vocabulary of {size} .*need {needed}") as caught:
            cls.train(alphabet, size, **options)
        assert ".cc" not in str(caught.value) and "\n" not in str(caught.value)
    assert cls.train(alphabet, needed, **options).vocabulary_size == needed


@pytest.mark.parametrize("kind", ["unigram", "wordpiece"])
def test_what_goes_wrong_in_reading_comes_through(kind):
    def lines():
        yield from SENTENCES
        raise InputError("train.fr must be UTF-8, but line 9 is not.")

    with pytest.raises(InputError, match=r"^train\.fr must be UTF-8, but line 9 is not\.$"):
        type(trained(kind)).train(lines(), 120)

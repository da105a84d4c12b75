"""Which word of a text a token belongs to, for every tokenizer."""

import re

import pytest
import tensorflow as tf

from tests.tokenizers.texts import EVERY, NASTY, SENTENCES, trained

every = pytest.mark.parametrize("kind", EVERY)
BLANK = "[ \t-\r]+"


def words_of(tokenizer, texts):
    """`words` in a graph, as lists."""
    call = tf.function(lambda texts: tokenizer.words(texts).to_tensor(-1))
    rows = call(tf.constant(texts, tf.string)).numpy().tolist()
    return [[word for word in row if word >= 0] for row in rows]


def spread(text: str) -> str:
    return text.replace(" ", "   ").replace(",", "\t,")


@every
def test_a_token_belongs_to_the_word_that_gives_it_alone(kind):
    """No tokenizer joins words, so the tokens of a text are those of its words."""
    if kind == "bytes":
        pytest.skip("its blanks are tokens: see below")
    tokenizer = trained(kind)
    texts = [*SENTENCES, *map(spread, SENTENCES), " the  cat ", "привет the 我爱北京 x"]
    encoded = tokenizer.encode(texts)
    for text, found, ids in zip(texts, words_of(tokenizer, texts), encoded, strict=True):
        words = [word for word in re.split(BLANK, text) if word]
        if "identity" in kind and re.search("  |\t", text):
            continue  # runs of blanks stay, as tokens of their own
        alone = tokenizer.encode(words)
        assert sum(alone, []) == ids, "this text proves nothing"
        assert found == [number for number, word in enumerate(alone) for _ in word]


def test_a_blank_that_is_a_token_belongs_to_the_word_behind_it():
    assert words_of(trained("bytes"), ["ab cé ", " a", "  ", ""]) == [
        [0, 0, 1, 1, 1, 1, 1],
        [0, 0],
        [0, 0],
        [],
    ]
    tokenizer = trained("unigram, identity")
    (found,), pieces = words_of(tokenizer, ["the  cat"]), tokenizer.pieces("the  cat")
    spelt = ["".join(p for p, w in zip(pieces, found, strict=True) if w == word) for word in (0, 1)]
    assert spelt == ["▁the", "▁cat"]


def test_other_blanks_separate_no_words():
    """NBSP, the ideographic blank and U+2028 stay inside a word, whatever is made of them."""
    for kind in EVERY:
        (found,) = words_of(trained(kind), ["the\u00a0cat \u3000sat the\u2028x"])
        assert set(found) == {0, 1, 2} and sorted(found) == found, kind


@every
def test_no_text_is_too_nasty(kind):
    """As many as there are tokens, in order, none beyond the last word."""
    tokenizer = trained(kind)
    texts = [*NASTY, *(f"the {text} cat" for text in NASTY), *(f" {text}" for text in NASTY)]
    for text, found, ids in zip(
        texts, words_of(tokenizer, texts), tokenizer.encode(texts), strict=True
    ):
        words = [word for word in re.split(BLANK, text) if word]
        assert len(found) == len(ids) and found == sorted(found), text
        if found:
            assert 0 <= found[0] and found[-1] <= max(len(words) - 1, 0), text


@every
def test_pieces_in_the_graph_are_those_of_the_vocabulary(kind):
    tokenizer = trained(kind)
    names = tokenizer.vocabulary()
    ids = tf.range(tokenizer.vocabulary_size)[:, tf.newaxis]
    found = tf.function(tokenizer.to_pieces)(ids).numpy()
    assert [row[0].decode() for row in found.tolist()] == names

"""Bytes: nothing is lost, whatever comes in."""

import pytest
import tensorflow as tf

from tests.tokenizers.texts import back, in_graph, nasty_bytes, nasty_texts
from tf_transformer import InputError
from tf_transformer.tokenizers import ByteTokenizer

TOKENIZER = ByteTokenizer()


def raw(ids):
    """`to_bytes`, in a graph of its own."""
    rows = tf.ragged.constant(ids, tf.int32, ragged_rank=1).to_tensor()
    return TOKENIZER.to_bytes(rows).numpy().tolist()


def test_a_byte_is_its_number_and_four():
    text = bytes(range(256))
    assert TOKENIZER.vocabulary_size == 260
    assert in_graph(TOKENIZER, [text, b"\0", b""]) == [list(range(4, 260)), [4], []]
    assert TOKENIZER.encode([text, b"\0", b""]) == [list(range(4, 260)), [4], []]
    assert TOKENIZER.encode(["é"]) == [[0xC3 + 4, 0xA9 + 4]]


def test_any_bytes_come_back():
    texts = [*nasty_bytes(1_000), bytes(range(256)) * 3, b"\0\0", b" \n\t ", b""]
    ids = in_graph(TOKENIZER, texts)
    assert ids == [[byte + 4 for byte in text] for text in texts] == TOKENIZER.encode(texts)
    assert raw(ids) == texts
    assert back(TOKENIZER, ids) == [text.decode("utf-8", "replace") for text in texts]


def test_every_text_comes_back_as_it_was():
    texts = nasty_texts(1_000)
    assert back(TOKENIZER, TOKENIZER.encode(texts)) == texts


def test_a_letter_is_only_broken_where_the_ids_are():
    """Four bytes of one letter over several tokens: replaced once, where text is made of them."""
    (ids,) = TOKENIZER.encode(["a\U0001f600"])
    assert [back(TOKENIZER, [ids[:n]])[0] for n in range(6)] == [
        *("", "a", "a\ufffd", "a\ufffd", "a\ufffd", "a\U0001f600")
    ]
    assert raw([[*ids[:3], 0, 2, -1, 260, *ids[3:], 3, 70]]) == ["a\U0001f600".encode()]


def test_pieces_can_be_told_apart():
    pieces = TOKENIZER.pieces("a ▁é\n<0xC3>")
    assert pieces[:8] == ["a", "▁", "<0xE2>", "<0x96>", "<0x81>", "<0xC3>", "<0xA9>", "<0x0A>"]
    assert TOKENIZER.piece_ids(pieces) == TOKENIZER.encode(["a ▁é\n<0xC3>"])[0]
    assert TOKENIZER.piece_ids(["<0xc3>", "ab", "é", ""]) == [1] * 4
    whole = bytes(range(128)).decode()
    assert TOKENIZER.piece_ids(TOKENIZER.pieces(whole)) == list(range(4, 132))


def test_there_is_nothing_to_learn():
    assert ByteTokenizer.train(["a"]).name == ByteTokenizer.train([], 8_000).name
    with pytest.raises(InputError, match="260 ids. Received: 259"):
        ByteTokenizer.train([], 259)
    with pytest.raises(InputError, match="no option `byte_fallback`"):
        ByteTokenizer.train([], byte_fallback=True)

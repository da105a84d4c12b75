"""SentencePiece files of others are taken with new ids; LiteRT's op agrees where we say so."""

import io

import pytest
import sentencepiece
import tensorflow as tf
import tensorflow_text as tf_text

from tests.tokenizers.texts import SENTENCES, nasty_texts, trained
from tf_transformer import InputError
from tf_transformer.tokenizers import SentencePieceTokenizer
from tf_transformer.tokenizers.piece_file import facts, with_our_ids

# How other projects call the library's trainer.
FOREIGN = {
    "the library's defaults": {},
    "with a pad": {"pad_id": 3},
    "bpe": {"model_type": "bpe"},
    "byte pieces": {"model_type": "bpe", "byte_fallback": True, "vocab_size": 400},
    "as T5": {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1},
    "as Marian": {"eos_id": 0, "unk_id": 1, "bos_id": -1},
    "last ids": {"model_type": "bpe", "unk_id": 96, "bos_id": 97, "eos_id": 98, "pad_id": 99},
    "other names": {"unk_piece": "[UNK]", "bos_piece": "[CLS]", "eos_piece": "[SEP]"},
    "languages": {"control_symbols": ["<en>", "<de>"]},
    "a pad that is text": {"user_defined_symbols": ["<pad>", "<<pad>>", "<br>"]},
    "ours": {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3},
}


def foreign(**options) -> bytes:
    written = io.BytesIO()
    arguments = dict(vocab_size=100, hard_vocab_limit=False, minloglevel=2)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 3), model_writer=written, **{**arguments, **options}
    )
    return written.getvalue()


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_model_cuts_every_text_as_before(name, tmp_path):
    model = foreign(**FOREIGN[name])
    before = sentencepiece.SentencePieceProcessor(model_proto=model)
    path = tmp_path / "other.model"
    path.write_bytes(model)
    tokenizer = SentencePieceTokenizer.adopt(path)
    new_ids = with_our_ids(model)[1]
    assert len(new_ids) == before.vocab_size() == len(set(new_ids))

    texts = nasty_texts(500)
    expected = [[new_ids[token] for token in row] for row in before.encode(texts)]
    assert tokenizer.encode(texts) == expected
    assert tokenizer.tokenize(tf.constant(texts)).to_list() == expected
    after = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model)
    for old, new in enumerate(new_ids):
        assert before.id_to_piece(old) == after.id_to_piece(new)
        assert before.get_score(old) == after.get_score(new)
    # Nothing comes out of the text as one of ours, however it is spelled.
    for text in ("<pad>", "<<pad>>", "<s></s>", "[CLS]", "[SEP]", "<en>"):
        assert not {0, 2, 3} & set(tokenizer.encode([text])[0])


@pytest.mark.parametrize("name", FOREIGN)
def test_specials_are_the_models_own_where_it_has_them(name):
    model = foreign(**FOREIGN[name])
    before = sentencepiece.SentencePieceProcessor(model_proto=model)
    old_ids = [before.pad_id(), before.unk_id(), before.bos_id(), before.eos_id()]
    new_ids = with_our_ids(model)[1]
    for new, old in enumerate(old_ids):
        assert old == -1 or new_ids[old] == new
    others = [new for old, new in enumerate(new_ids) if old not in old_ids]
    assert others == sorted(others) and min(others) == 4


def test_our_own_model_is_taken_as_it_is(tmp_path):
    tokenizer = trained("bpe, bytes")
    tokenizer.save(tmp_path / "ours.model")
    assert SentencePieceTokenizer.adopt(tmp_path / "ours.model").content == tokenizer.content


@pytest.mark.parametrize("content", [b"", b"[PAD]\n[UNK]\nthe\n", b"\0" * 99])
def test_what_is_no_model_is_refused(content, tmp_path):
    (tmp_path / "other.model").write_bytes(content)
    with pytest.raises(InputError, match=r"other\.model: .*no SentencePiece model"):
        SentencePieceTokenizer.adopt(tmp_path / "other.model")


def test_what_a_file_says_of_itself():
    found = facts(trained("unigram, symbols").model)
    assert found == ("unigram", "nmt_nfkc", False, ["<br>", "@@", "a,b", "ﬁ"], True)
    assert facts(trained("bpe, bytes").model)[:3] == ("bpe", "nmt_nfkc", True)
    assert facts(trained("bpe, identity").model)[:3] == ("bpe", "identity", False)
    assert trained("bpe, bytes").description == (
        "SentencePiece bpe, normalization nmt_nfkc, byte pieces"
    )


# Symbols of the user


def test_a_symbol_stays_one_piece_wherever_it_stands():
    tokenizer = trained("unigram, symbols")
    for symbol in ("<br>", "@@", "a,b"):
        (token,) = tokenizer.piece_ids([symbol])
        assert token > 3
        for text in (symbol, f"the {symbol} cat", f"the{symbol}cat", symbol * 3):
            assert tokenizer.encode([text])[0].count(token) == text.count(symbol)
            back = tokenizer.detokenize(tf.constant(tokenizer.encode([text])))
            assert back.numpy()[0].decode() == text
    assert "ﬁ" in tokenizer.pieces("ﬁn")  # normalisation leaves it


@pytest.mark.parametrize("symbols", [[""], ["a b"], ["▁a"], ["</s>"], ["x", "y", "x"]])
def test_a_symbol_that_cannot_be_one_is_named(symbols):
    with pytest.raises(InputError, match="`user_symbols` must .*Received: '"):
        SentencePieceTokenizer.train(SENTENCES, 120, user_symbols=symbols)


# LiteRT

PLAIN = {
    "nmt_nfkc": {},
    "lower case": {"normalization": "nmt_nfkc_cf"},
    "symbols": {"user_symbols": ["<br>", "@@", "a,b"]},
    "digits": {"split_digits": True},
    "blanks kept": {"remove_extra_whitespaces": False},
}
# What FastSentencepiece gets wrong, and the word that says why we do not promise it.
OTHER = {
    "bpe": ({"model_type": "bpe"}, "not unigram"),
    "byte pieces": ({"byte_fallback": True, "vocabulary_size": 400}, "byte pieces"),
    "identity": ({"normalization": "identity"}, "control characters"),
    "nfkc": ({"normalization": "nfkc"}, "control characters"),
    "no blank": ({"add_dummy_prefix": False}, "a blank"),
    "blank behind": ({"treat_whitespace_as_suffix": True}, "a blank"),
    "ligature": ({"user_symbols": ["ﬁ"]}, "'ﬁ'"),
    "capital": ({"user_symbols": ["<A>"], "normalization": "nmt_nfkc_cf"}, "'<A>'"),
}


def by_fast_op(options):
    """A tokenizer, the ids of LiteRT's op for nasty texts, and its own."""
    tokenizer = SentencePieceTokenizer.train(SENTENCES * 3, **{"vocabulary_size": 120, **options})
    texts = [*nasty_texts(1_000), "ﬁn", "<A>"]
    found = tf_text.FastSentencepieceTokenizer(tokenizer.model).tokenize(tf.constant(texts))
    return tokenizer, found.to_list(), tokenizer.encode(texts)


@pytest.mark.case("73")
@pytest.mark.parametrize("name", PLAIN)
def test_where_litert_is_promised_its_op_gives_the_same_ids(name):
    tokenizer, found, expected = by_fast_op(PLAIN[name])
    assert tokenizer.litert_obstacle == ""
    assert found == expected


@pytest.mark.case("73")
@pytest.mark.parametrize("name", OTHER)
def test_where_its_ids_are_other_ones_litert_is_refused_by_name(name):
    options, reason = OTHER[name]
    tokenizer, found, expected = by_fast_op(options)
    assert reason in tokenizer.litert_obstacle
    assert found != expected, "FastSentencepiece has been repaired: promise this one too"

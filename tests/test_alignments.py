"""tf_transformer/alignments.py: words and pieces joined by attention that is known beforehand."""

import re
import unicodedata

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

from tests.tiny_translator import ENGLISH, FRENCH, TEXTS, make_translator, tokenizers
from tests.trained_translator import config_of
from tf_transformer import DecodingOptions, Translator, build_transformer
from tf_transformer.alignments import (
    piece_alignment,
    source_words,
    target_words,
    word_alignment,
)
from tf_transformer.tokenizers import SentencePieceTokenizer

HARD = [
    "le chat  dort ",
    " je suis\tici",
    "a\u00a0b \u3000 c",
    "½ x … d",
    "漢字 😀 l’été",
    "e\u0302 \u200b où",
    "\u200b x",
    "▁ a ▁▁b",
    "x",
    "",
    "   ",
]


def words(tokenizer, texts):
    """`source_words` in a graph, and the ids it is of."""
    encoded = [[*ids, 3] for ids in tokenizer.encode(texts)]
    width = max(map(len, encoded))
    token_ids = tf.constant([ids + [0] * (width - len(ids)) for ids in encoded])
    call = tf.function(lambda text, ids: source_words(tokenizer, text, ids))
    return call(tf.constant(texts), token_ids).numpy(), encoded


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_the_word_of_a_source_piece_is_where_its_letters_stand(model_type):
    """The pieces of a word spell it, as the tokenizer's rule (NFKC) has it."""
    tokenizer = SentencePieceTokenizer.train(FRENCH + ENGLISH, 400, model_type=model_type)
    texts = [*HARD, *FRENCH, " ".join(FRENCH)]
    found, encoded = words(tokenizer, texts)
    for text, row, ids in zip(texts, found, encoded, strict=True):
        names = tokenizer.pieces(text)
        assert len(names) == len(ids) - 1 and (row[len(names) :] == -1).all()
        for number, word in enumerate(re.split("[ \t]+", text.strip(" \t"))):
            own = [name for name, w in zip(names, row, strict=False) if w == number]
            assert spelling("".join(own)) == spelling(word), (text, names, row)


def spelling(word):
    """Without blanks of any kind, in the form that `nmt_nfkc` gives."""
    return re.sub("[\\s\u2581\u200b]", "", unicodedata.normalize("NFKC", word))


def test_a_source_piece_of_blanks_belongs_to_the_word_behind_it():
    tokenizer = SentencePieceTokenizer.train(FRENCH, 60)
    found, encoded = words(tokenizer, ["x x x"])
    assert tokenizer.pieces("x x x") == ["▁", "x", "▁", "x", "▁", "x"]
    assert found[0].tolist() == [0, 0, 1, 1, 2, 2, -1] and len(encoded[0]) == 7


def test_of_a_text_that_is_cut_the_read_part_counts():
    tokenizer, _ = tokenizers()
    whole, _ = words(tokenizer, [FRENCH[0]])
    token_ids = tf.constant([[*tokenizer.encode([FRENCH[0]])[0][:4], 3]])
    call = tf.function(lambda text, ids: source_words(tokenizer, text, ids))
    found = call(tf.constant([FRENCH[0]]), token_ids)
    assert found.numpy().tolist() == [[*whole[0, :4], -1]]


def test_words_of_what_is_no_utf8():
    """A byte that is none counts as U+FFFD, in offsets as in ids."""
    tokenizer, _ = tokenizers()
    for text in TEXTS:
        valid = text.decode("utf-8", "replace")
        ids = tf.constant([[*tokenizer.encode([valid])[0], 3]])
        call = tf.function(lambda text, ids: source_words(tokenizer, text, ids))
        np.testing.assert_array_equal(
            call(tf.constant([text]), ids), call(tf.constant([valid]), ids)
        )


@pytest.mark.parametrize("byte_fallback", [False, True])
def test_the_word_of_a_target_piece_is_that_of_the_text(byte_fallback):
    """The words of the whole text, each made of the pieces that are said to be its."""
    tokenizer = SentencePieceTokenizer.train(ENGLISH, 300, byte_fallback=byte_fallback)
    texts = [*ENGLISH, *HARD, "the ⁇ cat"]
    rows = [ids for text in texts for ids in (tokenizer.encode([text])[0],)]
    generator = np.random.default_rng(3)  # what no text is cut into: runs of blanks, UNK inside
    size = tokenizer.vocabulary_size
    rows += [generator.integers(4, size, 12).tolist() for _ in range(60)]
    rows += [[1, 1, tokenizer.piece_ids(["▁"])[0], 1, tokenizer.piece_ids(["▁"])[0]]]
    width = max(map(len, rows)) + 2
    ids = np.array(
        [row + [3] * (n % 2) + [0] * (width - len(row) - n % 2) for n, row in enumerate(rows)]
    )
    call = tf.function(lambda ids: target_words(tokenizer, ids))
    found = call(tf.constant(ids.reshape(-1, 1, width), tf.int32)).numpy()[:, 0]
    texts_of = tokenizer.detokenize(tf.constant(ids, tf.int32)).numpy()
    library = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model)
    for row, words_of, text in zip(rows, found, texts_of, strict=True):
        assert (words_of[len(row) :] == -1).all()
        expected = [word for word in re.split("[ \t-\r]+", text.decode()) if word]
        inside = words_of[: len(row)]
        assert (np.diff(inside) >= 0).all() and (inside >= 0).all()
        if expected:
            assert inside.max() == len(expected) - 1
        if not byte_fallback:  # single bytes are no text
            for number, word in enumerate(expected):
                own = [i for i, w in zip(row, inside, strict=True) if w == number]
                spelt = "".join(" ⁇ " if i == 1 else library.id_to_piece(i) for i in own)
                assert spelt.replace("▁", "").strip() == word


def test_a_word_is_aligned_by_all_its_pieces_together():
    """Single links say 2, 0, 0; the word, summed over source pieces, says 1."""
    attention = tf.constant(
        [[[[0.3, 0.1, 0.35, 0.25], [0.4, 0.3, 0.3, 0.0], [0.9, 0.0, 0.0, 0.1], [0, 0, 0, 1.0]]]]
    )
    sources, targets = tf.constant([[0, 1, 1, -1]]), tf.constant([[[0, 0, 1, -1]]])
    source_ids, target_ids = tf.constant([[5, 6, 7, 3]]), tf.constant([[[8, 9, 4, 3]]])
    assert word_alignment(attention, sources, targets).numpy().tolist() == [[[1, 0, -1, -1]]]
    assert piece_alignment(attention, source_ids, target_ids).numpy().tolist() == [[[2, 0, 0, -1]]]


def test_end_is_no_source_and_needs_none():
    """Where a token looks at END, the next best is taken; without any piece there is none."""
    attention = tf.constant([[[[0.1, 0.2, 0.7], [0.0, 0.0, 1.0]]], [[[1.0, 0, 0], [1.0, 0, 0]]]])
    source_ids, target_ids = tf.constant([[5, 6, 3], [3, 0, 0]]), tf.constant([[[7, 3]], [[7, 3]]])
    assert piece_alignment(attention, source_ids, target_ids).numpy().tolist() == [
        [[1, -1]],
        [[-1, -1]],
    ]
    found = word_alignment(
        attention, tf.constant([[0, 1, -1], [-1, -1, -1]]), tf.constant([[[0, -1]], [[0, -1]]])
    )
    assert found.numpy().tolist() == [[[1, -1]], [[-1, -1]]]


# Through the whole model


def diagonal_translator(**options) -> Translator:
    """Two decoder layers; in the first, target token t looks at source token t and nowhere else.

    Embeddings are next to nothing, so what queries and keys are made of is the position alone.
    """
    sizes = dict(hidden_dim=64, num_layers=2, num_heads=1, intermediate_dim=8)
    model = build_transformer(config_of(tie_embeddings="none", dropout=0.0, **sizes))
    for weight in model.weights:
        name = weight.path
        if "gamma" in name:
            continue
        shape = weight.shape
        if "projection" in name:
            weight.assign(np.random.default_rng(1).normal(size=shape) * 2)
        elif "embedding" in name:
            weight.assign(np.random.default_rng(2).normal(size=shape) * 1e-3)
        elif "decoder/layer_0/cross_attention/" in name and name.endswith(
            ("query/kernel", "key/kernel")
        ):
            weight.assign(5 * np.eye(64))
        else:
            weight.assign(np.zeros(shape))
    return Translator(model, *tokenizers(), DecodingOptions(**options))


@pytest.mark.parametrize("options", [{"search": "greedy"}, {"num_beams": 3}])
def test_known_attention_is_followed_along_the_beam(options):
    """Piece t comes from piece t, for every hypothesis and its words."""
    translator = diagonal_translator(extra_length=0, **options)
    found = translator.translate_with_alignments(tf.constant([*FRENCH, ""]))
    found = {name: value.numpy() for name, value in found.items()}
    different = set()
    for row, text in enumerate(FRENCH):
        names = tokenizers()[0].pieces(text)
        of_source = np.cumsum([piece.startswith("▁") for piece in names]) - 1
        assert [piece.decode() for piece in found["source_pieces"][row]][: len(names) + 1] == [
            *names,
            "</s>",
        ]
        for k in range(translator.options.num_beams if "num_beams" in options else 1):
            length = found["lengths"][row, k] - found["finished"][row, k]
            assert 0 < length <= len(names) + 1
            count = min(length, len(names))
            links = found["piece_alignment"][row, k]
            np.testing.assert_array_equal(links[:count], np.arange(count))
            assert (links[length:] == -1).all()
            check_words(found, row, k, of_source, count)
            different.add(found["texts"][row, k])
        diagonal = found["attention"][row, np.arange(len(names)), np.arange(len(names))]
        assert (diagonal[2:] > 0.4).all() and diagonal[2:].mean() > 0.9
    assert len(different) > 4
    assert (found["word_alignment"][8] == -1).all() and (found["piece_alignment"][8] == -1).all()


def check_words(found, row, k, of_source, count):
    """Each word looks where most of its pieces do, by the same diagonal."""
    text = found["texts"][row, k].decode()
    links = found["word_alignment"][row, k]
    number = len(text.split())
    assert (links[:number] >= 0).all() and (links[number:] == -1).all()
    begun = [p.decode().startswith("▁") or p == b"<unk>" for p in found["pieces"][row, k][:count]]
    after_unknown = [False, *(p == b"<unk>" for p in found["pieces"][row, k][: count - 1])]
    starts = np.array(begun) | np.array(after_unknown)
    starts[0] = True
    of_target = np.cumsum(starts) - 1
    for word in range(of_target.max()):  # the last may go on behind the source's end
        own = of_source[:count][of_target == word]
        most = max(np.bincount(own))
        assert np.bincount(own)[links[word]] == most


def test_the_layer_can_be_chosen():
    """The second looks everywhere alike, so at no place more than at another."""
    pairs = tf.constant(FRENCH[:2]), tf.constant(ENGLISH[:2])
    for layer, peaked in ((-2, True), (-9, True), (1, False)):
        translator = diagonal_translator(alignment_layer=layer)
        attention = translator.align_pairs(*pairs)["attention"].numpy()[0]
        assert (attention[5, 5] > 0.9) if peaked else (attention[5] < 0.1).all()


def test_forced_and_found_alignments_are_one():
    """Of texts that read back as the pieces that were found."""
    translator = make_translator(num_layers=2)
    found = translator.translate_with_alignments(tf.constant(FRENCH))
    ids = translator.generate(
        *(lambda e: (e.token_ids, translator.max_lengths(e.lengths)))(
            translator.encode_source(tf.constant(FRENCH))
        )
    ).token_ids[:, 0]
    again = 0
    for row, text in enumerate(found["texts"][:, 0].numpy()):
        length = int(found["lengths"][row, 0])
        cut = tokenizers()[1].encode([text.decode()])[0]
        if not found["finished"][row, 0] or cut != ids[row, : length - 1].numpy().tolist():
            continue
        again += 1
        forced = translator.align_pairs(tf.constant([FRENCH[row]]), tf.constant([text]))
        width = forced["source_pieces"].shape[1]
        np.testing.assert_allclose(
            forced["attention"][0, :length], found["attention"][row, :length, :width], atol=1e-4
        )
        for name in ("piece_alignment", "word_alignment"):
            np.testing.assert_array_equal(forced[name][0, :length], found[name][row, 0, :length])
    assert again >= 2

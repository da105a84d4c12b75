"""Decoding options: each reaches the search, and what a whole model makes of it."""

import dataclasses
import math

import numpy as np
import pytest
import tensorflow as tf

from tests.tiny_translator import FRENCH, make_config, make_translator, teacher_forced, tokenizers
from tf_transformer import DecodingOptions, InputError, RowOptions, Translator
from tf_transformer.decoding import SEARCHES, EndAtLimit, ForcedPrefix
from tf_transformer.model import build_attention_model

# Every field with a value that is not its default.
OTHER = dict(
    search="sampling",
    num_beams=3,
    diversity=0.25,
    alpha=-0.5,
    length_penalty="power",
    coverage_penalty=0.25,
    max_source_length=40,
    length_factor=1.5,
    extra_length=7,
    max_length=30,
    min_length=4,
    end_at_limit=True,
    repetition_penalty=1.25,
    no_repeat_ngram_size=3,
    suppress_unk=True,
    suppressed_ids=[7, 9],
    alignment_layer=0,
    temperature=0.75,
    top_k=20,
    top_p=0.5,
    seed=8,
)


@pytest.fixture(scope="module")
def translator():
    """Random weights; K is 4."""
    return make_translator(seed=2)


def test_every_option_reaches_the_search():
    assert list(OTHER) == [field.name for field in dataclasses.fields(DecodingOptions)]
    options = DecodingOptions(**OTHER)
    search = options.make()
    assert isinstance(search, SEARCHES["sampling"])
    for name in ("num_beams", "alpha", "length_penalty", "coverage_penalty", "temperature"):
        assert getattr(search, name) == OTHER[name]
    assert (search.top_k, search.top_p, search.seed) == (20, 0.5, 8)
    penalty, ngram, suppressed, minimum, end = search.rules
    assert (penalty.penalty, ngram.size, minimum.length) == (1.25, 3, 4)
    assert suppressed.token_ids == (7, 9, 1) and isinstance(end, EndAtLimit)
    assert DecodingOptions(search="diverse", diversity=0.25).make().diversity == 0.25
    for name in SEARCHES:
        assert DecodingOptions(search=name).make().rules == ()


def test_a_run_directory_keeps_them(tmp_path):
    translator = make_translator().with_options(**OTHER)
    translator.save(tmp_path / "run", make_config())
    assert Translator.load(tmp_path / "run").options == DecodingOptions(**OTHER)
    changed = Translator.load(tmp_path / "run", search="beam", min_length=0).options
    assert changed == DecodingOptions(**{**OTHER, "search": "beam", "min_length": 0})


@pytest.mark.case("53")
def test_the_limit_of_an_output():
    """The paper's source + 50; a x source + b, rounded; never above a limit; at least 1."""
    lengths = tf.constant([1, 2, 10, 61])
    for options, expected in (
        ({}, [51, 52, 60, 111]),
        ({"length_factor": 1.3, "extra_length": 2}, [3, 5, 15, 81]),
        ({"length_factor": 0.0, "extra_length": 0}, [1, 1, 1, 1]),
        ({"extra_length": 5, "max_length": 12}, [6, 7, 12, 12]),
    ):
        options = DecodingOptions(**options)
        found = options.max_lengths(lengths)
        assert found.dtype == tf.int32 and found.numpy().tolist() == expected
        (longest,) = options.max_lengths(tf.constant([options.max_source_length])).numpy()
        assert options.max_target_length == longest


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"search": "best"}, "`search`.*beam.*'best'"),
        ({"num_beams": 0}, "`num_beams`.*0"),
        ({"num_beams": 2.5}, "`num_beams`.*2.5"),
        ({"num_beams": "4"}, "`num_beams`.*'4'"),
        ({"num_beams": True}, "`num_beams`.*True"),
        ({"alpha": float("nan")}, "`alpha`.*nan"),
        ({"alpha": 100.0}, "`alpha`.*100"),
        ({"alpha": "0.6"}, "`alpha`.*'0.6'"),
        ({"max_source_length": 1}, "`max_source_length`.*1"),
        ({"max_source_length": None}, "`max_source_length`.*None"),
        ({"extra_length": -1}, "`extra_length`.*-1"),
        ({"length_penalty": "wu"}, "`length_penalty` must be one of gnmt, power, none.*'wu'"),
        ({"coverage_penalty": -1.0}, "`coverage_penalty`.*-1"),
        ({"length_factor": math.inf}, "`length_factor`.*inf"),
        ({"max_length": 0}, "`max_length`.*0"),
        ({"min_length": -1}, "`min_length`.*-1"),
        ({"repetition_penalty": 0}, "`repetition_penalty`.*0"),
        ({"no_repeat_ngram_size": -2}, "`no_repeat_ngram_size`.*-2"),
        ({"suppressed_ids": ["the"]}, "`suppressed_ids`.*'the'"),
        # Wrong for any search, though only one of them reads it.
        ({"temperature": 0.0}, "`temperature`.*0.0"),
        ({"search": "greedy", "top_k": -1}, "`top_k`.*-1"),
        ({"top_p": 1.5}, "`top_p`.*1.5"),
        ({"seed": -1}, "`seed`.*-1"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(InputError, match=message) as caught:
        DecodingOptions(**options)
    assert "\n" not in str(caught.value)


# With a model


def whole(model, source, tokens):
    """log P of each token and its attention to the source, by one pass through the whole model."""
    inputs = {
        "encoder_token_ids": source[None],
        "decoder_token_ids": np.array([[2, *tokens[:-1]]], "int32"),
    }
    weights = np.asarray(build_attention_model(model)(inputs)["cross"])[0, 0].mean(axis=0)
    return teacher_forced(model, source, tokens), weights


def test_what_is_reported_is_the_models_own_under_any_rules(translator):
    """Rules, prefixes, coverage and alphas by row: each token's log P and attention, each score."""
    ruled = translator.with_options(
        num_beams=3,
        repetition_penalty=1.5,
        no_repeat_ngram_size=2,
        suppress_unk=True,
        coverage_penalty=0.4,
        end_at_limit=True,
    )
    token_ids, lengths = ruled.encode_source(tf.constant([FRENCH[1], FRENCH[0], "la"]))[:2]
    prefixes = [[5, 6], [], [4, 9, 8]]
    dense = tf.ragged.constant(prefixes, dtype=tf.int32).to_tensor()
    alphas = [0.6, -1.0, 2.0]
    rows = RowOptions(alpha=tf.constant(alphas), num_beams=tf.constant([3, 2, 1]))
    found = ruled.generate(
        token_ids, tf.constant([7, 9, 8]), rows=rows, rules=[ForcedPrefix(dense)]
    )
    assert (found.scores.numpy() > -np.inf).sum(axis=1).tolist() == [3, 2, 1]
    for row, k in zip(*np.nonzero(found.scores.numpy() > -np.inf), strict=True):
        source = token_ids[row, : lengths[row]].numpy()
        tokens = found.token_ids[row, k, : found.lengths[row, k]].numpy().tolist()
        assert tokens[: len(prefixes[row])] == prefixes[row] and tokens[-1] == 3
        pairs = list(zip(tokens, tokens[1:], strict=False))
        assert 1 not in tokens and len(set(pairs)) == len(pairs)
        own, weights = whole(translator.model, source, tokens)
        near = dict(rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(found.token_log_probs[row, k, : len(tokens)], own, **near)
        np.testing.assert_allclose(found.log_probs[row, k], own.sum(), **near)
        attention = found.extras["attention"][row, k, : len(tokens), : lengths[row]]
        np.testing.assert_allclose(attention, weights, **near)
        assert not found.extras["attention"][row, k, :, lengths[row] :].numpy().any()
        forced = [len(prefixes[row]) > place for place in range(len(tokens))]
        forced[-1] |= len(tokens) == [7, 9, 8][row]
        again = [token in tokens[:place] for place, token in enumerate(tokens)]
        counts = [
            1.5 if twice and not must else 1 for twice, must in zip(again, forced, strict=True)
        ]
        cover = 0.4 * np.log(np.minimum(weights.sum(axis=0), 1.0)).sum()
        score = (own * counts).sum() / ((5 + len(tokens)) / 6) ** alphas[row] + cover
        np.testing.assert_allclose(found.scores[row, k], score, **near)


@pytest.mark.case("47")
@pytest.mark.case("51")
@pytest.mark.parametrize("search", ["diverse", "sampling"])
def test_a_sentence_is_as_if_it_were_alone(translator, search):
    """Draws follow from its own tokens: the same in any batch; a blank text is one, whatever."""
    options = dict(search=search, num_beams=2, seed=4, top_k=30, min_length=3, end_at_limit=True)
    searching = translator.with_options(**options)
    texts = [*FRENCH, "", "  "]
    together = searching.translate(tf.constant(texts))
    backwards = searching.translate(tf.constant(texts[::-1]))["text"].numpy()
    said = together["text"].numpy()
    np.testing.assert_array_equal(backwards[::-1], said)
    for place in (0, 5, 8):
        alone = searching.translate(tf.constant([texts[place]]))["text"].numpy()
        assert alone[0] == said[place]
    assert said[8:].tolist() == [b"", b""] and together["score"].numpy()[8:].tolist() == [0, 0]
    assert searching.translate(tf.zeros([0], tf.string))["text"].shape == (0,)


def test_another_seed_draws_something_else(translator):
    assert tokenizers()[0].vocabulary_size > 30
    drawn = []
    for seed in (4, 5):
        sampling = translator.with_options(search="sampling", num_beams=1, seed=seed, top_k=30)
        drawn.append(sampling.translate(tf.constant(FRENCH))["text"].numpy())
    assert (drawn[0] != drawn[1]).sum() > len(FRENCH) / 2

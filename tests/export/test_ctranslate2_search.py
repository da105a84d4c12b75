"""`search_arguments`: CTranslate2 searches as the translator does, or the option is refused."""

import functools
from collections import Counter

import numpy as np
import pytest
import tensorflow as tf

from export.ctranslate2 import export_ctranslate2
from export.ctranslate2_search import search_arguments
from tests.tiny_translator import FRENCH, make_translator
from tests.trained_translator import trained_translator
from tf_transformer.config import END_ID, PAD_ID, START_ID, UNK_ID
from tf_transformer.decoding import ForcedPrefix
from tf_transformer.errors import InputError

ctranslate2 = pytest.importorskip("ctranslate2", reason="the extra ctranslate2 is not installed")

GREEDY = dict(search="greedy", alpha=0.0, max_length=12)
TEXTS = [text.encode() for text in FRENCH]


@functools.cache
def random_model(seed, likelier=()):
    """Random weights; PAD and START have no share of the probability, some others a larger one."""
    translator = make_translator(seed=seed, output_bias=True)
    bias = translator.model.get_layer("decoder_embedding").bias
    values = np.array(bias)
    values[[PAD_ID, START_ID]] = -50.0
    values[list(likelier)] += 6.0 if END_ID in likelier else 12.0
    bias.assign(values)
    return translator


@pytest.fixture(scope="module")
def engine_of(tmp_path_factory):
    """The engine over a translator's weights, which do not depend on its options."""

    @functools.cache
    def opened(model):
        translator = models[model].with_options(**GREEDY)
        folder = export_ctranslate2(translator, tmp_path_factory.mktemp("ct2") / "model")
        threads = {"inter_threads": 1, "intra_threads": 1}
        return ctranslate2.Translator(str(folder), compute_type="float32", **threads)

    models = {}

    def engine(translator):
        models[id(translator.model)] = translator
        return opened(id(translator.model))

    return engine


def ours(translator, rules=()):
    """Pieces without END, and scores, of the best of each sentence."""
    source = translator.encode_source(tf.constant(TEXTS))
    limits = translator.max_lengths(source.lengths)
    found = translator.generate(source.token_ids, limits, rules=rules)
    names = translator.tokenizers.target.vocabulary()
    rows = [
        [names[i] for i in ids[:length] if i != END_ID]
        for ids, length in zip(
            found.token_ids[:, 0].numpy(), found.lengths[:, 0].numpy(), strict=True
        )
    ]
    return rows, found.scores[:, 0].numpy()


def theirs(translator, engine, **more):
    """The same of the engine."""
    source = [translator.tokenizers.source.pieces(text) for text in FRENCH]
    arguments = {**search_arguments(translator), "return_scores": True, **more}
    found = engine.translate_batch(source, **arguments)
    rows = [[piece for piece in one.hypotheses[0] if piece != "</s>"] for one in found]
    return rows, [one.scores[0] for one in found]


@pytest.mark.parametrize("seed", [2, 3])
@pytest.mark.parametrize(
    "options, likelier",
    [
        ({}, [END_ID]),  # the engine's own default is never to end at once
        (dict(min_length=2), [END_ID]),
        (dict(min_length=9), [END_ID]),
        (dict(no_repeat_ngram_size=1), []),
        (dict(no_repeat_ngram_size=2), []),
        (dict(no_repeat_ngram_size=3), []),
        (dict(suppress_unk=True), [UNK_ID]),
        (dict(suppressed_ids=[9, 17]), [9, 17]),
        (dict(max_source_length=4), []),
        (dict(max_length=5), []),
    ],
    ids=str,
)
def test_an_option_of_greedy_search(options, likelier, seed, engine_of):
    plain = random_model(seed, tuple(likelier)).with_options(**GREEDY)
    translator = plain.with_options(**options)
    expected, _ = ours(translator)
    found, _ = theirs(translator, engine_of(plain))
    assert found == expected
    if options:
        assert expected != ours(plain)[0], "the option changes nothing"
    else:
        assert found != theirs(translator, engine_of(plain), min_decoding_length=1)[0]


def test_a_prefix_of_greedy_search(engine_of):
    translator = random_model(1).with_options(**GREEDY)
    ids = [[7, 11], [], [5], [20, 21, 22], [9], [], [4, 4], [30]]
    names = translator.tokenizers.target.vocabulary()
    padded = tf.keras.utils.pad_sequences(ids, padding="post")
    expected, _ = ours(translator, [ForcedPrefix(tf.constant(padded, tf.int32))])
    prefixes = [[names[i] for i in row] for row in ids]
    assert theirs(translator, engine_of(translator), target_prefix=prefixes)[0] == expected


@pytest.mark.parametrize(
    "options",
    [
        dict(alpha=0.0),
        dict(alpha=1.0, length_penalty="power"),
        dict(alpha=-0.5, length_penalty="power"),
    ],
    ids=str,
)
def test_beam_search(options, engine_of):
    translator = trained_translator().with_options(num_beams=4, **options)
    assert theirs(translator, engine_of(translator))[0] == ours(translator)[0]


def test_scores_of_beam_search_are_the_same(engine_of):
    """In a model that gives PAD and START no share; ends that the engine overlooks are seldom."""
    options = dict(num_beams=4, max_length=8, alpha=1.0, length_penalty="power")
    translator = random_model(2).with_options(**options)
    (expected, scores), (found, theirs_) = (
        ours(translator),
        theirs(translator, engine_of(translator)),
    )
    alike = [a == b for a, b in zip(found, expected, strict=True)]
    assert sum(alike) >= 6
    np.testing.assert_allclose(np.array(theirs_)[alike], scores[alike], atol=1e-4)


DRAWS = 4000


@pytest.mark.parametrize(
    "temperature, top_k, top_p",
    [(1.0, 0, 1.0), (3.0, 0, 0.6), (3.0, 5, 1.0), (3.0, 6, 0.5)],
)
def test_sampling_draws_by_the_same_shares(temperature, top_k, top_p, engine_of):
    """Of first tokens, against temperature, top-k and top-p written in NumPy, in this order."""
    limits = dict(temperature=temperature, top_k=top_k, top_p=top_p)
    sampling = dict(search="sampling", num_beams=1, max_length=1)
    translator = random_model(3).with_options(**sampling, **limits)
    inputs = {
        "encoder_token_ids": translator.encode_source(tf.constant(TEXTS[:1])).token_ids,
        "decoder_token_ids": tf.constant([[START_ID]]),
    }
    logits = np.array(translator.model(inputs))[0, 0].astype(float) / temperature
    order = np.argsort(-logits)[: top_k or None]
    shares = np.exp(logits[order] - logits.max())
    shares /= shares.sum()
    kept = np.cumsum(shares) - shares < top_p
    order, shares = order[kept], shares[kept] / shares[kept].sum()
    source = [translator.tokenizers.source.pieces(FRENCH[0])] * DRAWS
    ctranslate2.set_random_seed(1)
    found = engine_of(translator).translate_batch(source, **search_arguments(translator))
    drawn = Counter("".join(one.hypotheses[0]) or "</s>" for one in found)
    names = [translator.tokenizers.target.vocabulary()[i] for i in order]
    assert set(drawn) <= set(names)
    # Five standard deviations of each count.
    wrong = np.abs(np.array([drawn[name] for name in names]) - DRAWS * shares)
    assert (wrong <= 5 * np.sqrt(DRAWS * shares * (1 - shares)) + 1).all()


def test_alignments_are_those_of_the_layer_that_aligns(engine_of):
    translator = random_model(2).with_options(**GREEDY)
    source = translator.encode_source(tf.constant(TEXTS))
    limits = translator.max_lengths(source.lengths)
    expected = translator.generate_with_attention(source.token_ids, limits).extras["attention"]
    pieces = [translator.tokenizers.source.pieces(text) for text in FRENCH]
    arguments = {**search_arguments(translator), "return_attention": True}
    found = engine_of(translator).translate_batch(pieces, **arguments)
    for row, one in enumerate(found):
        attention = np.array(one.attention[0])
        length, width = attention.shape
        right = expected[row, 0, :length, :width]
        np.testing.assert_allclose(attention, right, atol=1e-4)


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(), "no length penalty `gnmt`; take .* Received: length_penalty='gnmt', alpha=0.6"),
        (dict(search="diverse"), "no diverse search. Received: search='diverse'"),
        (dict(alpha=0.0, coverage_penalty=0.2), "has no `coverage_penalty` for .*=0.2"),
        (dict(search="sampling"), "no length penalty `gnmt`"),
        (dict(**GREEDY, repetition_penalty=1.2), "by a `repetition_penalty`.*Received: .*=1.2"),
        (dict(**GREEDY, end_at_limit=True), "make an output end at its limit.*=True"),
        (dict(alpha=0.0, min_length=3), "what `min_length` leaves; .* min_length=3, num_beams=4"),
        (dict(alpha=0.0, no_repeat_ngram_size=3), "what `no_repeat_ngram_size` leaves"),
        (dict(alpha=0.0, suppress_unk=True), "what `suppress_unk` leaves"),
        (dict(alpha=0.0, suppressed_ids=[7]), r"what `suppressed_ids` leaves.*=\(7,\)"),
    ],
)
def test_what_has_another_meaning_there_is_refused_by_name(options, message, tmp_path):
    translator = make_translator().with_options(**options)
    with pytest.raises(InputError, match=message):
        export_ctranslate2(translator, tmp_path / "ct2")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("options", [dict(search="greedy"), dict(num_beams=1)], ids=str)
def test_one_hypothesis_has_no_penalty_to_refuse(options):
    arguments = search_arguments(make_translator().with_options(**options, min_length=2))
    assert (arguments["beam_size"], arguments["length_penalty"]) == (1, 0)

"""Sampling: how often what comes, against the exact distribution; what a draw depends on."""

import math

import numpy as np
import pytest
import tensorflow as tf

from tests.decoding.brute_force import Ids, Language, draw
from tests.decoding.steps import check, hypotheses, in_graph, run, tasks_of
from tf_transformer.decoding import GreedySearch, RowOptions, SamplingSearch
from tf_transformer.decoding.noise import fingerprints, fold, mix, uniform

ROWS, V, END = 4000, 7, 3
WORDS = (1, 4, 5, 6)


def one_language(seed=3):
    """A language in which anything may follow on anything; PAD and START take their share."""
    logits = np.random.default_rng(seed).normal(size=(1, 1, V, V)).astype("float32") * 1.3
    return Language("last token", logits, Ids())


def copies(language, rows):
    """The same for every row."""
    return language._replace(logits=np.repeat(language.logits, rows, axis=0))


def kept(probabilities, temperature, top_k, top_p):
    """The distribution of the next token (V,) as the literature has it: k likeliest, nucleus."""
    allowed = np.isin(np.arange(V), [*WORDS, END])
    weights = np.where(allowed, probabilities, 0.0) ** (1 / temperature)
    order = np.argsort(-weights, kind="stable")
    if top_k:
        weights[order[top_k:]] = 0.0
    weights /= weights.sum()
    mass = 0.0
    for token in order:
        if mass >= top_p:
            weights[token] = 0.0
        mass += weights[token]
    return weights / weights.sum()


def distribution(language, limit, **how):
    """{tokens: probability} of all that can be drawn."""
    found, layer = {}, {(): 1.0}
    for length in range(1, limit + 1):
        longer = {}
        for tokens, before in layer.items():
            history = np.array([[language.ids.start, *tokens]])
            shares = kept(np.exp(language.log_probs(history)[0, 0]), **how)
            for token in np.flatnonzero(shares):
                ends = token == END or length == limit
                (found if ends else longer)[(*tokens, int(token))] = before * shares[token]
        layer = longer
    return found


@pytest.mark.parametrize(
    "how",
    [
        dict(temperature=1.0, top_k=0, top_p=1.0),
        dict(temperature=0.5, top_k=0, top_p=1.0),
        dict(temperature=2.0, top_k=2, top_p=1.0),
        dict(temperature=1.0, top_k=0, top_p=0.7),
        dict(temperature=1.5, top_k=3, top_p=0.8),
    ],
)
def test_each_output_comes_as_often_as_it_should(how):
    """Chi-square over all outputs of up to two tokens, 12,000 draws; nothing else comes at all."""
    language, samples = one_language(), 3
    search = SamplingSearch(samples, seed=11, **how)
    rows = RowOptions(seeds=tf.range(ROWS))
    result = run(search, copies(language, ROWS), [2] * ROWS, rows=rows)
    expected = distribution(language, 2, **how)
    assert math.fsum(expected.values()) == pytest.approx(1.0)
    counts = dict.fromkeys(expected, 0)
    for found in hypotheses(result):
        for one in found:
            counts[one.tokens] += 1
    draws = ROWS * samples
    assert sum(counts.values()) == draws
    common = [tokens for tokens, share in expected.items() if share * draws >= 5]
    chi = sum(
        (counts[tokens] - expected[tokens] * draws) ** 2 / (expected[tokens] * draws)
        for tokens in common
    )
    # Wilson-Hilferty: the cube root of chi-square over its freedom is normal; 4 sigma.
    freedom = len(common) - 1
    z = ((chi / freedom) ** (1 / 3) - 1 + 2 / (9 * freedom)) / math.sqrt(2 / (9 * freedom))
    assert abs(z) < 4, (chi, freedom)


def test_samples_and_positions_are_independent():
    """Of two samples of a row, and of two positions: each pair as often as both its parts."""
    even = np.zeros((1, 1, V, V), "float32")
    even[..., [0, 2, 3]] = -np.inf
    language = copies(Language("last token", even, Ids()), ROWS)
    search, rows = SamplingSearch(2, seed=1), RowOptions(seeds=tf.range(ROWS) * 1000)
    # Equal scores: the samples stay in their order.
    ids = run(search, language, [2] * ROWS, rows=rows).token_ids.numpy()
    for one, other in ((ids[:, 0, 0], ids[:, 1, 0]), (ids[:, 0, 0], ids[:, 0, 1])):
        for first in WORDS:
            for second in WORDS:
                count = int(((one == first) & (other == second)).sum())
                assert abs(count - ROWS / 16) < 4 * math.sqrt(ROWS / 16)


def test_a_row_draws_the_same_whatever_stands_beside_it():
    """Alone, among 31 others and in another order: a function of seed, row, sample and step."""
    language = draw("history", 32, 6, seed=2)
    limits = np.random.default_rng(3).integers(1, 8, size=32)
    seeds = np.random.default_rng(4).integers(-(2**31), 2**31, size=32).astype("int32")
    search = in_graph(SamplingSearch(3, seed=7, top_p=0.9), language)

    def ids(order):
        rows = RowOptions(seeds=tf.constant(seeds[order]))
        return search(language.logits[order], limits[order], rows=rows).token_ids.numpy()

    together, order = ids(np.arange(32)), np.random.default_rng(5).permutation(32)
    shuffled = ids(order)
    for row in range(32):
        mine = together[row, :, : limits[row]]
        np.testing.assert_array_equal(ids(np.array([row]))[0], mine)
        place = int(np.flatnonzero(order == row)[0])
        np.testing.assert_array_equal(shuffled[place, :, : limits[row]], mine)


def test_the_seed_is_all_that_changes_a_draw():
    language = draw("position", 50, 6, seed=2)
    drawn = [
        run(SamplingSearch(seed=seed), language, [6] * 50).token_ids.numpy() for seed in (1, 1, 2)
    ]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert (drawn[0] != drawn[2]).any(axis=(1, 2)).mean() > 0.5


def test_fewer_samples_are_the_first_of_them():
    language = draw("position", 40, 6, seed=6)
    asked = tf.constant([1, 2, 3, 4] * 10)
    search = SamplingSearch(4, seed=3)
    result = run(search, language, [6] * 40, rows=RowOptions(num_beams=asked))
    check(search, language, tasks_of(search, [6] * 40), result)
    built = [
        hypotheses(run(SamplingSearch(few, seed=3), language, [6] * 40)) for few in (1, 2, 3, 4)
    ]
    for row, found in enumerate(hypotheses(result)):
        few = built[row % 4][row]
        assert [one.tokens for one in found] == [one.tokens for one in few]
        assert {one.tokens for one in found} <= {one.tokens for one in built[3][row]}


def test_one_token_to_choose_from_is_greedy_search():
    language = draw("history", 200, 6, seed=8)
    limits = [1 + row % 7 for row in range(200)]
    greedy = run(GreedySearch(), language, limits)
    for how in (dict(top_k=1), dict(top_p=1e-6), dict(temperature=1e-3)):
        sampled = run(SamplingSearch(seed=9, **how), language, limits)
        np.testing.assert_array_equal(sampled.token_ids, greedy.token_ids)
        np.testing.assert_allclose(sampled.scores, greedy.scores, rtol=1e-6)


def test_the_hash_is_a_permutation_without_order():
    numbers = tf.range(2**16)
    mixed = mix(tf.cast(numbers, tf.uint32)).numpy()
    assert len(set(mixed.tolist())) == 2**16 and mixed.dtype == np.uint32
    # Every bit of it is even, for near keys and for near numbers.
    for keys in (fold(tf.zeros([2**16], tf.uint32), numbers), fold(tf.cast(numbers, tf.uint32), 0)):
        shares = uniform(keys).numpy()
        assert 0.0 < shares.min() < 1e-4 and 1 - 1e-4 < shares.max() < 1.0
        counts = np.histogram(shares, bins=256, range=(0, 1))[0]
        assert ((counts - 256) ** 2 / 256).sum() == pytest.approx(255, abs=4 * math.sqrt(510))
        assert abs(np.corrcoef(shares[:-1], shares[1:])[0, 1]) < 0.02
    # From the C code of its author: lowbias32(1) and lowbias32(2^32 - 1), by hand in integers.
    for value in (1, 2**32 - 1):
        x = value ^ value >> 16
        x = x * 0x7FEB352D % 2**32
        x = (x ^ x >> 15) * 0x846CA68B % 2**32
        assert int(mix(tf.constant([value], tf.uint32))[0]) == x ^ x >> 16


def test_a_fingerprint_is_of_the_tokens_not_of_the_padding():
    ids = np.random.default_rng(1).integers(4, 9000, size=(500, 12))
    found = fingerprints(tf.constant(ids, tf.int32), 0).numpy()
    assert len(set(found.tolist())) == 500 and found.dtype == np.int32
    wider = np.pad(ids, [(0, 0), (0, 5)])
    np.testing.assert_array_equal(fingerprints(tf.constant(wider, tf.int32), 0), found)
    turned = fingerprints(tf.constant(ids[:, ::-1].copy(), tf.int32), 0).numpy()
    assert not set(turned.tolist()) & set(found.tolist())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_beams", 0),
        ("temperature", 0.0),
        ("temperature", math.nan),
        ("top_k", -1),
        ("top_k", 1.5),
        ("top_p", 0.0),
        ("top_p", 1.1),
        ("seed", -1),
        ("seed", 2**31),
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused(name, value):
    with pytest.raises(ValueError, match=rf"`{name}`.*Received"):
        SamplingSearch(**{name: value})

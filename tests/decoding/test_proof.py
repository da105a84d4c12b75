"""500 random step tables of 5 tokens, up to 4 long, K 1 to 6, alpha of both signs: all counted.

Each table has a limit, a K and an alpha of its own, and one search serves them all.
"""

import numpy as np
import pytest
import tensorflow as tf

from tests.decoding.brute_force import (
    KINDS,
    Task,
    all_hypotheses,
    draw,
    patient_beam_search,
)
from tests.decoding.steps import assert_same, check, hypotheses, run
from tf_transformer.decoding import LENGTH_PENALTIES, BeamSearch, RowOptions

TABLES, BEAMS = 500, 6


def problem(kind, penalty="gnmt"):
    """The tables, and for each how many beams and what to search for."""
    random = np.random.default_rng(KINDS.index(kind))
    language = draw(kind, TABLES, 5, seed=21)
    limits = random.integers(1, 5, size=TABLES)
    alphas = random.uniform(-3.0, 3.0, size=TABLES).astype("float32")
    beams = random.integers(1, BEAMS + 1, size=TABLES).astype("int32")
    tasks = [Task(int(n), float(a), penalty) for n, a in zip(limits, alphas, strict=True)]
    return language, tasks, limits, alphas, beams


@pytest.mark.case("43")
@pytest.mark.parametrize("penalty", LENGTH_PENALTIES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_n_best_are_those_of_all_sequences(kind, penalty):
    language, tasks, limits, alphas, beams = problem(kind, penalty)
    search = BeamSearch(BEAMS, length_penalty=penalty)
    rows = RowOptions(alpha=tf.constant(alphas), num_beams=tf.constant(beams))
    result = run(search, language, limits, rows=rows)
    check(search, language, tasks, result)
    counted = 0
    for row, found in enumerate(hypotheses(result)):
        expected, all_seen = patient_beam_search(language.row(row), beams[row], tasks[row])
        assert_same(found, expected)
        if all_seen:  # so beam search can promise the best of all
            assert_same(found, all_hypotheses(language.row(row), tasks[row])[: beams[row]])
            counted += len(found) > 1
    assert 0.3 * TABLES < counted < TABLES


@pytest.mark.parametrize("kind", KINDS)
def test_fewer_beams_are_what_a_search_built_with_fewer_finds(kind):
    """Rows of other K beside them or not; bit for bit, but for what `pow` makes of its last."""
    language, _, limits, alphas, beams = problem(kind)
    rows = RowOptions(alpha=tf.constant(alphas))
    mixed = run(
        BeamSearch(BEAMS), language, limits, rows=rows._replace(num_beams=tf.constant(beams))
    )
    for num_beams in range(1, BEAMS + 1):
        built = run(BeamSearch(num_beams), language, limits, rows=rows)
        asked = tf.fill([TABLES], num_beams)
        found = run(BeamSearch(BEAMS), language, limits, rows=rows._replace(num_beams=asked))
        here = beams == num_beams
        for one, other, among in zip(built[:6], found[:6], mixed[:6], strict=True):
            one, other, among = (part.numpy() for part in (one, other, among))
            ulp = 3e-7 if one.dtype == np.float32 else 0
            np.testing.assert_allclose(other[:, :num_beams], one, rtol=ulp)
            np.testing.assert_allclose(among[here][:, :num_beams], one[here], rtol=ulp)
            assert not other[:, num_beams:].any() or (other[:, num_beams:] == -np.inf).all()


def test_what_a_row_asks_for_is_kept_within_what_there_is():
    language, _, limits, _, _ = problem("position")
    wild = tf.constant([-5, 0, 1, 3, 9] * 100), tf.constant([-99.0, -10.0, 0.5, 10.0, 99.0] * 100)
    tame = tf.constant([1, 1, 1, 3, 3] * 100), tf.constant([-10.0, -10.0, 0.5, 10.0, 10.0] * 100)
    found = [
        run(BeamSearch(3), language, limits, rows=RowOptions(alpha=alpha, num_beams=beams))
        for beams, alpha in (wild, tame)
    ]
    for one, other in zip(found[0][:6], found[1][:6], strict=True):
        np.testing.assert_array_equal(one, other)

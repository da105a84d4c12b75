"""GNMT's coverage penalty, from attention weights that a step says, against enumeration."""

import math

import numpy as np
import pytest
import tensorflow as tf

from tests.decoding.brute_force import all_hypotheses, draw, patient_beam_search
from tests.decoding.steps import (
    assert_same,
    check,
    hypotheses,
    make_step,
    start,
    tasks_of,
)
from tf_transformer.decoding import BeamSearch, GreedySearch, RowOptions, SamplingSearch

ROWS, V, PLACES, BETA = 200, 5, 4, 0.7
RANDOM = np.random.default_rng(5)
LENGTHS = RANDOM.integers(1, PLACES + 1, size=ROWS)  # of the sources
REAL = np.arange(PLACES) < LENGTHS[:, None]
LIMITS = RANDOM.integers(1, 5, size=ROWS)


def attention_table():
    """(B, position, last token, S): sharp and flat, nothing on pads."""
    scores = RANDOM.normal(size=(ROWS, 4, V, PLACES)) * RANDOM.choice([1, 5], size=(ROWS, 1, 1, 1))
    weights = np.exp(scores) * REAL[:, None, None]
    return (weights / weights.sum(axis=-1, keepdims=True)).astype("float32")


TABLE = attention_table()


def cover(row):
    """beta * sum over real source tokens of log(min(attention of all target tokens, 1)).

    An attention below 1e-9 counts as 1e-9.
    """

    def of(tokens):
        before = [2, *tokens[:-1]]
        total = sum(
            TABLE[row, place, token].astype("float64") for place, token in enumerate(before)
        )
        return BETA * sum(math.log(min(max(one, 1e-9), 1.0)) for one in total[: LENGTHS[row]])

    return of


def search_with(search, language, mask=REAL):
    rows = ROWS * search.num_beams
    step, table = make_step(language, search.num_beams), tf.constant(TABLE)

    def attending(token_ids, state, index):
        logits, state = step(token_ids, state, index)
        row = tf.range(rows) // search.num_beams
        at = tf.stack([row, tf.fill([rows], index), token_ids], axis=1)
        return logits, state, {"attention": tf.gather_nd(table, at)}

    return search(
        attending,
        start(language, ROWS, search.num_beams),
        tf.constant(LIMITS, tf.int32),
        extras={"attention": tf.zeros([rows, PLACES])},
        rows=RowOptions(source_mask=None if mask is None else tf.constant(mask)),
    )


@pytest.mark.parametrize("num_beams", [1, 2, 3, 16])
def test_beam_search_ranks_what_has_ended_by_it(num_beams):
    search = BeamSearch(num_beams, [0.6, -1.0][num_beams % 2], coverage_penalty=BETA)
    language = draw("history", ROWS, V, seed=41)
    tasks = tasks_of(search, LIMITS)
    tasks = [task._replace(cover=cover(row)) for row, task in enumerate(tasks)]
    result = search_with(search, language)
    check(search, language, tasks, result)
    counted = changed = 0
    for row, found in enumerate(hypotheses(result)):
        expected, all_seen = patient_beam_search(language.row(row), num_beams, tasks[row])
        assert_same(found, expected)
        if all_seen:
            every = all_hypotheses(language.row(row), tasks[row])
            assert_same(found, every[:num_beams])
            plain = all_hypotheses(language.row(row), tasks[row]._replace(cover=None))
            changed += bool(every) and every[0].tokens != plain[0].tokens
            counted += 1
    assert num_beams < 16 or (counted > 0.9 * ROWS and changed > 10)


@pytest.mark.parametrize("search", [GreedySearch, SamplingSearch])
def test_the_score_of_any_search_has_it(search):
    search = search(coverage_penalty=BETA)
    language = draw("position", ROWS, V, seed=42)
    tasks = tasks_of(search, LIMITS)
    tasks = [task._replace(cover=cover(row)) for row, task in enumerate(tasks)]
    check(search, language, tasks, search_with(search, language))


def test_a_source_token_that_nobody_looks_at_does_not_make_all_worthless():
    """log 0 is minus infinity; 1e-9 stands in for it."""
    language = draw("position", ROWS, V, seed=43)
    seen = search_with(GreedySearch(coverage_penalty=1.0), language, np.ones_like(REAL))
    free = search_with(GreedySearch(coverage_penalty=1.0), language)
    unseen = (PLACES - LENGTHS) * math.log(1e-9)
    found = seen.scores.numpy()[:, 0] > -np.inf
    np.testing.assert_allclose(
        seen.scores.numpy()[found, 0],
        (free.scores.numpy()[:, 0] + unseen)[found],
        rtol=1e-5,
        atol=1e-4,
    )


def test_what_it_needs_is_asked_for():
    language = draw("position", ROWS, V, seed=43)
    with pytest.raises(ValueError, match=r"coverage_penalty.*source_mask.*attention"):
        search_with(GreedySearch(coverage_penalty=0.2), language, mask=None)
    for wrong in (-0.1, math.nan, "0.2"):
        with pytest.raises(ValueError, match=r"`coverage_penalty`.*Received"):
            BeamSearch(coverage_penalty=wrong)

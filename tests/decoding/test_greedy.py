"""Greedy search against a loop over NumPy's argmax."""

import math

import numpy as np
import pytest

from tests.decoding.brute_force import KINDS, Ids, Language, draw, log_prob
from tests.decoding.steps import check, hypotheses, in_graph, run, tasks_of
from tf_transformer.decoding import BeamSearch, GreedySearch

ROWS = 300


def toy(table, ids):
    """A last-token language of one row; what a row of `table` leaves over is PAD's."""
    probabilities = np.array(table, "float64")
    probabilities[:, ids.pad] += 1.0 - probabilities.sum(axis=1)
    with np.errstate(divide="ignore"):
        logits = np.log(probabilities.clip(0.0)).astype("float32")
    return Language("last token", logits[None, None], ids)


def rollout(language, limit):
    """The most likely token, the lowest id of equal ones, again and again; None at a dead end."""
    ids, history = language.ids, [language.ids.start]
    allowed = sorted([*language.words(), ids.end])
    while len(history) <= limit and history[-1] != ids.end:
        log_probs = language.log_probs(np.array([history]))[0, 0][allowed]
        if log_probs.max() == -np.inf:
            return None
        history.append(allowed[int(log_probs.argmax())])
    return tuple(history[1:])


@pytest.mark.parametrize("ids", [Ids(), Ids(pad=4, start=5, end=0)])
@pytest.mark.parametrize("kind", KINDS)
def test_it_takes_the_best_token_again_and_again(kind, ids):
    language = draw(kind, ROWS, 6, seed=5, ids=ids)
    limits = np.random.default_rng(6).integers(1, 12, size=ROWS).tolist()
    search = GreedySearch(0.6, start_id=ids.start, end_id=ids.end, pad_id=ids.pad)
    result = run(search, language, limits)
    check(search, language, tasks_of(search, limits), result)
    dead_ends = 0
    for row, found in enumerate(hypotheses(result)):
        expected = rollout(language.row(row), limits[row])
        assert [one.tokens for one in found] == ([] if expected is None else [expected])
        dead_ends += expected is None
    assert 0 < dead_ends < ROWS / 10


@pytest.mark.parametrize("kind", KINDS)
def test_one_beam_is_greedy_search_bit_for_bit(kind):
    language = draw(kind, ROWS, 6, seed=7)
    limits = [1 + row % 9 for row in range(ROWS)]
    greedy, beam = (run(search, language, limits) for search in (GreedySearch(), BeamSearch(1)))
    for one, other in zip(greedy[:6], beam[:6], strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_graph_equals_eager_execution_and_takes_any_batch():
    language = draw("history", ROWS, 6, seed=8)
    search = GreedySearch()

    graph = in_graph(search, language)
    limits = [1 + row % 9 for row in range(ROWS)]
    expected = run(search, language, limits)
    found = graph(language.logits, limits)
    for one, other in zip(found[:6], expected[:6], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    np.testing.assert_array_equal(found.token_ids, expected.token_ids)
    few = graph(language.logits[:1], [2])
    np.testing.assert_array_equal(few.token_ids[0], run(search, language.row(0), [2]).token_ids[0])
    assert [tuple(part.shape) for part in graph(language.logits[:0], [])[:6]] == [
        (0, 1, 0),
        *[(0, 1)] * 4,
        (0, 1, 0),
    ]


def test_the_loop_ends_when_every_row_has():
    """Row 0 ends at once, row 1 after three tokens, row 2 at its limit of two."""
    ends = toy([[0.0] * 6, [0.0] * 6, [0, 0, 0, 1, 0, 0], *[[0.0] * 6] * 3], Ids()).logits
    table = [[0.0] * 6, [0.0] * 6, [0, 0, 0, 0, 1, 0], [0.0] * 6]
    three = toy([*table, [0, 0, 0, 0, 0, 1], [0, 0, 0, 1, 0, 0]], Ids()).logits
    never = toy([*table, [0, 0, 0, 0, 1, 0], [0.0] * 6], Ids()).logits
    calls: list[int] = []
    language = Language("last token", np.concatenate([ends, three, never]), Ids())
    result = run(GreedySearch(), language, [90, 80, 2], calls)
    assert calls == [0, 1, 2]
    assert result.token_ids[:, 0, :4].numpy().tolist() == [
        [3, 0, 0, 0],
        [4, 5, 3, 0],
        [4, 4, 0, 0],
    ]
    assert result.finished[:, 0].numpy().tolist() == [True, True, False]
    assert result.lengths[:, 0].numpy().tolist() == [1, 3, 2]


def test_of_equal_tokens_the_lowest_id_is_taken():
    quarter = [0.25, 0.0, 0.0, 0.0, 0.25, 0.25, 0.25]
    language = toy([*[quarter] * 4, [0, 0.5, 0, 0.5, 0, 0, 0], quarter, quarter], Ids())
    (found,) = hypotheses(run(GreedySearch(), language, [3]))
    assert found[0].tokens == (4, 1, 4)


@pytest.mark.case("45")
@pytest.mark.parametrize("search", [GreedySearch, BeamSearch])
def test_the_greedy_choice_of_the_case(search):
    rows = {1: {3: 0.6, 4: 0.4}, 3: {2: 0.4, 5: 0.3, 6: 0.3}, 4: {2: 1.0}, 5: {2: 1}, 6: {2: 1}}
    table = [[rows.get(token, {}).get(after, 0.0) for after in range(7)] for token in range(7)]
    ids = Ids(pad=0, start=1, end=2)
    one_beam = {"num_beams": 1} if search is BeamSearch else {}
    greedy = search(alpha=0.6, start_id=1, end_id=2, **one_beam)
    (found,) = hypotheses(run(greedy, toy(table, ids), [8]))
    assert found[0].tokens == (3, 2)
    assert (found[0].log_prob, found[0].score) == pytest.approx((-1.427116, -1.301042), abs=2e-6)


@pytest.mark.case("49")
def test_an_end_at_once_is_an_empty_text():
    """The step function answers after END, too: START -> END .6; END -> 3 .9."""
    ids = Ids(pad=0, start=1, end=2)
    language = toy([[0.0] * 4, [0, 0, 0.6, 0.4], [0, 0, 0.1, 0.9], [0, 0, 1.0, 0]], ids)
    calls: list[int] = []
    result = run(GreedySearch(0.0, start_id=1, end_id=2), language, [6], calls)
    assert calls == [0]
    assert result.token_ids[0, 0].numpy().tolist() == [2, 0, 0, 0, 0, 0]
    assert result.scores[0, 0].numpy() == pytest.approx(-0.510826, abs=2e-6)


def test_scores_are_of_the_whole_distribution():
    """PAD may not be chosen, but what it took is gone: log .3, not log of .3 / .5."""
    language = toy([[0.0] * 4, [0.0] * 4, [0.5, 0.3, 0.0, 0.2], [0.0] * 4], Ids())
    (found,) = hypotheses(run(GreedySearch(), language, [1]))
    assert found[0].tokens == (1,)
    assert found[0].log_prob == pytest.approx(math.log(0.3))
    assert found[0].log_prob == pytest.approx(log_prob(language, (1,)))

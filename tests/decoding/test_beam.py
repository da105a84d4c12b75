"""Beam search against enumeration, and against a beam search that never stops early."""

import itertools
import math

import numpy as np
import pytest
import tensorflow as tf

from tests.decoding.brute_force import (
    KINDS,
    Ids,
    Language,
    Task,
    all_hypotheses,
    draw,
    patient_beam_search,
)
from tests.decoding.steps import (
    assert_same,
    check,
    hypotheses,
    in_graph,
    run,
    tasks_of,
)
from tf_transformer.decoding import BeamSearch, RowOptions

ROWS = 100
OTHER_IDS = Ids(pad=5, start=4, end=0)
ALPHAS = [0.6, -0.6, 0.0, 1.7, -2.3]


def toy(table, ids, kind="last token"):
    """A language of one row from {token: {next: probability}}."""
    size = 1 + max(max(row, *next_tokens) for row, next_tokens in table.items())
    probabilities = np.zeros((1, 1, size, size))
    for row, next_tokens in table.items():
        for token, probability in next_tokens.items():
            probabilities[0, 0, row, token] = probability
    # Contexts that never occur get their mass on PAD, so that each is a distribution.
    probabilities[..., ids.pad] += 1.0 - probabilities.sum(axis=-1)
    with np.errstate(divide="ignore"):
        return Language(kind, np.log(probabilities.clip(0.0)).astype("float32"), ids)


# Against all sequences


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("vocabulary_size", "max_length", "num_beams"),
    [(5, 4, 12), (6, 3, 18), (7, 2, 10), (7, 3, 40)],
)
def test_the_n_best_are_those_of_all_sequences(kind, vocabulary_size, max_length, num_beams):
    """Where the beam is wide enough to lose nothing: ranks, scores, flags, places left empty."""
    language = draw(kind, 40, vocabulary_size, seed=vocabulary_size)
    search = BeamSearch(num_beams, np.random.default_rng(num_beams).uniform(-2.0, 2.0))
    tasks = tasks_of(search, [max_length] * 40)
    result = run(search, language, [max_length] * 40)
    check(search, language, tasks, result)
    for row, found in enumerate(hypotheses(result)):
        assert patient_beam_search(language.row(row), num_beams, tasks[row])[1]
        assert_same(found, all_hypotheses(language.row(row), tasks[row])[:num_beams])


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("num_beams", [1, 2, 3, 4, 5, 6, 9])
def test_it_finds_what_a_search_that_never_stops_early_finds(num_beams, alpha):
    """Limits of 1 to 9, K above V too: stopping early and other rows' limits change nothing."""
    seed = num_beams + ALPHAS.index(alpha)
    kind = KINDS[seed % 3]
    ids = OTHER_IDS if seed % 2 else Ids()
    language = draw(kind, ROWS, 6 + seed % 2, seed, ids)
    limits = np.random.default_rng(seed).integers(1, 10, size=ROWS).tolist()
    search = BeamSearch(num_beams, alpha, start_id=ids.start, end_id=ids.end, pad_id=ids.pad)
    result = run(search, language, limits)
    tasks = tasks_of(search, limits)
    check(search, language, tasks, result)
    for row, found in enumerate(hypotheses(result)):
        assert_same(found, patient_beam_search(language.row(row), num_beams, tasks[row])[0])


# In the graph, and row by row


@pytest.mark.parametrize("kind", ["position", "history"])
def test_the_graph_equals_eager_execution(kind):
    language = draw(kind, ROWS, 6, seed=1)
    search = BeamSearch(4)

    graph = in_graph(search, language)
    for longest in (1, 3, 9):
        limits = [1 + row % longest for row in range(ROWS)]
        expected = run(search, language, limits)
        found = graph(language.logits, limits)
        np.testing.assert_array_equal(found.token_ids, expected.token_ids)
        for one, other in zip(found[:6], expected[:6], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5)
    empty = graph(language.logits[:0], [])
    assert [tuple(part.shape) for part in empty[:6]] == [(0, 4, 0), *[(0, 4)] * 4, (0, 4, 0)]


@pytest.mark.parametrize("num_beams", [1, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_a_row_is_as_if_it_were_alone(kind, num_beams):
    """Bit-equal ids of 32 whatever the neighbours, their order and their limits."""
    language = draw(kind, 32, 6, seed=2)
    limits = np.random.default_rng(3).integers(1, 8, size=32)
    search = in_graph(BeamSearch(num_beams), language)
    together = search(language.logits, limits)
    order = np.random.default_rng(4).permutation(32)
    shuffled = search(language.logits[order], limits[order])
    longer = search(language.logits, [*limits[:-1], 40])
    for row in range(31):
        length = limits[row]
        mine = together.token_ids[row, :, :length].numpy()
        alone = search(language.logits[row : row + 1], [length])
        place = int(np.flatnonzero(order == row)[0])
        np.testing.assert_array_equal(alone.token_ids[0], mine)
        np.testing.assert_array_equal(shuffled.token_ids[place, :, :length], mine)
        np.testing.assert_array_equal(longer.token_ids[row, :, :length], mine)
        assert not longer.token_ids[row, :, length:].numpy().any()
        for scores in (alone.scores[0], shuffled.scores[place], longer.scores[row]):
            np.testing.assert_allclose(scores, together.scores[row], rtol=1e-6)


def test_no_rows_give_no_rows():
    result = run(BeamSearch(3), draw("history", 0, 6, seed=0), np.zeros(0, int))
    assert [tuple(part.shape) for part in result[:6]] == [(0, 3, 0), *[(0, 3)] * 4, (0, 3, 0)]


# Ties, dead ends, the last position


def test_of_equal_hypotheses_the_lower_id_comes_first():
    """Probabilities of 1/4 and 1/2 are exact in float32: the ties are real ones."""
    ids = Ids()
    first = {1: 0.25, 4: 0.25, 5: 0.25, 6: 0.25}
    language = toy({2: first, 1: {3: 1.0}, 4: {3: 1.0}, 5: {3: 1.0}, 6: {3: 1.0}}, ids)
    for num_beams in (1, 2, 3, 4):
        (found,) = hypotheses(run(BeamSearch(num_beams), language, [5]))
        assert [one.tokens for one in found] == [(1, 3), (4, 3), (5, 3), (6, 3)][:num_beams]
    # The parent that came first wins over a lower id of its twin.
    both = {2: {4: 0.5, 5: 0.5}, 4: {7: 1.0}, 5: {6: 1.0}}
    (found,) = hypotheses(run(BeamSearch(2), toy(both, ids), [2]))
    assert [one.tokens for one in found] == [(4, 7), (5, 6)]


@pytest.mark.parametrize("num_beams", [1, 2, 4])
def test_a_dead_end_is_no_hypothesis(num_beams):
    """All of the probability on PAD: there is nothing to go on with."""
    for table in ({2: {0: 1.0}}, {2: {4: 1.0}, 4: {0: 1.0}}, {2: {4: 1.0}, 4: {2: 1.0}}):
        language = toy({**table, 5: {3: 1.0}}, Ids())
        search = BeamSearch(num_beams)
        result = run(search, language, [6])
        check(search, language, tasks_of(search, [6]), result)
        assert (result.scores.numpy() == -math.inf).all()


def test_what_is_still_open_at_the_limit_comes_last_normalised_alike():
    table = {2: {4: 0.9, 3: 0.1}, 4: {4: 1.0}}
    search = BeamSearch(2, alpha=1.0)
    (found,) = hypotheses(run(search, toy(table, Ids()), [3]))
    assert [(one.tokens, one.finished) for one in found] == [((3,), True), ((4, 4, 4), False)]
    assert found[0].score == pytest.approx(math.log(0.1))
    assert found[1].score == pytest.approx(math.log(0.9) / (8 / 6))


def test_more_beams_than_there_are_hypotheses_leave_places_empty():
    language = toy({2: {3: 0.5, 4: 0.5}, 4: {3: 1.0}}, Ids())
    result = run(BeamSearch(6, alpha=0.0), language, [4])
    np.testing.assert_allclose(result.scores[0, :2], [math.log(0.5)] * 2, rtol=1e-6)
    assert result.token_ids[0, :3].numpy().tolist() == [[3, 0, 0, 0], [4, 3, 0, 0], [0] * 4]
    assert result.finished[0].numpy().tolist() == [True, True] + [False] * 4
    assert result.lengths[0].numpy().tolist() == [1, 2, 0, 0, 0, 0]
    assert (result.scores[0, 2:].numpy() == -math.inf).all()


# How many steps it takes


@pytest.mark.parametrize(
    ("alpha", "steps"),
    # After two steps both places are taken, the worse by -3.101 / lp(2); open is log(.05)^2 =
    # -5.991. Without or with a negative penalty nothing can come closer. With alpha 1 it could
    # at length 100, -5.991 / 17.5 = -.342 > -2.658, until log P is 17.5 times as low:
    # n log(20) >= 46.5 at n = 16.
    [(0.0, 2), (-0.6, 2), (1.0, 16)],
)
def test_it_stops_when_nothing_open_can_win(alpha, steps):
    after = {3: 0.9, 4: 0.05, 5: 0.05}
    calls: list[int] = []
    run(BeamSearch(2, alpha), toy({2: after, 4: after, 5: after}, Ids()), [100], calls)
    assert calls == list(range(steps))


def test_fewer_beams_take_no_more_steps():
    """Of the pool's K places the last that the row has decides, not one that stays empty."""
    after = {3: 0.9, 4: 0.05, 5: 0.05}
    language, alpha = toy({2: after, 4: after, 5: after}, Ids()), 1.0
    built: list[int] = []
    asked: list[int] = []
    run(BeamSearch(2, alpha), language, [100], built)
    run(BeamSearch(5, alpha), language, [100], asked, rows=RowOptions(num_beams=tf.constant([2])))
    assert built == asked == list(range(16))


def test_one_row_that_goes_on_keeps_the_loop_going_and_no_longer():
    ends, goes_on = {2: {3: 1.0}, 5: {3: 1.0}}, {2: {4: 1.0}, 4: {5: 1.0}, 5: {3: 1.0}}
    both = np.concatenate([toy({**table}, Ids()).logits for table in (ends, goes_on)])
    calls: list[int] = []
    result = run(BeamSearch(3), Language("last token", both, Ids()), [50, 50], calls)
    assert calls == [0, 1, 2]
    assert result.token_ids[:, 0, :4].numpy().tolist() == [[3, 0, 0, 0], [4, 5, 3, 0]]


# Cases, with their literal values; ids 0 PAD, 1 START, 2 END

CASE_IDS = Ids(pad=0, start=1, end=2)


def search_case(table, num_beams, alpha, limit):
    """The filled places of the case's one row."""
    search = BeamSearch(num_beams, alpha, start_id=1, end_id=2)
    language = toy(table, CASE_IDS)
    result = run(search, language, [limit])
    check(search, language, tasks_of(search, [limit]), result)
    return hypotheses(result)[0]


@pytest.mark.case("43")
@pytest.mark.parametrize("num_beams", [2, 4])
@pytest.mark.parametrize(
    ("alpha", "short_score", "long_score"),
    [(0.0, -1.629641, -1.843875), (0.6, -1.371288, -1.357133), (1.0, -1.222230, -1.106325)],
)
def test_the_length_penalty_divides_by_each_length(num_beams, alpha, short_score, long_score):
    table = {
        1: {3: 0.40, 5: 0.50, 9: 0.10},
        3: {4: 0.70, 9: 0.30},
        4: {2: 0.70, 9: 0.30},
        5: {6: 0.75, 9: 0.25},
        6: {7: 0.75, 9: 0.25},
        7: {8: 0.75, 9: 0.25},
        8: {2: 0.75, 9: 0.25},
        9: {9: 0.95, 2: 0.05},
    }
    found = search_case(table, num_beams, alpha, limit=8)
    expected = [((3, 4, 2), short_score), ((5, 6, 7, 8, 2), long_score)]
    for one, (tokens, score) in zip(
        found, sorted(expected, key=lambda pair: -pair[1]), strict=False
    ):
        assert one.tokens == tokens and one.finished
        assert one.score == pytest.approx(score, abs=2e-6)


@pytest.mark.case("45")
def test_two_beams_are_better_than_one():
    table = {1: {3: 0.6, 4: 0.4}, 3: {2: 0.4, 5: 0.3, 6: 0.3}}
    table |= {token: {2: 1.0} for token in (4, 5, 6)}
    (greedy,) = search_case(table, 1, 0.6, limit=6)
    assert greedy.tokens == (3, 2)
    assert (greedy.log_prob, greedy.score) == pytest.approx((-1.427116, -1.301042), abs=2e-6)
    for num_beams, third in ((2, []), (4, [((3, 5, 2), -1.442945), ((3, 6, 2), -1.442945)])):
        found = search_case(table, num_beams, 0.6, limit=6)
        expected = [((4, 2), -0.835344), ((3, 2), -1.301042), *third]
        assert [one.tokens for one in found] == [tokens for tokens, _ in expected]
        scores = [one.score for one in found]
        assert scores == pytest.approx([score for _, score in expected], abs=2e-5)
        assert found[0].log_prob == pytest.approx(-0.916291, abs=2e-6)


@pytest.mark.case("49")
@pytest.mark.parametrize("alpha", [0.0, 0.6, -0.6])
def test_nothing_goes_on_after_end(alpha):
    """The step function answers after END, too: nobody may listen."""
    table = {1: {2: 0.6, 3: 0.4}, 2: {3: 0.9, 2: 0.1}, 3: {2: 1.0}}
    found = search_case(table, 2, alpha, limit=6)
    assert [one.tokens for one in found] == [(2,), (3, 2)]
    assert [one.log_prob for one in found] == pytest.approx([-0.510826, -0.916291], abs=2e-6)
    if not alpha:
        assert [one.score for one in found] == pytest.approx([-0.510826, -0.916291], abs=2e-6)
    calls: list[int] = []
    search = BeamSearch(2, alpha, start_id=1, end_id=2)
    run(search, toy(table, CASE_IDS), [1000], calls)
    assert calls == [0, 1]


# What the constructor refuses


@pytest.mark.parametrize("num_beams", [0, -1, True, 2.5, "4"])
def test_a_number_of_beams_that_is_none_is_refused(num_beams):
    with pytest.raises(ValueError, match=rf"num_beams.*{num_beams}"):
        BeamSearch(num_beams)


def test_every_word_sequence_is_enumerated_once():
    """The oracle itself: 2 words and length 3 give 1 + 2 + 4 finished, 8 open; P adds up to 1."""
    language = draw("position", 1, 5, seed=0)
    logits = np.where(np.isin(np.arange(5), [0, 2]), -np.inf, 0.0) + np.zeros((1, 12, 5, 5))
    every = all_hypotheses(language._replace(logits=logits.astype("float32")), Task(3))
    assert [one.finished for one in every].count(True) == 1 + 2 + 4
    words = [one.tokens for one in every if not one.finished]
    assert sorted(words) == sorted(itertools.product([1, 4], repeat=3))
    assert math.fsum(math.exp(one.log_prob) for one in every) == pytest.approx(1.0)

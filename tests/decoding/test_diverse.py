"""Diverse search against Algorithm 1 of arXiv 1610.02424, written in plain Python."""

import math

import numpy as np
import pytest

from tests.decoding.brute_force import KINDS, draw
from tests.decoding.steps import check, hypotheses, run, tasks_of
from tests.decoding.test_rules import no_repeat
from tf_transformer.decoding import DiverseSearch, GreedySearch, NoRepeatNgram

ROWS, BEAMS = 200, 4
LIMITS = [1 + row % 7 for row in range(ROWS)]


def algorithm(language, task, beams, diversity):
    """The outputs in the order of the beams; None for one that came to a dead end."""
    allowed = sorted([*language.words(), language.ids.end])
    paths, over = [() for _ in range(beams)], [False] * beams
    for _ in range(task.max_length):
        chosen = []
        for beam in range(beams):
            if over[beam]:
                continue
            history = np.array([[language.ids.start, *paths[beam]]])
            weights = task.weigh(language.log_probs(history)[0, 0], paths[beam])
            value, token = max(
                (weights[token] - diversity * chosen.count(token), -token) for token in allowed
            )
            if value == -math.inf:
                paths[beam], over[beam] = None, True
            else:
                chosen.append(-token)
                paths[beam] += (-token,)
                over[beam] = -token == language.ids.end
    return paths


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("diversity", [0.0, 0.3, 50.0])
def test_it_is_the_algorithm(kind, diversity):
    language = draw(kind, ROWS, 6, seed=61)
    search = DiverseSearch(BEAMS, diversity=diversity)
    tasks = [task._replace(rules=(no_repeat(2),)) for task in tasks_of(search, LIMITS)]
    result = run(search, language, LIMITS, rules=[NoRepeatNgram(2)])
    check(search, language, tasks, result)
    several = 0
    for row, found in enumerate(hypotheses(result)):
        paths = algorithm(language.row(row), tasks[row], BEAMS, diversity)
        assert {one.tokens for one in found} == set(paths) - {None}
        several += len(found) > 1
    assert several == 0 if diversity == 0 else several > ROWS / 2


def test_its_best_is_at_least_as_good_as_greedy_search():
    language = draw("history", ROWS, 6, seed=62)
    diverse = run(DiverseSearch(BEAMS), language, LIMITS)
    greedy = run(GreedySearch(), language, LIMITS)
    same_kind = diverse.finished[:, 0] == greedy.finished[:, 0]
    better = diverse.scores.numpy()[:, 0] >= greedy.scores.numpy()[:, 0] - 1e-5
    assert better[same_kind].all() and (same_kind | diverse.finished[:, 0]).numpy().all()
    found = [{one.tokens for one in row} for row in hypotheses(diverse)]
    assert all(
        {one.tokens for one in row} <= found[place] for place, row in enumerate(hypotheses(greedy))
    )


@pytest.mark.parametrize("name, value", [("num_beams", 0), ("diversity", -1), ("diversity", "1")])
def test_a_parameter_that_makes_no_sense_is_refused(name, value):
    with pytest.raises(ValueError, match=rf"`{name}`.*Received"):
        DiverseSearch(**{name: value})

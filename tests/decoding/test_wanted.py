"""Who reads only the best hypotheses gets the same ones, sooner."""

import numpy as np
import pytest
import tensorflow as tf

from tests.decoding.brute_force import KINDS, draw, patient_beam_search
from tests.decoding.steps import assert_same, hypotheses, in_graph, run, tasks_of
from tf_transformer.decoding import BeamSearch, RowOptions

ROWS = 60


def first_places(result, count):
    """Every part of a result, of its first places."""
    return [np.asarray(part)[:, :count] for part in result[:6]]


@pytest.mark.parametrize("alpha", [0.6, -0.6, 0.0, 1.7])
@pytest.mark.parametrize("wanted", [1, 2])
def test_the_wanted_places_are_those_of_a_search_that_never_stops(wanted, alpha):
    """Against NumPy; and bit for bit those of the search for all K."""
    kind = KINDS[wanted % 3]
    language = draw(kind, ROWS, 7, seed=wanted)
    limits = np.random.default_rng(wanted).integers(1, 12, size=ROWS).tolist()
    search = BeamSearch(4, alpha)
    few = run(search, language, limits, wanted=wanted)
    everything = run(search, language, limits)
    for mine, expected in zip(
        first_places(few, wanted), first_places(everything, wanted), strict=True
    ):
        np.testing.assert_array_equal(mine, expected)
    tasks = tasks_of(search, limits)
    for row, found in enumerate(hypotheses(few)):
        expected = patient_beam_search(language.row(row), 4, tasks[row])[0]
        assert_same(found[:wanted], expected[:wanted])


def test_it_stops_sooner():
    """END has half of the probability at every step: after one step nothing can beat it."""
    language = draw("last token", 1, 8, seed=0)
    share = np.full(8, 0.5 / 5)
    share[[language.ids.pad, language.ids.start]], share[language.ids.end] = 1e-9, 0.5
    language = language._replace(logits=np.tile(np.log(share), (1, 1, 8, 1)).astype("float32"))
    steps = {}
    for wanted in (1, 2, 4, None):
        calls: list[int] = []
        run(BeamSearch(4, 0.0), language, [50], calls, wanted=wanted)
        steps[wanted] = len(calls)
    # The second best, of two tokens, has 1/10 * 1/2; what is open after two steps 1/10 * 1/10.
    assert steps == {1: 1, 2: 2, 4: 2, None: 2}


def test_one_graph_serves_any_number_and_rows_with_fewer_beams():
    language = draw("history", ROWS, 6, seed=5)
    limits = np.random.default_rng(5).integers(1, 9, size=ROWS).tolist()
    search = BeamSearch(4)
    beams = tf.constant([1 + row % 4 for row in range(ROWS)])
    for wishes in ({}, {"rows": RowOptions(num_beams=beams)}):
        everything = run(search, language, limits, **wishes)
        graph = in_graph(search, language)
        for wanted in (1, 3, 4):
            few = graph(language.logits, limits, wanted=tf.constant(wanted), **wishes)
            for mine, expected in zip(
                first_places(few, wanted), first_places(everything, wanted), strict=True
            ):
                np.testing.assert_allclose(mine, expected, rtol=1e-5)

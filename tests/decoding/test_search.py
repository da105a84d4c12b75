"""What all searches stand on: the penalty, the buffers, the loop's shapes, the ids never chosen."""

import math
import re

import numpy as np
import pytest
import tensorflow as tf

from tests.decoding.brute_force import KINDS, draw
from tests.decoding.steps import check, make_step, run, say, silence, start, tasks_of
from tf_transformer.decoding import (
    SEARCHES,
    EndAtLimit,
    ForcedPrefix,
    GreedySearch,
    MinimumLength,
    NoRepeatNgram,
    RepetitionPenalty,
    RowOptions,
    SuppressedTokens,
    length_penalty,
)
from tf_transformer.decoding.buffers import shape_invariants, write


@pytest.mark.parametrize(
    ("length", "alpha", "expected"),
    # ((5 + n) / 6)^alpha: at n = 1 always 1, at n = 7 it is 2^alpha, at n = 19 4^alpha.
    [(1, 0.6, 1.0), (1, -3.0, 1.0), (7, 1.0, 2.0), (7, 0.6, 2**0.6), (19, -0.5, 0.5), (50, 0, 1)],
)
def test_the_penalty_is_the_formula(length, alpha, expected):
    penalty = length_penalty(tf.constant([length]), alpha)
    assert penalty.dtype == tf.float32
    assert penalty.numpy()[0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("alpha", [math.nan, math.inf, -math.inf, 11, "0.6", None, True])
def test_an_alpha_that_is_no_sane_number_is_refused(name, alpha):
    with pytest.raises(ValueError, match=rf"`alpha`.*{alpha}"):
        SEARCHES[name](alpha=alpha)


@pytest.mark.parametrize("alpha", [10, -10])
def test_the_largest_alphas_stay_within_float32(alpha):
    penalty = length_penalty(tf.constant([1, 600, 5_000]), alpha).numpy()
    assert np.isfinite(penalty).all() and (penalty > 0).all()


def test_write_sets_one_column_of_any_rank():
    ids = tf.zeros([2, 3, 4], tf.int32)
    column = tf.constant([[1, 2, 3], [4, 5, 6]])
    expected = np.zeros((2, 3, 4), int)
    expected[:, :, 2] = [[1, 2, 3], [4, 5, 6]]
    np.testing.assert_array_equal(write(ids, tf.constant(2), column), expected)
    expected = np.array([[0, 7, 0], [0, 8, 0]])
    np.testing.assert_array_equal(
        write(tf.zeros([2, 3], tf.int32), tf.constant(1), tf.constant([7, 8])), expected
    )


def test_the_batch_and_what_starts_at_zero_may_change_in_the_loop():
    variables = (tf.constant(0), {"cache": tf.zeros([6, 2, 0, 4])}, [tf.zeros([6, 3])])
    index, state, (scores,) = shape_invariants(variables)
    assert index.as_list() == []
    assert state["cache"].as_list() == [None, 2, None, 4]
    assert scores.as_list() == [None, 3]


def test_only_pad_and_start_are_never_chosen():
    never = GreedySearch(start_id=4, pad_id=1).suppressed(tf.constant(6)).numpy()
    assert never.dtype == np.float32
    assert never.tolist() == [0.0, -math.inf, 0.0, 0.0, -math.inf, 0.0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SEARCHES)
def test_what_a_step_says_stays_with_its_token(name, kind):
    """Reordered like the hypotheses: each entry is of the step that gave this token, else 0."""
    language, search = draw(kind, 40, 6, seed=3), SEARCHES[name]()
    limits, beams = [1 + row % 7 for row in range(40)], search.num_beams
    step = say(make_step(language, beams))
    state, extras = start(language, 40, beams), silence(40 * beams)
    result = search(step, state, tf.constant(limits), extras=extras)
    check(search, language, tasks_of(search, limits), result)
    for one, other in zip(result[:6], run(search, language, limits)[:6], strict=True):
        np.testing.assert_array_equal(one, other)
    ids, lengths = result.token_ids.numpy(), result.lengths.numpy()
    asked, both = (result.extras[name].numpy() for name in ("asked", "both"))
    assert asked.shape == ids.shape and both.shape == (*ids.shape, 2)
    for place in np.ndindex(*lengths.shape):
        n = lengths[place]
        expected = [language.ids.start, *ids[place][: n - 1]][:n]
        assert asked[place].tolist() == [*expected, *[0] * (7 - n)]
        assert both[place][:n].tolist() == [list(pair) for pair in enumerate(expected)]
        assert not both[place][n:].any()


def test_a_step_that_says_something_else_is_refused():
    language = draw("position", 2, 6, seed=3)
    with pytest.raises(ValueError, match=r"third.*Received: \[\], expected \['asked', 'both'\]"):
        run(GreedySearch(), language, [3, 3], extras=silence(2))


def every_rule(rows):
    return [
        RepetitionPenalty(tf.fill([rows], 1.2)),
        NoRepeatNgram(2),
        SuppressedTokens([1]),
        MinimumLength(tf.fill([rows], 2)),
        EndAtLimit(),
        ForcedPrefix(tf.fill([rows, 2], 4)),
    ]


@pytest.mark.parametrize("name", SEARCHES)
def test_the_graph_is_made_of_operations_that_run_anywhere(name):
    """LiteRT and servers: no lists of tensors, no Python, no tables, no ragged tensors."""
    language, search = draw("history", 2, 6, seed=3), SEARCHES[name]()
    beams = search.num_beams

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)], autograph=False)
    def searching(limits):
        rows = tf.shape(limits)[0]
        return search(
            say(make_step(language, beams)),
            start(language, rows, beams),
            limits,
            extras=silence(rows * beams),
            rows=RowOptions(tf.fill([rows], 0.6), tf.fill([rows], 3), limits),
            rules=every_rule(rows),
        )

    graph = searching.get_concrete_function().graph.as_graph_def()
    nodes = [*graph.node, *(node for f in graph.library.function for node in f.node_def)]
    used = {node.op for node in nodes}
    assert {"TopKV2", "ArgMax"} & used and used & {"While", "StatelessWhile"}
    odd = {
        op for op in used if re.search("TensorList|TensorArray|Py|Ragged|Hash|Lookup|Random", op)
    }
    assert not odd

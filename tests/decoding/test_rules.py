"""Each rule against its statement in plain Python, and in every search against enumeration."""

import math

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.decoding.brute_force import (
    KINDS,
    Task,
    all_hypotheses,
    draw,
    patient_beam_search,
)
from tests.decoding.steps import assert_near, assert_same, check, hypotheses, run, tasks_of
from tf_transformer.decoding import (
    RULES,
    BeamSearch,
    EndAtLimit,
    ForcedPrefix,
    GreedySearch,
    MinimumLength,
    NoRepeatNgram,
    RepetitionPenalty,
    SamplingSearch,
    SoFar,
    SuppressedTokens,
)

ROWS, V, END = 120, 6, 3
WORDS = (1, 4, 5)
RANDOM = np.random.default_rng(0)
LIMITS = RANDOM.integers(1, 5, size=ROWS)
LEAST = RANDOM.integers(0, 6, size=ROWS)
FACTORS = RANDOM.choice([0.5, 1.0, 1.3, 4.0], size=ROWS).astype("float32")
PREFIXES = [tuple(RANDOM.choice(WORDS, size=n).tolist()) for n in RANDOM.integers(0, 4, size=ROWS)]


def only(log_probs, allowed):
    """log P of what is in `allowed`, else minus infinity."""
    return np.where(np.isin(np.arange(len(log_probs)), list(allowed)), log_probs, -np.inf)


# What each rule says: (weights so far, tokens so far, the model's log P, limit) -> weights.


def repetition(factor):
    def rule(weights, tokens, model, limit):
        return np.array([w * factor if v in tokens else w for v, w in enumerate(weights)])

    return rule


def no_repeat(size):
    def rule(weights, tokens, model, limit):
        def repeats(token):
            longer = (*tokens, token)
            grams = [longer[i : i + size] for i in range(len(longer) - size + 1)]
            return bool(grams) and grams[-1] in grams[:-1]

        return np.array([-np.inf if repeats(v) else w for v, w in enumerate(weights)])

    return rule


def suppressed(token_ids):
    def rule(weights, tokens, model, limit):
        return only(weights, set(range(len(weights))) - set(token_ids))

    return rule


def at_least(length):
    def rule(weights, tokens, model, limit):
        too_early = len(tokens) + 1 < length
        return only(weights, {*WORDS, 0, 2} if too_early else range(len(weights)))

    return rule


def end_at_limit(weights, tokens, model, limit):
    return only(model, {END}) if len(tokens) + 1 == limit else weights


def begins_with(prefix):
    def rule(weights, tokens, model, limit):
        return only(model, {prefix[len(tokens)]}) if len(tokens) < len(prefix) else weights

    return rule


def dense(prefixes):
    width = max([0, *map(len, prefixes)])
    return tf.constant([[*prefix, *[0] * (width - len(prefix))] for prefix in prefixes], tf.int32)


CASES = {
    "repetition_penalty": ([RepetitionPenalty(1.7)], lambda row: [repetition(1.7)]),
    "repetition_penalty by row": (
        [RepetitionPenalty(tf.constant(FACTORS))],
        lambda row: [repetition(FACTORS[row])],
    ),
    "no_repeat_ngram_size 1": ([NoRepeatNgram(1)], lambda row: [no_repeat(1)]),
    "no_repeat_ngram_size 2": ([NoRepeatNgram(2)], lambda row: [no_repeat(2)]),
    "suppressed_ids": ([SuppressedTokens([1, 5])], lambda row: [suppressed([1, 5])]),
    "min_length": ([MinimumLength(3)], lambda row: [at_least(3)]),
    "min_length by row": (
        [MinimumLength(tf.constant(LEAST, tf.int32))],
        lambda row: [at_least(LEAST[row])],
    ),
    "end_at_limit": ([EndAtLimit()], lambda row: [end_at_limit]),
    "prefix": ([ForcedPrefix(dense(PREFIXES))], lambda row: [begins_with(PREFIXES[row])]),
    "all of them": (
        [
            RepetitionPenalty(1.2),
            NoRepeatNgram(2),
            SuppressedTokens([1]),
            MinimumLength(tf.constant(LEAST, tf.int32)),
            EndAtLimit(),
            ForcedPrefix(dense(PREFIXES)),
        ],
        lambda row: [
            repetition(1.2),
            no_repeat(2),
            suppressed([1]),
            at_least(LEAST[row]),
            end_at_limit,
            begins_with(PREFIXES[row]),
        ],
    ),
}


def test_every_rule_has_a_case():
    assert {name.split()[0] for name in CASES} - {"all"} == set(RULES)


def ruled(search, name, kind):
    """The result and tasks of one case, checked: scores after the rules, log P before."""
    rules, statements = CASES[name]
    language = draw(kind, ROWS, V, seed=31)
    tasks = [
        task._replace(rules=tuple(statements(row)))
        for row, task in enumerate(tasks_of(search, LIMITS))
    ]
    result = run(search, language, LIMITS, rules=rules)
    check(search, language, tasks, result)
    return language, tasks, result


@pytest.mark.parametrize("num_beams", [1, 3, 14])
@pytest.mark.parametrize("name", CASES)
def test_beam_search_obeys(name, num_beams):
    """1 and 3 beams: what a beam search without tricks finds; 14: the best of all there are."""
    alpha = 0.8 - 0.5 * num_beams % 3
    kind = KINDS[(len(name) + num_beams) % 3]
    language, tasks, result = ruled(BeamSearch(num_beams, alpha), name, kind)
    counted = 0
    for row, found in enumerate(hypotheses(result)):
        expected, all_seen = patient_beam_search(language.row(row), num_beams, tasks[row])
        assert_same(found, expected)
        if all_seen:
            assert_same(found, all_hypotheses(language.row(row), tasks[row])[:num_beams])
            counted += 1
    assert num_beams < 14 or counted > 0.6 * ROWS


@pytest.mark.parametrize("name", CASES)
def test_greedy_search_obeys(name):
    language, tasks, result = ruled(GreedySearch(), name, "history")
    for row, found in enumerate(hypotheses(result)):
        assert_same(found, patient_beam_search(language.row(row), 1, tasks[row])[0])


@pytest.mark.parametrize("name", CASES)
def test_sampling_obeys(name):
    """`check` weighs each draw by the rules' statement: what is forbidden would be infinite."""
    _, tasks, result = ruled(SamplingSearch(4, seed=5), name, "last token")
    assert np.isfinite(result.scores.numpy()).mean() > 0.5


def test_the_prefix_is_begun_with_whatever_follows_it():
    """Ragged rows; PAD, START and END cut a prefix; what is not in the vocabulary has no way on."""
    wanted = tf.constant([[4, 5, 1], [4, 0, 1], [0, 0, 0], [3, 4, 4], [5, 2, 5], [99, 4, 4]])
    language = draw("position", 6, V, seed=2)
    language.logits[:] = np.random.default_rng(1).normal(size=language.logits.shape)
    for search in (GreedySearch(), BeamSearch(3), SamplingSearch(2)):
        result = run(search, language, [9] * 6, rules=[ForcedPrefix(wanted)])
        for row, prefix in enumerate([[4, 5, 1], [4], [], [], [5], None]):
            for one in hypotheses(result)[row]:
                assert list(one.tokens[: len(prefix)]) == prefix
            assert bool(hypotheses(result)[row]) == (prefix is not None)
    no_width = run(BeamSearch(3), language, [9] * 6, rules=[ForcedPrefix(wanted[:, :0])])
    free = run(BeamSearch(3), language, [9] * 6)
    np.testing.assert_array_equal(no_width.token_ids, free.token_ids)


def test_a_prefix_that_fills_the_limit():
    """Cut there, unfinished; with END forced afterwards it ends there instead."""
    language = draw("position", 1, V, seed=2)
    language.logits[:] = 0.0
    prefix = ForcedPrefix(tf.constant([[4, 5, 4]]))
    for rules, expected in (
        ([prefix], (4, 5)),
        ([EndAtLimit(), prefix], (4, 5)),
        ([prefix, EndAtLimit()], (4, END)),
    ):
        for search in (GreedySearch(), BeamSearch(2)):
            found = hypotheses(run(search, language, [2], rules=rules))[0]
            assert [one.tokens for one in found] == [expected]
            assert found[0].finished == (expected[-1] == END)
            assert found[0].log_prob == pytest.approx(2 * math.log(1 / V), abs=1e-6)


@pytest.mark.parametrize("search", [GreedySearch(), BeamSearch(3), SamplingSearch(2)])
def test_where_nothing_is_allowed_there_is_no_hypothesis(search):
    """And its neighbour has one all the same; no NaN anywhere."""
    language = draw("position", 2, V, seed=4)
    language.logits[:] = 0.0
    forbid = [SuppressedTokens(WORDS), MinimumLength(tf.constant([2, 1]))]
    result = run(search, language, [5, 5], rules=forbid)
    tasks = [Task(5, 0.6, rules=(suppressed(WORDS), at_least(n))) for n in (2, 1)]
    check(search, language, tasks, result)
    assert hypotheses(result)[0] == []
    assert [one.tokens for one in hypotheses(result)[1]][:1] == [(END,)]


def test_rules_that_change_nothing_find_what_no_rules_find():
    """To the last token, and to float32 in the scores: the exports have them in the graph."""
    language = draw("history", ROWS, V, seed=9)
    idle = [
        RepetitionPenalty(tf.ones([ROWS])),
        NoRepeatNgram(20),
        SuppressedTokens([]),
        MinimumLength(tf.zeros([ROWS], tf.int32)),
        ForcedPrefix(tf.zeros([ROWS, 2], tf.int32)),
    ]
    for search in (GreedySearch(), BeamSearch(4), SamplingSearch(3)):
        free, bound = (run(search, language, LIMITS, rules=rules) for rules in ((), idle))
        np.testing.assert_array_equal(free.token_ids, bound.token_ids)
        np.testing.assert_array_equal(free.finished, bound.finished)
        np.testing.assert_allclose(free.scores, bound.scores, rtol=1e-6)
        np.testing.assert_allclose(free.log_probs, bound.log_probs, rtol=1e-6)


# By themselves, on any history


@st.composite
def situations(draw_):
    """K hypotheses of B rows that have come to some place, and weights of what may follow."""
    rows, beams, width = draw_(st.tuples(*[st.integers(1, 3)] * 2, st.integers(1, 8)))
    index = draw_(st.integers(0, width - 1))
    random = np.random.default_rng(draw_(st.integers(0, 2**32 - 1)))
    ids = random.choice(WORDS, size=(rows * beams, width))
    ids[:, index:] = 0
    log_probs = -random.exponential(3.0, size=(rows * beams, V)).astype("float32")
    log_probs[random.random(log_probs.shape) < 0.1] = -np.inf
    limits = random.integers(index + 1, width + 1, size=rows)
    return SoFar(
        tf.constant(ids, tf.int32),
        tf.constant(index),
        tf.constant(np.repeat(limits, beams), tf.int32),
        tf.constant(log_probs),
        beams,
        END,
    )


@st.composite
def rules_and_statements(draw_):
    """A rule with any parameters, and what it says."""
    size = draw_(st.integers(1, 5))
    factor = draw_(st.floats(0.25, 4.0, width=32))
    ids = draw_(st.lists(st.integers(0, V + 3), max_size=4))
    prefix = draw_(st.lists(st.sampled_from(WORDS), max_size=5))
    return draw_(
        st.sampled_from(
            [
                (RepetitionPenalty(factor), repetition(factor)),
                (NoRepeatNgram(size), no_repeat(size)),
                (SuppressedTokens(ids), suppressed(ids)),
                (MinimumLength(size), at_least(size)),
                (EndAtLimit(), end_at_limit),
                (prefix, begins_with(tuple(prefix))),
            ]
        )
    )


@settings(max_examples=120, deadline=None, derandomize=True)
@given(situations(), st.lists(rules_and_statements(), min_size=1, max_size=3))
def test_any_rules_do_what_they_say(so_far, pairs):
    """One after the other, as stated; nothing rises above 0, nothing is NaN, twice is once."""
    rows, beams = so_far.token_ids.shape[0] // so_far.num_hypotheses, so_far.num_hypotheses
    weights = so_far.log_probs
    expected = so_far.log_probs.numpy().astype("float64")
    tokens = [tuple(row[: int(so_far.index)]) for row in so_far.token_ids.numpy().tolist()]
    for rule, statement in pairs:
        if isinstance(rule, list):
            rule = ForcedPrefix(tf.constant([rule] * rows, tf.int32, [rows, len(rule)]))
        weights = rule(weights, so_far)
        expected = np.array(
            [
                statement(*one)
                for one in zip(
                    expected,
                    tokens,
                    so_far.log_probs.numpy(),
                    so_far.max_lengths.numpy(),
                    strict=True,
                )
            ]
        )
        assert weights.shape == (rows * beams, V)
        assert_near(weights, expected)
        assert not (weights.numpy() > 0).any()
        if not isinstance(rule, RepetitionPenalty):
            np.testing.assert_array_equal(rule(weights, so_far), weights)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: RepetitionPenalty(0), "repetition_penalty"),
        (lambda: RepetitionPenalty(math.nan), "repetition_penalty"),
        (lambda: NoRepeatNgram(0), "no_repeat_ngram_size"),
        (lambda: NoRepeatNgram(2.0), "no_repeat_ngram_size"),
        (lambda: SuppressedTokens([-1]), "suppressed_ids"),
        (lambda: MinimumLength(-1), "min_length"),
        (lambda: MinimumLength(1.5), "min_length"),
        (lambda: SuppressedTokens([True]), "suppressed_ids"),
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused(make, name):
    with pytest.raises(ValueError, match=rf"`{name}`.*Received"):
        make()

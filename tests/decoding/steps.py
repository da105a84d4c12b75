"""A toy language as the step function that a search sees, and its result as plain hypotheses."""

import math
from typing import Any

import numpy as np
import tensorflow as tf

from tests.decoding.brute_force import CONTEXTS, Hypothesis, Language, Task, follow
from tf_transformer.decoding import SamplingSearch, Search, SearchResult


def start(language: Language, batch: Any, num_beams: int) -> Any:
    """The state before the first step; for kind "history" it has an axis that grows."""
    if language.kind != "history":
        return ()
    rows = batch * num_beams
    # Three ranks, nested: whatever is not gathered with the hypotheses gives a wrong context.
    return {
        "tokens": tf.zeros([rows, 2, 0], tf.int32),
        "more": [tf.zeros([rows], tf.int32), tf.zeros([rows, 1], tf.int32)],
    }


def make_step(
    language: Language, num_beams: int, calls: list[int] | None = None, logits: Any = None
) -> Any:
    """The step function of B languages for B * `num_beams` rows; notes each call in `calls`.

    With `logits` of other languages of the same kind in place of theirs.
    """
    logits = tf.constant(language.logits) if logits is None else logits

    def step(token_ids: tf.Tensor, state: Any, index: tf.Tensor) -> tuple[tf.Tensor, Any]:
        if calls is not None:
            calls.append(int(index))
        context = token_ids
        if language.kind == "history":
            context, state = _remember(token_ids, state, index)
        rows = tf.range(tf.shape(token_ids)[0]) // num_beams
        place = tf.fill(tf.shape(rows), index % language.logits.shape[1])
        return tf.gather_nd(logits, tf.stack([rows, place, context], axis=1)), state

    return step


def _remember(token_ids: tf.Tensor, state: Any, index: tf.Tensor) -> tuple[tf.Tensor, Any]:
    # The first half of the sum is in the recorded tokens, the second in the running one.
    both = tf.stack([token_ids, token_ids], axis=1)
    tokens = tf.concat([state["tokens"], tf.expand_dims(both, 2)], axis=2)
    weights = tf.range(1, tf.shape(tokens)[2] + 1)
    total, column = state["more"]
    total, column = total + token_ids * (index + 1), column + tf.expand_dims(token_ids, 1)
    recorded = tf.reduce_sum(tokens[:, 1] * weights, axis=1)
    same = tf.equal(recorded, total) & tf.equal(column[:, 0], tf.reduce_sum(tokens[:, 0], axis=1))
    # A state whose parts belong to different hypotheses leads astray.
    context = tf.where(same, recorded, recorded + 1) % CONTEXTS
    return context, {"tokens": tokens, "more": [total, column]}


def say(step: Any) -> Any:
    """The step function, saying too what it was asked: the token, and (index, token) again."""

    def saying(token_ids: tf.Tensor, state: Any, index: tf.Tensor) -> Any:
        logits, state = step(token_ids, state, index)
        both = tf.stack([tf.fill(tf.shape(token_ids), index), token_ids], axis=1)
        return logits, state, {"asked": token_ids, "both": tf.cast(both, tf.float32)}

    return saying


def silence(rows: Any) -> dict[str, tf.Tensor]:
    """The `extras` of `say` for R rows."""
    return {"asked": tf.zeros([rows], tf.int32), "both": tf.zeros([rows, 2])}


def run(
    search: Search, language: Language, limits: Any, calls: list[int] | None = None, **wishes: Any
) -> SearchResult:
    """Searches the B languages with their limits (B,)."""
    beams, limits = search.num_beams, tf.constant(limits, tf.int32)
    step, state = make_step(language, beams, calls), start(language, len(limits), beams)
    return search(step, state, limits, **wishes)


def in_graph(search: Search, language: Language) -> Any:
    """(logits of any languages of this kind, limits, **wishes) -> result, traced once."""
    beams = search.num_beams

    @tf.function(reduce_retracing=True, autograph=False)
    def searching(logits: tf.Tensor, limits: tf.Tensor, **wishes: Any) -> SearchResult:
        state = start(language, tf.shape(limits)[0], beams)
        return search(make_step(language, beams, logits=logits), state, limits, **wishes)

    shape = (None, *language.logits.shape[1:])
    specs = tf.TensorSpec(shape, tf.float32), tf.TensorSpec([None], tf.int32)
    traced: dict[Any, Any] = {}

    def call(logits: Any, limits: Any, **wishes: Any) -> SearchResult:
        names = tuple(sorted(wishes))
        if names not in traced:
            traced[names] = searching.get_concrete_function(*specs, **wishes)
        return searching(tf.constant(logits), tf.constant(limits, tf.int32), **wishes)

    return call


def hypotheses(result: SearchResult) -> list[list[Hypothesis]]:
    """Each row's filled places."""
    ids, lengths, scores, log_probs, finished = (np.asarray(part) for part in result[:5])
    return [
        [
            Hypothesis(
                tuple(ids[row, k, : lengths[row, k]].tolist()),
                float(log_probs[row, k]),
                float(scores[row, k]),
                bool(finished[row, k]),
            )
            for k in range(ids.shape[1])
            if scores[row, k] > -math.inf
        ]
        for row in range(ids.shape[0])
    ]


def tasks_of(search: Search, limits: Any, **changes: Any) -> list[Task]:
    """What `search` was built to do for rows of these limits."""
    return [Task(int(limit), search.alpha, search.length_penalty, **changes) for limit in limits]


def check(search: Search, language: Language, tasks: list[Task], result: SearchResult) -> None:
    """All that is true of any search's result, whatever it found."""
    ids, lengths, scores, log_probs, finished, of_tokens = map(np.asarray, result[:6])
    batch, beams = len(tasks), search.num_beams
    longest = max([0, *(task.max_length for task in tasks)])
    assert ids.shape == (batch, beams, longest) and ids.dtype == np.int32
    assert lengths.shape == scores.shape == log_probs.shape == finished.shape == (batch, beams)
    assert (lengths.dtype, finished.dtype) == (np.int32, bool)
    assert scores.dtype == log_probs.dtype == of_tokens.dtype == np.float32
    assert of_tokens.shape == ids.shape
    special = language.ids
    empty = scores == -np.inf
    assert not any(np.isnan(part).any() for part in (scores, log_probs, of_tokens))
    assert (log_probs[empty] == -np.inf).all() and not finished[empty].any()
    assert not lengths[empty].any() and (ids[empty] == special.pad).all()
    assert not of_tokens[empty].any()
    assert (np.diff(empty.astype(int), axis=1) >= 0).all(), "an empty place before a filled one"
    for row, found in enumerate(hypotheses(result)):
        task = tasks[row]
        same = len(found) - len({one.tokens for one in found})
        assert not same or isinstance(search, SamplingSearch), "the same hypothesis twice"
        for k, one in enumerate(found):
            assert 1 <= len(one.tokens) <= task.max_length
            assert not {special.pad, special.start} & set(one.tokens)
            assert one.finished == (one.tokens[-1] == special.end)
            assert special.end not in one.tokens[:-1]
            assert one.finished or len(one.tokens) == task.max_length
            assert (ids[row, k, len(one.tokens) :] == special.pad).all()
            own, weighed = follow(language.row(row), one.tokens, task)
            assert_near(of_tokens[row, k, : len(own)], own)
            assert not of_tokens[row, k, len(own) :].any()
            expected = sum(own), task.score(sum(weighed), one.tokens)
            assert_near([one.log_prob, one.score], expected)
        order = [(not one.finished, -one.score) for one in found]
        assert order == sorted(order), "not best first, finished before open"


def assert_near(found: Any, expected: Any) -> None:
    """Equal up to float32."""
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def assert_same(found: list[Hypothesis], expected: list[Hypothesis]) -> None:
    """Equal lists, up to ties.

    After `check` (each score is that of its tokens, no tokens twice) equal scores are enough.
    """
    assert [one.finished for one in found] == [one.finished for one in expected]
    assert_near([one.score for one in found], [one.score for one in expected])

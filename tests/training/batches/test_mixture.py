"""Corpora mixed by weight: how often an epoch sees a pair, and that it is always the same."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.training.batches.test_batching import Numbers, corpus_of, equal, numbers_of, taken
from tf_transformer.errors import InputError
from training.batches.batching import Batches
from training.batches.mixture import Mixture
from training.corpora.corpus import Corpus, mix


def mixture(sizes, weights, seed=1, strata=None):
    """Corpora of these sizes; the pairs of the second begin at 1000."""
    pairs = np.concatenate([np.arange(size) + 1000 * n for n, size in enumerate(sizes)])
    corpus = np.repeat(np.arange(len(sizes)), sizes)
    return Mixture(pairs, corpus, weights, corpus * 0 if strata is None else strata, seed)


@pytest.mark.parametrize(
    ("weight", "epochs", "times"), [(1, 1, 1), (2, 1, 2), (0.5, 2, 1), (2.5, 2, 5), (0.1, 10, 1)]
)
def test_a_weight_is_how_often_an_epoch_sees_a_pair(weight, epochs, times):
    drawn = mixture([20, 30], [1, weight])
    seen = Counter(int(pair) for epoch in range(epochs) for pair in drawn.epoch(epoch))
    assert seen == {n: epochs for n in range(20)} | {1000 + n: times for n in range(30)}
    assert {len(drawn.epoch(epoch)) for epoch in range(7)} == {20 + round(weight * 30)}


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 50), st.floats(0.05, 3, exclude_min=True), st.integers(1, 30))
def test_over_the_epochs_all_pairs_of_a_corpus_are_seen_as_often(size, weight, epochs):
    drawn = mixture([size], [weight])
    seen = Counter(int(pair) for epoch in range(epochs) for pair in drawn.epoch(epoch))
    counts = [seen[n] for n in range(size)]
    assert max(counts) - min(counts) <= 1


def test_parts_differ_between_epochs_and_seeds():
    parts = [frozenset(mixture([100], [0.3], seed).epoch(e)) for seed in (1, 2) for e in (0, 1, 2)]
    assert len(set(parts)) == 6 and not parts[0] & parts[1]
    assert parts[:3] == [frozenset(mixture([100], [0.3]).epoch(e)) for e in (0, 1, 2)]
    assert max(sorted(parts[0])) > 40  # not the first thirty


def test_each_stratum_has_as_many_in_every_epoch():
    strata = np.arange(60) % 3
    drawn = mixture([60], [0.55], strata=strata)
    for epoch in range(9):
        assert Counter(strata[drawn.epoch(epoch)]) == {0: 11, 1: 11, 2: 11}


def of_weights(*weights):
    """Corpora of forty pairs each, with ids that say which pair it is."""
    lengths = [(n % 11 + 1, n % 7 + 1) for n in range(40 * len(weights))]
    whole = corpus_of(lengths)
    parts = [
        Corpus(whole.source[first : first + 40], whole.target[first : first + 40], name=f"c{first}")
        for first in range(0, len(lengths), 40)
    ]
    return mix(list(zip(parts, weights, strict=True)))


@pytest.mark.parametrize("static", [False, True])
def test_batches_of_a_mixture(static):
    corpus = of_weights(1, 2, 0.5)
    options = {"batch_tokens": 60, "pad_to_multiple_of": 4, "static_shapes": static}
    batches = Batches(corpus, Numbers(), Numbers(), **options)
    pads = -1  # the number of a row of pads
    counts = []
    for epoch in range(4):
        seen = list(batches.epoch(epoch))
        assert len(seen) == len(batches)
        counts.append(Counter(n for batch in seen for n in numbers_of(batch) if n != pads))
        assert all(counts[-1][n] == 1 for n in range(40))
        assert all(counts[-1][n] == 2 for n in range(40, 80))
        tokens = [int((labels > 0).sum()) for _, labels in seen]
        assert batches.token_counts(epoch) == tokens
    twice = counts[0] + counts[1]
    assert sum(1 for n in range(80, 120) if twice[n] == 1) >= 34  # rounding in small strata
    unbroken = taken(batches.dataset(0), 2 * len(batches))
    again = Batches(corpus, Numbers(), Numbers(), **options)
    rest = taken(again.dataset(len(batches) + 2), len(batches) - 2)
    assert all(map(equal, rest, unbroken[len(batches) + 2 :]))


def test_a_mixture_is_counted_and_named():
    corpora = [Corpus(["a"], ["b"], {"x": 1}, name="one"), Corpus(["c"], ["d"], {"x": 2}, {"y": 3})]
    mixed = mix([(corpora[0], 1), (corpora[1], 0.5)])
    assert (mixed.source, mixed.target) == (["a", "c"], ["b", "d"])
    assert mixed.dropped == {"x": 3} and mixed.repaired == {"y": 3}
    assert mixed.name == "one and corpus"
    assert [(part.name, part.pairs, part.weight) for part in mixed.parts] == [
        ("one", 1, 1.0),
        ("corpus", 1, 0.5),
    ]


@pytest.mark.parametrize("weight", [0, -1, float("nan"), float("inf")])
def test_a_weight_that_is_none_is_refused(weight):
    with pytest.raises(InputError, match="corpus: its weight must be above 0"):
        mix([(Corpus(["a"], ["b"]), weight)])
    with pytest.raises(InputError, match="at least one corpus"):
        mix([])

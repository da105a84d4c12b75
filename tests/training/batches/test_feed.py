"""Batches grouped into updates and split over replicas: nothing lost, nothing twice."""

import itertools

import numpy as np
import pytest

from tests.training.batches.test_batching import make, random_lengths
from training.batches.feed import Feed, rows_of, stack

PAIRS = 23


def feed(batches_per_update=1):
    return Feed(make(random_lengths(PAIRS), batch_tokens=90), batches_per_update)


def rows(element):
    """What counts of an element: (source, decoder input, labels) without pads, sorted."""
    inputs, labels = ({k: np.asarray(v) for k, v in element[0].items()}, np.asarray(element[1]))
    triples = zip(inputs["encoder_token_ids"], inputs["decoder_token_ids"], labels, strict=True)
    stripped = [tuple(tuple(ids[ids != 0]) for ids in triple) for triple in triples]
    return sorted(triple for triple in stripped if triple[2])


def batches_in(element):
    """An element of several batches, taken apart again."""
    inputs, labels = element
    for place, (count, source, target) in enumerate(np.asarray(inputs["sizes"])):
        yield (
            {
                "encoder_token_ids": np.asarray(inputs["encoder_token_ids"])[
                    place, :count, :source
                ],
                "decoder_token_ids": np.asarray(inputs["decoder_token_ids"])[
                    place, :count, :target
                ],
            },
            np.asarray(labels)[place, :count, :target],
        )


def equal(batch, other):
    return np.array_equal(batch[1], other[1]) and all(
        np.array_equal(batch[0][name], other[0][name]) for name in other[0]
    )


def test_an_epoch_is_its_batches_in_groups():
    feed_ = feed(3)
    batches = list(feed_.batches.epoch(4))
    assert len(batches) % 3, "the last group should be a smaller one"
    updates = list(itertools.islice(feed_.updates(4 * len(feed_)), len(feed_)))
    assert [len(update) for update in updates] == [3] * (len(batches) // 3) + [len(batches) % 3]
    for batch, other in zip(itertools.chain(*updates), batches, strict=True):
        assert equal(batch, other)
    counts = feed_.token_counts(4)
    assert counts == [sum(int((labels > 0).sum()) for _, labels in update) for update in updates]


@pytest.mark.parametrize("first", [1, 3, 4])
def test_updates_from_a_step_on_are_the_rest_of_the_unbroken_ones(first):
    feed_ = feed(2)
    unbroken = list(itertools.islice(feed_.updates(0), first + 6))[first:]
    for update, other in zip(feed_.updates(first), unbroken, strict=False):
        assert len(update) == len(other)
        assert all(map(equal, update, other))


def test_several_batches_come_out_of_an_element_as_they_went_in():
    feed_ = feed(3)
    updates = itertools.islice(feed_.updates(1), 5)
    for element, update in zip(feed_.dataset(1).take(5), updates, strict=True):
        assert all(map(equal, batches_in(element), update))
        assert len(element[1]) == len(update)


@pytest.mark.parametrize(("of", "batches_per_update"), [(2, 1), (2, 3), (3, 2), (8, 1)])
def test_replicas_have_every_row_of_an_update_once(of, batches_per_update):
    feed_ = feed(batches_per_update)
    total = len(feed_) + 1
    shares = [feed_.dataset(0, [replica], of).take(total) for replica in range(of)]
    for update, *elements in zip(feed_.updates(0), *shares, strict=False):
        if batches_per_update > 1:
            elements = [part for element in elements for part in batches_in(element)]
        assert sorted(sum(map(rows, elements), [])) == sorted(sum(map(rows, update), []))
        assert min(len(labels) for _, labels in elements) > 0


@pytest.mark.case("77")
def test_validation_on_replicas_has_every_row_and_no_end():
    feed_ = feed(3)
    total = len(feed_.batches)
    elements = list(feed_.dataset(None, [0, 1], 2).take(2 * total + 2))
    everything = sorted(sum(map(rows, feed_.batches.epoch(None)), []))
    assert len(everything) == PAIRS
    assert sorted(sum(map(rows, elements[: 2 * total]), [])) == everything
    for element, again in zip(elements[-2:], elements[:2], strict=True):
        assert equal(element, again)
    assert len(list(feed_.dataset(None))) == total


def test_shares_of_neighbouring_rows_differ_by_one_row_at_most():
    inputs = {"encoder_token_ids": np.arange(10).reshape(5, 2) + 4}
    shares = [rows_of((inputs, np.ones((5, 3), int)), replica, 3) for replica in range(3)]
    assert [share[1].shape for share in shares] == [(2, 3), (2, 3), (1, 3)]
    np.testing.assert_array_equal(shares[1][0]["encoder_token_ids"], [[6, 7], [12, 13]])


@pytest.mark.case("23")
def test_a_replica_without_a_row_has_one_of_pads():
    batch = ({"encoder_token_ids": np.full((1, 4), 5)}, np.full((1, 3), 5))
    inputs, labels = rows_of(batch, 1, 2)
    assert inputs["encoder_token_ids"].shape == (1, 4) and not inputs["encoder_token_ids"].any()
    assert labels.shape == (1, 3) and not labels.any()


def test_a_stack_by_hand():
    first = ({"encoder_token_ids": np.array([[4], [5]]), "decoder_token_ids": np.array([[2], [2]])},
             np.array([[6], [7]]))  # fmt: skip
    second = ({"encoder_token_ids": np.array([[8, 3]]), "decoder_token_ids": np.array([[2, 9]])},
              np.array([[9, 3]]))  # fmt: skip
    inputs, labels = stack([first, second])
    np.testing.assert_array_equal(inputs["sizes"], [[2, 1, 1], [1, 2, 2]])
    np.testing.assert_array_equal(labels, [[[6, 0], [7, 0]], [[9, 3], [0, 0]]])
    np.testing.assert_array_equal(inputs["encoder_token_ids"], [[[4, 0], [5, 0]], [[8, 3], [0, 0]]])

"""training/batches/batching.py: every pair once an epoch, in batches by tokens, from any step."""

import itertools
import logging
import time

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiny_run import PAIRS
from tf_transformer.config import END_ID, PAD_ID, START_ID, UNK_ID
from tf_transformer.errors import InputError
from tf_transformer.tokenizers import SentencePieceTokenizer
from training.batches.batching import Batches
from training.batches.ids import Ids
from training.corpora.corpus import Corpus

FIRST_ID = 4  # below it are the reserved ones


class Numbers:
    """A tokenizer of which the text "5 6" has the ids 5 and 6."""

    def encode(self, texts):
        return [[int(number) for number in text.split()] for text in texts]


def sentence(first, length):
    return " ".join(str(first + i) for i in range(length))


def corpus_of(lengths):
    """Pair n has `lengths[n]` tokens without END; its first source id says which pair it is."""
    source = [sentence(FIRST_ID + 1000 * n, pair[0]) for n, pair in enumerate(lengths)]
    target = [sentence(FIRST_ID + 1000 * n + 500, pair[1]) for n, pair in enumerate(lengths)]
    return Corpus(source, target)


def make(lengths, **options):
    return Batches(corpus_of(lengths), Numbers(), Numbers(), **options)


def random_lengths(pairs, longest=40, seed=0):
    return np.random.default_rng(seed).integers(1, longest, size=(pairs, 2)).tolist()


def numbers_of(batch):
    """Which pairs are in a batch."""
    return [(int(row[0]) - FIRST_ID) // 1000 for row in batch[0]["encoder_token_ids"]]


def equal(batch, other):
    (inputs, labels), (others, other_labels) = batch, other
    return all(np.array_equal(inputs[k], others[k]) for k in inputs) and np.array_equal(
        labels, other_labels
    )


def taken(dataset, count):
    return list(itertools.islice(dataset.as_numpy_iterator(), count))


LENGTHS = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=40)


@settings(max_examples=60, deadline=None)
@given(LENGTHS, st.integers(32, 200), st.sampled_from([1, 4, 8]), st.integers(0, 3))
def test_every_pair_once_an_epoch_uncut_and_in_the_budget(lengths, tokens, multiple, epoch):
    batches = make(lengths, batch_tokens=tokens, pad_to_multiple_of=multiple, max_length=None)
    seen = list(batches.epoch(epoch))
    assert sorted(n for batch in seen for n in numbers_of(batch)) == list(range(len(lengths)))
    assert len(seen) == len(batches)
    for inputs, labels in seen:
        encoder, decoder = inputs["encoder_token_ids"], inputs["decoder_token_ids"]
        assert decoder.shape == labels.shape and len(encoder) == len(labels)
        assert encoder.shape[1] % multiple == labels.shape[1] % multiple == 0
        widest = max(encoder.shape[1], labels.shape[1])
        assert len(encoder) * widest <= tokens or len(encoder) == 1
        for n, source, before, label in zip(
            numbers_of((inputs, labels)), encoder, decoder, labels, strict=True
        ):
            first, (s, t) = FIRST_ID + 1000 * n, lengths[n]
            whole = [*range(first, first + s), END_ID]
            assert source.tolist() == whole + [PAD_ID] * (len(source) - s - 1)
            target = list(range(first + 500, first + 500 + t))
            pads = [PAD_ID] * (len(label) - t - 1)
            assert label.tolist() == [*target, END_ID, *pads]
            assert before.tolist() == [START_ID, *target, *pads]


def test_a_batch_by_hand():
    batches = make([(2, 1), (1, 3)], batch_tokens=100, pad_to_multiple_of=4)
    ((inputs, labels),) = batches.epoch(None)
    assert inputs["encoder_token_ids"].tolist() == [[4, 5, 3, 0], [1004, 3, 0, 0]]
    assert inputs["decoder_token_ids"].tolist() == [[2, 504, 0, 0], [2, 1504, 1505, 1506]]
    assert labels.tolist() == [[504, 3, 0, 0], [1504, 1505, 1506, 3]]
    assert {array.dtype for array in (*inputs.values(), labels)} == {np.dtype("int32")}


def test_a_batch_is_as_full_as_the_budget_allows():
    """Twelve pairs of width 8: six fit into 48 tokens, seven into 56."""
    lengths = [(5, 7)] * 12
    for tokens, sizes in ((47, [5, 5, 2]), (48, [6, 6]), (56, [7, 5])):
        batches = make(lengths, batch_tokens=tokens)
        assert [len(planned.pairs) for planned in batches.plan(None)] == sizes


def test_like_lengths_are_together():
    lengths = random_lengths(600)
    batches = make(lengths, batch_tokens=400, pad_to_multiple_of=1)
    longest = np.max(lengths, axis=1) + 1
    plan = [planned.pairs for planned in batches.plan(None)]
    for shorter, longer in itertools.pairwise(plan):
        assert longest[shorter].max() <= longest[longer].min()
    # Full batches without padding would be this many; batches as they come, a third more.
    assert len(plan) <= 1.15 * longest.sum() / 400
    lengths_of = [
        sorted(sorted(longest[planned.pairs]) for planned in batches.plan(e)) for e in (None, 0)
    ]
    assert lengths_of[0] == lengths_of[1]


def test_pairs_too_long_are_left_out_and_counted(caplog):
    lengths = [(3, 3), (9, 3), (3, 9), (10, 1), (1, 10), (30, 30)]  # END is one more
    with caplog.at_level(logging.INFO):
        batches = make(lengths, max_length=10)
    assert batches.dropped == {"too long": 3}
    assert sorted(n for batch in batches.epoch(0) for n in numbers_of(batch)) == [0, 1, 2]
    (message,) = (record.getMessage() for record in caplog.records)
    assert "3 of 6 pairs" in message and "more than 10 tokens" in message


def test_what_no_batch_can_hold_is_left_out_too():
    lengths = [(3, 3), (40, 3)]
    assert make(lengths, batch_tokens=40, max_length=None).dropped == {"too long": 1}
    assert make(lengths, batch_tokens=41, max_length=None).dropped == {}
    assert make(lengths, batch_tokens=40, max_length=100).dropped == {"too long": 1}


def test_seed_and_epoch_decide_everything():
    lengths = random_lengths(200)

    def order(seed, epoch):
        batches = make(lengths, batch_tokens=200, seed=seed)
        return [tuple(numbers_of(batch)) for batch in batches.epoch(epoch)]

    assert order(1, 0) == order(1, 0)
    orders = [order(seed, epoch) for seed in (1, 2) for epoch in (0, 1, 2)]
    assert len({tuple(each) for each in orders}) == 6
    # Not only the batches' order: their company is another too.
    together = [{frozenset(batch) for batch in each} for each in orders]
    assert all(len(a & b) < len(a) / 2 for a, b in itertools.combinations(together, 2))


def test_every_epoch_has_as_many_batches():
    batches = make(random_lengths(300), batch_tokens=150)
    assert {len(batches.plan(epoch)) for epoch in (None, 0, 1, 2, 17)} == {len(batches)}


def test_batches_are_shuffled_not_sorted():
    batches = make(random_lengths(500), batch_tokens=200)
    widths = [batch[1].shape[1] for batch in batches.epoch(0)]
    positions = np.argsort(np.argsort(widths, kind="stable"), kind="stable")
    assert abs(np.corrcoef(positions, np.arange(len(widths)))[0, 1]) < 0.3


def test_the_first_batch_is_of_any_length():
    """Over seeds, short and long ones come first: no epoch begins with the shortest."""
    lengths = [(n % 40 + 1, n % 40 + 1) for n in range(200)]
    firsts = {make(lengths, batch_tokens=100, seed=s).plan(0)[0].pairs[0] % 40 for s in range(30)}
    assert min(firsts) < 10 and max(firsts) > 30


@pytest.mark.parametrize("step", [0, 1, 6, 7, 8, 20])
def test_a_dataset_from_a_step_on_is_the_rest_of_the_unbroken_one(step):
    batches = make([(n % 5 + 1, n % 7 + 1) for n in range(28)], batch_tokens=32)
    assert len(batches) == 7
    unbroken = taken(batches.dataset(0), 30)
    rest = taken(batches.dataset(step), 30 - step)
    assert len(rest) == 30 - step
    assert all(map(equal, rest, unbroken[step:]))


def test_the_unbroken_dataset_is_one_epoch_after_another():
    batches = make(random_lengths(50), batch_tokens=100)
    expected = [batch for epoch in range(3) for batch in batches.epoch(epoch)]
    assert all(map(equal, taken(batches.dataset(0), len(expected)), expected))
    assert batches.dataset(0).cardinality() == tf.data.INFINITE_CARDINALITY


def test_validation_is_one_pass_with_each_pair_once():
    lengths = random_lengths(50)
    batches = make(lengths, batch_tokens=100)
    for _ in range(2):  # it may be gone through again
        dataset = batches.dataset(None)
        seen = list(dataset.as_numpy_iterator())
        assert len(seen) == len(batches) == int(dataset.cardinality())
        assert sorted(n for batch in seen for n in numbers_of(batch)) == list(range(50))


def test_token_counts_are_those_of_the_labels():
    batches = make(random_lengths(80), batch_tokens=100, max_length=30)
    for epoch in (None, 0, 3):
        counted = [int((labels != PAD_ID).sum()) for _, labels in batches.epoch(epoch)]
        assert batches.token_counts(epoch) == counted
        assert sum(counted) == batches.target_tokens


# Subword sampling and word dropout.


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def words(request):
    """Real pieces; 240 pairs, of which the source says which one it is in any segmentation."""
    texts = [side for pair in PAIRS for side in pair]
    return SentencePieceTokenizer.train(texts, 120, model_type=request.param)


def sampled(words, **options):
    source, target = zip(*[pair for pair in PAIRS for _ in range(3)], strict=True)
    given = {"sampling": ("source", "target"), "batch_tokens": 300, "pad_to_multiple_of": 4}
    return Batches(Corpus(list(source), list(target)), words, words, **{**given, **options})


def pairs_of(batch, words):
    """The text of a batch's pairs."""
    inputs, labels = batch
    sides = []
    for ids in (inputs["encoder_token_ids"], labels):
        rows = [[i for i in row.tolist() if i not in (PAD_ID, END_ID)] for row in ids]
        sides.append([words._python.decode(row) for row in rows])
    return list(zip(*sides, strict=True))


def test_sampled_epochs_have_the_same_pairs_in_as_many_batches(words):
    batches = sampled(words)
    epochs = [list(batches.epoch(epoch)) for epoch in (0, 1, 2)]
    for epoch in epochs:
        assert len(epoch) == len(batches)
        found = sorted(pair for batch in epoch for pair in pairs_of(batch, words))
        assert found == sorted(PAIRS * 3)
        assert max(inputs["encoder_token_ids"].size for inputs, _ in epoch) <= 1.5 * 300
    lengths = [sum(int((labels != PAD_ID).sum()) for _, labels in epoch) for epoch in epochs]
    assert len(set(lengths)) == 3 and min(lengths) > 1.05 * batches.target_tokens
    for epoch, seen in enumerate(epochs):
        counted = [int((labels != PAD_ID).sum()) for _, labels in seen]
        assert batches.token_counts(epoch) == counted


def test_like_sampled_lengths_are_together(words):
    """Batches are made from the lengths of their own epoch, not from those of the best cut."""
    for inputs, labels in sampled(words, pad_to_multiple_of=1).epoch(4):
        longest = np.maximum((inputs["encoder_token_ids"] > 0).sum(1), (labels > 0).sum(1))
        assert longest.max() - longest.min() <= 4


def test_a_sampled_dataset_from_a_step_on_is_the_rest_of_the_unbroken_one(words):
    options = {"word_dropout": 0.2}
    unbroken = taken(sampled(words, **options).dataset(0), 2 * len(sampled(words)) + 3)
    for step in (3, len(sampled(words)) - 1, 2 * len(sampled(words)) + 1):
        rest = taken(sampled(words, **options).dataset(step), len(unbroken) - step)
        assert all(map(equal, rest, unbroken[step:]))
    assert not all(map(equal, taken(sampled(words, seed=2).dataset(0), 9), unbroken))


def test_one_side_may_be_sampled_alone(words):
    best, one = sampled(words, sampling=()), sampled(words, sampling=["source"])
    targets = [
        sorted(tuple(row[row > 0]) for _, labels in each.epoch(0) for row in labels)
        for each in (best, one)
    ]
    assert targets[0] == targets[1]
    sources = [
        sum(int((inputs["encoder_token_ids"] > 0).sum()) for inputs, _ in each.epoch(0))
        for each in (best, one)
    ]
    assert sources[1] > 1.05 * sources[0]


def test_what_is_too_long_is_decided_by_the_best_cut(words):
    longest = [max(map(len, words.encode(list(pair)))) + 1 for pair in PAIRS]
    limit = int(np.median(longest))
    batches = sampled(words, max_length=limit)
    assert batches.dropped["too long"] == 3 * sum(length > limit for length in longest)
    found = sorted({pair for batch in batches.epoch(0) for pair in pairs_of(batch, words)})
    assert found == sorted(pair for pair, n in zip(PAIRS, longest, strict=True) if n <= limit)


def test_validation_is_never_sampled(words):
    plain, noisy = sampled(words, sampling=(), word_dropout=0.0), sampled(words, word_dropout=0.5)
    sides = [
        sorted(tuple(row) for inputs, _ in each.epoch(None) for row in _stripped(inputs))
        for each in (plain, noisy)
    ]
    assert sides[0] == sides[1]


def _stripped(inputs):
    return [row[row > 0] for row in inputs["encoder_token_ids"]]


def test_word_dropout_hides_source_tokens_only():
    batches = make(random_lengths(400), batch_tokens=500, word_dropout=0.3)
    plain = make(random_lengths(400), batch_tokens=500)
    hidden = tokens = 0
    seen = []
    for (inputs, labels), (before, before_labels) in zip(
        batches.epoch(1), plain.epoch(1), strict=True
    ):
        ids, whole = inputs["encoder_token_ids"], before["encoder_token_ids"]
        changed = ids != whole
        assert (ids[changed] == UNK_ID).all() and not np.isin(
            whole[changed], (PAD_ID, END_ID)
        ).any()
        assert np.array_equal(labels, before_labels)
        assert np.array_equal(inputs["decoder_token_ids"], before["decoder_token_ids"])
        hidden += int(changed.sum())
        tokens += int((whole > END_ID).sum())
        seen.append(changed)
    share = hidden / tokens
    assert abs(share - 0.3) < 5 * (0.3 * 0.7 / tokens) ** 0.5
    again = [inputs["encoder_token_ids"] == UNK_ID for inputs, _ in batches.epoch(1, skip=2)]
    assert all(map(np.array_equal, again, seen[2:]))
    other = [inputs["encoder_token_ids"] == UNK_ID for inputs, _ in batches.epoch(2)]
    assert not all(map(np.array_equal, other, seen))
    alike = make([(7, 7)] * 60, batch_tokens=96, word_dropout=0.3)  # batches of one shape
    masks = [tuple(map(tuple, ids["encoder_token_ids"] == UNK_ID)) for ids, _ in alike.epoch(0)]
    assert len(set(masks)) == len(masks) == 5


@pytest.mark.case("41")
@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("pairs", [3, 1])
def test_fewer_pairs_than_a_batch_are_a_batch(pairs, static):
    batches = make([(4, 4)] * pairs, batch_tokens=8 * 8, static_shapes=static)
    assert len(batches) == 1
    for batch in taken(batches.dataset(0), 2):
        assert len(batch[1]) == (8 if static else pairs)
        assert sorted(n for n in numbers_of(batch) if n >= 0) == list(range(pairs))


@pytest.mark.case("41")
@pytest.mark.parametrize(
    ("options", "limit"),
    [({"batch_tokens": 20}, 20), ({"max_length": 9}, 9), ({"batch_tokens": 3, "max_length": 7}, 3)],
)
def test_a_corpus_of_pairs_too_long_is_refused_with_the_numbers(options, limit):
    with pytest.raises(InputError, match=rf"all 5 have more than {limit} tokens .*max_length"):
        make([(20, 20)] * 5, **options)


def test_ids_of_no_sentence_and_of_many(monkeypatch):
    monkeypatch.setattr("training.batches.ids._CHUNK", 3)
    texts = [sentence(n * 10 + FIRST_ID, n % 4) for n in range(11)]
    ids = Ids.encode(texts, Numbers())
    assert [ids[n].tolist() for n in range(11)] == Numbers().encode(texts)
    assert ids.lengths.tolist() == [n % 4 + 1 for n in range(11)]
    assert ids.flat.dtype == np.int32
    assert len(Ids.encode([], Numbers()).lengths) == 0


def test_thirty_thousand_pairs_are_batched_fast():
    """An epoch of Multi30k: seconds of a core, where a training step takes as long as ten."""
    lengths = random_lengths(30_000)
    corpus = corpus_of(lengths)
    began = time.process_time()
    batches = Batches(corpus, Numbers(), Numbers(), batch_tokens=4096)
    pairs = sum(len(labels) for _, labels in batches.epoch(0))
    assert pairs == 30_000
    assert time.process_time() - began < 10

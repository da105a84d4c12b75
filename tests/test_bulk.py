"""Many texts in batches: the order stays, memory is bounded, no text is lost or harmed."""

import gc
import logging
import random
import threading
import time
import tracemalloc

import pytest
import tensorflow as tf

from tests.tiny_translator import ENGLISH, FRENCH
from tests.trained_translator import trained_translator
from tf_transformer.bulk import Batching, Column, stream
from tf_transformer.errors import InputError


class Fake:
    """Translates to capitals; keeps the batches it was given."""

    def __init__(self):
        self.batches = []

    def __call__(self, text):
        assert text.dtype == tf.string and text.shape.rank == 1
        rows = text.numpy().tolist()
        self.batches.append(rows)
        return {
            "text": tf.constant([row.decode().upper().encode() for row in rows]),
            "score": tf.constant([-float(len(row)) for row in rows]),
        }


def count_words(text):
    """Tokens as a tokenizer of words would count them, END too."""
    return tf.constant([len(row.split()) + 1 for row in text.numpy().tolist()], tf.int64)


WORDS = (Column("source", count_words),)


def capitals(texts, **options):
    """The translations alone."""
    return [found["text"] for found in stream(Fake(), texts, **options)]


def random_texts(count, seed=0):
    """Of 0 to 60 words, now and then a very long one."""
    generator = random.Random(seed)
    sizes = [generator.choice([0, 1, 3, 10, 60]) for _ in range(count)]
    sizes[count // 2] = 5_000
    return [f"{n} " + " ".join(["wört"] * size) for n, size in enumerate(sizes)]


@pytest.mark.parametrize("count", [1, 2, 127, 300, 5_000])
def test_every_text_has_its_answer_in_its_place(count):
    texts = random_texts(count)
    fake = Fake()
    found = list(stream(fake, texts))
    assert [one["text"] for one in found] == [text.upper() for text in texts]
    assert [one["score"] for one in found] == [-float(len(text.encode())) for text in texts]
    assert all(type(one["score"]) is float and type(one["text"]) is str for one in found)
    assert sorted(row for batch in fake.batches for row in batch) == sorted(
        text.encode() for text in texts
    )


def test_equal_texts_keep_their_places():
    assert capitals(["b", "a", "b", "", "a", ""]) == ["B", "A", "B", "", "A", ""]


def test_no_text_is_no_call():
    fake = Fake()
    assert list(stream(fake, [])) == list(stream(fake, iter(()))) == []
    assert fake.batches == []


def test_batches_are_bounded_and_of_like_length():
    fake = Fake()
    texts = [text for text in random_texts(4_000) if len(text.split()) < 5_000]
    list(stream(fake, texts, WORDS, Batching(batch_tokens=1_000, batch_rows=50)))
    padding = total = 0
    for batch in fake.batches:
        lengths = [len(row.split()) + 1 for row in batch]
        assert len(batch) <= 50 and len(batch) * max(lengths) <= 1_000
        padding += sum(max(lengths) - length for length in lengths)
        total += max(lengths) * len(batch)
    assert padding < 0.02 * total
    # No smaller than they must be: of two neighbours together, one bound is broken.
    longest_first = [len(batch) * (len(batch[-1].split()) + 1) for batch in fake.batches]
    assert longest_first == sorted(longest_first, reverse=True) or len(fake.batches) < 4_000 / 15


def test_tokens_count_and_not_bytes():
    """A hundred letters of one token each beside one word of a hundred letters."""
    fake = Fake()
    texts = ["x" * 100, "y " * 50, "z" * 100, "w " * 50]
    list(stream(fake, texts, WORDS, Batching(batch_tokens=102)))
    sizes = sorted((len(batch), len(batch[0].split())) for batch in fake.batches)
    assert sizes == [(2, 1), (2, 50)]


def test_without_a_count_bytes_are_what_there_is():
    fake = Fake()
    texts = ["a b", "x" * 100_000, "c d"]
    assert [found["text"] for found in stream(fake, texts)] == [text.upper() for text in texts]
    assert [len(batch) for batch in fake.batches] == [1, 2]


def test_a_line_of_100_000_letters_is_alone_and_told(caplog):
    """Cut or not, its neighbours are as if it were not there."""
    fake = Fake()
    texts = ["a b", "x " * 50_000, "c d"]
    with caplog.at_level(logging.WARNING):
        found = list(stream(fake, texts, WORDS))
    assert [len(batch) for batch in fake.batches] == [1, 2]
    assert [one["text"] for one in found] == [text.upper() for text in texts]
    assert not caplog.records
    with caplog.at_level(logging.WARNING):
        cut = list(stream(fake, texts, (Column("source", count_words, 512),)))
    assert [one["truncated"] for one in cut] == [False, True, False]
    (record,) = caplog.records
    assert record.getMessage() == "Line 2: the source has 50001 tokens and is cut at 512."


@pytest.mark.case("53")
def test_the_lines_that_will_be_cut_are_named(caplog):
    """Across windows, and each side by itself."""
    texts = [("short", "a"), ("w " * 63, "w " * 64), ("", "b"), ("w " * 64, ""), ("w " * 65, "c")]
    columns = Column("source", count_words, 64), Column("target", count_words, 65)

    def answer(source, target):
        return {"text": source}

    with caplog.at_level(logging.WARNING):
        found = list(stream(answer, texts, columns, Batching(window=2)))
    assert [one["truncated"] for one in found] == [False, False, False, True, True]
    assert [record.getMessage() for record in caplog.records] == [
        "Line 4: the source has 65 tokens and is cut at 64.",
        "Line 5: the source has 66 tokens and is cut at 64.",
    ]


def test_rows_of_several_texts_stay_together():
    def answer(source, target):
        return {"pair": tf.strings.join([source, target], "|"), "ids": tf.ones([len(source), 2])}

    pairs = [("a " * (n % 7), f"{n}") for n in range(500)]
    found = list(stream(answer, pairs, (Column("source"), Column("target"))))
    assert [one["pair"] for one in found] == ["|".join(pair) for pair in pairs]
    assert all(one["ids"].shape == (2,) for one in found)


def test_a_file_of_any_length_is_read_a_window_at_a_time():
    """The answer to a line comes after at most 5,000 more were read."""
    asked = 0

    def lines():
        for number in range(30_000):
            assert number < asked + 5_000, "read too far ahead"
            yield f"line {number}"

    answers = stream(Fake(), lines())
    for number in range(30_000):
        asked = number
        assert next(answers)["text"] == f"LINE {number}"
    assert next(answers, None) is None


def test_memory_is_that_of_a_window():
    """Six times the lines take no more; 300 MB of long ones neither."""

    def answer(text):
        return {"text": text}

    def peak(texts):
        gc.collect()
        tracemalloc.start()
        for _ in stream(answer, texts, batching=Batching(batch_tokens=1 << 30)):
            pass
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    first = peak(f"line {number}" for number in range(8_192))
    assert peak(f"line {number}" for number in range(24_576)) < 1.2 * first
    assert peak("x" * 1_000_000 for _ in range(300)) < 100e6


def test_threads_keep_the_order_and_work_together():
    at_work, most = set(), []

    def answer(text):
        at_work.add(threading.get_ident())
        most.append(len(at_work))
        time.sleep(0.01)
        at_work.discard(threading.get_ident())
        return {"text": tf.strings.upper(text, "utf-8")}

    texts = random_texts(2_000)
    found = stream(answer, texts, batching=Batching(workers=3, window=500))
    assert [one["text"] for one in found] == [text.upper() for text in texts]
    assert max(most) == 3


@pytest.mark.parametrize("workers", [1, 2])
def test_what_goes_wrong_comes_out_and_stops_the_rest(workers):
    asked = []

    def answer(text):
        asked.append(text)
        time.sleep(0.01)
        raise KeyboardInterrupt if workers == 1 else MemoryError

    with pytest.raises((KeyboardInterrupt, MemoryError)):
        list(stream(answer, ["a"] * 4_000, batching=Batching(workers=workers, batch_rows=1)))
    assert len(asked) < 100


def test_who_watches_hears_of_each_batch():
    heard = []
    texts = random_texts(300)
    answers = stream(Fake(), texts, WORDS, watch=lambda *told: heard.append(told))
    assert len(list(answers)) == sum(rows for rows, _ in heard) == 300
    assert sum(tokens for _, tokens in heard) == sum(len(text.split()) + 1 for text in texts)


def test_half_a_surrogate_pair_does_not_stop_a_file():
    """Python strings may hold what is no text, from JSON for one."""
    found = capitals(["ab", "a\ud800b", "cd"])
    assert found[0] == "AB" and found[2] == "CD"
    assert found[1][0] == "A" and found[1][-1] == "B"


@pytest.mark.parametrize("text", ["one text", b"one text"])
def test_one_string_for_a_list_is_refused(text):
    with pytest.raises(ValueError, match="list of strings.*one text"):
        capitals(text)


@pytest.mark.parametrize("wrong", [{"batch_tokens": 0}, {"window": 1.5}, {"workers": True}])
def test_sizes_are_whole_numbers(wrong):
    with pytest.raises(InputError, match=f"`{next(iter(wrong))}` must be a whole number"):
        Batching(**wrong)


@pytest.mark.case("47")
@pytest.mark.case("51")
def test_a_translator_gives_each_line_what_it_gives_it_alone():
    """Known sentences between blank lines, in an order that sorting by length changes."""
    translator = trained_translator()
    pairs = [*zip(FRENCH, ENGLISH, strict=True), ("", ""), ("   ", ""), ("\t", "")] * 20
    random.Random(3).shuffle(pairs)
    found = list(translator.stream(source for source, _ in pairs))
    assert [one["text"] for one in found] == [target for _, target in pairs]
    assert all(
        (one["score"] == 0.0) == (target == "")
        for one, (_, target) in zip(found, pairs, strict=True)
    )
    scores = {}
    for (source, _), one in zip(pairs, found, strict=True):
        assert one["score"] == pytest.approx(scores.setdefault(source, one["score"]), abs=1e-4)

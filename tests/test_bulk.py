"""Many texts in batches: the order stays, memory is bounded, no text is lost or harmed."""

import itertools
import logging
import random

import pytest
import tensorflow as tf

from tests.tiny_translator import ENGLISH, FRENCH
from tests.trained_translator import trained_translator
from tf_transformer.bulk import stream, translate_in_batches, watch_lengths


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
    assert translate_in_batches(Fake(), ["b", "a", "b", "", "a", ""]) == [
        "B",
        "A",
        "B",
        "",
        "A",
        "",
    ]


def test_no_text_is_no_call():
    fake = Fake()
    assert translate_in_batches(fake, []) == []
    assert translate_in_batches(fake, iter(())) == []
    assert fake.batches == []


def test_batches_are_bounded_and_of_like_length():
    fake = Fake()
    translate_in_batches(fake, random_texts(4_000))
    padding = total = 0
    for batch in fake.batches:
        longest = max(map(len, batch))
        assert len(batch) <= 128
        assert len(batch) == 1 or len(batch) * longest <= 8_192
        padding += sum(longest - len(row) for row in batch)
        total += longest * len(batch)
    assert padding < 0.1 * total
    assert len(fake.batches) < 4_000 / 10


def test_a_long_line_has_a_batch_of_its_own():
    """100,000 letters between short ones."""
    fake = Fake()
    texts = ["a b", "x" * 100_000, "c d"]
    assert translate_in_batches(fake, texts) == [text.upper() for text in texts]
    assert [len(batch) for batch in fake.batches] == [2, 1]


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


def test_half_a_surrogate_pair_does_not_stop_a_file():
    """Python strings may hold what is no text, from JSON for one."""
    found = translate_in_batches(Fake(), ["ab", "a\ud800b", "cd"])
    assert found[0] == "AB" and found[2] == "CD"
    assert found[1][0] == "A" and found[1][-1] == "B"


@pytest.mark.parametrize("text", ["one text", b"one text"])
def test_one_string_for_a_list_is_refused(text):
    with pytest.raises(ValueError, match="list of strings.*one text"):
        translate_in_batches(Fake(), text)


@pytest.mark.case("47")
@pytest.mark.case("51")
def test_a_translator_gives_each_line_what_it_gives_it_alone():
    """Known sentences between blank lines, in an order that sorting by length changes."""
    translator = trained_translator()
    pairs = [*zip(FRENCH, ENGLISH, strict=True), ("", ""), ("   ", ""), ("\t", "")] * 20
    random.Random(3).shuffle(pairs)
    found = list(stream(translator.translate, (source for source, _ in pairs)))
    assert [one["text"] for one in found] == [target for _, target in pairs]
    assert all(
        (one["score"] == 0.0) == (target == "")
        for one, (_, target) in zip(found, pairs, strict=True)
    )
    scores = {}
    for (source, _), one in zip(pairs, found, strict=True):
        assert one["score"] == pytest.approx(scores.setdefault(source, one["score"]), abs=1e-4)


@pytest.mark.case("53")
def test_the_lines_that_will_be_cut_are_named(caplog):
    texts = ["short", "w " * 5_000, "", "w " * 63, "w " * 64]
    with caplog.at_level(logging.WARNING):
        passed = list(watch_lengths(iter(texts), 64, lambda text: len(text.split()) + 1))
    assert passed == texts
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 2
    assert "Line 2 " in messages[0] and "5001" in messages[0] and "64" in messages[0]
    assert "Line 5 " in messages[1] and "65" in messages[1]


def test_watching_reads_no_line_ahead():
    read = itertools.count()
    watched = watch_lengths((f"line {next(read)}" for _ in range(10)), 64, len)
    assert next(watched) == "line 0" and next(read) == 1

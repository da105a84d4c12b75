"""Random and nasty bytes through an export: each answered, and nobody beside them harmed."""

import numpy as np
import pytest

from export import SessionModel
from tests.export.hostile import strings
from tests.tiny_translator import FRENCH

BATCH = 50


@pytest.mark.case("27")
@pytest.mark.parametrize("count", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_whatever_comes_is_answered_and_neighbours_are_unharmed(
    count: int, session: SessionModel
) -> None:
    """In every batch of strangers a known sentence: its answer is always the same."""
    known = [text.encode() for text in FRENCH]
    expected = session("translate", {"text": np.array(known, object)})
    answered = 0
    rows = list(strings(count))
    assert len(rows) == count
    for start in range(0, count, BATCH):
        batch = rows[start : start + BATCH]
        place, which = start % len(batch), start // BATCH % len(known)
        batch.insert(place, known[which])
        found = session("translate", {"text": np.array(batch, object)})
        assert found["text"][place] == expected["text"][which]
        assert found["score"][place] == pytest.approx(expected["score"][which], abs=1e-4)
        assert not found["truncated"][place]
        for text, score in zip(found["text"], found["score"], strict=True):
            text.decode()  # strictly UTF-8
            assert b"</s>" not in text and np.isfinite(score)
        answered += len(found["text"]) - 1
    assert answered == count


@pytest.mark.parametrize("name", ["generate_ids", "detokenize"])
def test_whatever_ids_come_are_answered(name: str, session: SessionModel) -> None:
    """Ids and lengths of every size, END and PAD anywhere, beside a row that is known."""
    numbers = np.random.default_rng(3)
    limits = np.iinfo("int32")
    known = numbers.integers(4, 40, 7)
    alone = session(name, {"ids": known[None].astype("int32"), "length": np.array([7], "int32")})
    for width in (7, 20, 90):
        ids = numbers.integers(-3, 60, (40, width))
        ids[::5] = numbers.integers(limits.min, limits.max, ids[::5].shape)
        ids[17, :7] = known
        length = numbers.integers(-5, width + 5, 40)
        length[3], length[4], length[17] = limits.min, limits.max, 7
        request = {"ids": ids.astype("int32"), "length": length.astype("int32")}
        found = session(name, request)
        for key, values in alone.items():
            if values.dtype.kind == "f":
                np.testing.assert_allclose(found[key][17], values[0], atol=1e-4)
            else:
                np.testing.assert_array_equal(found[key][17], values[0])

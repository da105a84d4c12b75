"""Random and nasty bytes through an export: each answered, and nobody beside them harmed."""

import random
from collections.abc import Iterator

import numpy as np
import pytest

from export import SessionModel
from tests.tiny_translator import FRENCH

BATCH = 50
NASTY = [
    b"", b"\0", b"\xff", b"\xfe\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80",
    b"\xe2\x82", b"\xef\xbb\xbf", b"</s>", b"<s>", b"<pad>", b"<unk>", b"<0x0A>", b"##", b"[UNK]",
    b"%s%n", b"\\", b'"', b"{{}}", b"'; DROP TABLE",
]  # fmt: skip
NASTY += [
    text.encode()
    for text in (
        "\u2581", "\u2581" * 40, " ⁇ ", "\u200b", "\u202e\u202d", "\u2028\u2029\u0085",
        "\ufffd" * 9, "e\u0301" * 30, "\U0001f468\u200d\U0001f469\u200d\U0001f467", "ﷺ" * 20,
        "ı İ ß ſ K Å", "\U0010ffff", "a" + "\u0300" * 500, "\t\n\r\v\f\x1c", "9" * 400,
        "le chat " * 300,
    )
]  # fmt: skip


def strings(count: int) -> Iterator[bytes]:
    """Bytes of any kind, letters of any plane, halves of both, and all of NASTY between them."""
    dice = random.Random(7)
    words = [word.encode() for text in FRENCH for word in text.split()]
    yield from NASTY
    for _ in range(count - len(NASTY)):
        kind, length = dice.randrange(4), int(dice.expovariate(1 / 30))
        if kind == 0:
            yield dice.randbytes(length)
        elif kind == 1:
            letters = (
                chr(dice.choice((dice.randrange(0x110000), dice.randrange(0x400))))
                for _ in range(length)
            )
            yield "".join(letters).encode("utf-8", "surrogatepass")
        elif kind == 2:
            yield b" ".join(dice.choice((*words, *NASTY)) for _ in range(length))
        else:
            text = b" ".join(dice.choice(words) for _ in range(length + 1))
            place = dice.randrange(len(text))
            yield text[:place] + dice.randbytes(2) + text[place + 1 :]


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

"""Random and nasty bytes, the same ones for every test and benchmark that sends some."""

import base64
import json
import random
from collections.abc import Iterator, Sequence

from tests.tiny_translator import FRENCH

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


def strings(count: int, texts: Sequence[str] = FRENCH) -> Iterator[bytes]:
    """Bytes of any kind, letters of any plane, halves of both, broken `texts`, and all of NASTY."""
    dice = random.Random(7)
    words = [word.encode() for text in texts for word in text.split()]
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


def as_json(text: bytes) -> str | dict[str, str]:
    """In a request over REST: as text where it is text, else in base64."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(text).decode()}


def json_text(text: bytes) -> bytes | None:
    """What these bytes are as a text in JSON, if they are one."""
    try:
        (found,) = json.loads((b'["' + text + b'"]').decode())
        return found.encode()
    except ValueError:
        return None

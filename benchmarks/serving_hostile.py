"""The nasty strings of `serving.py`: without a server, over gRPC, over REST, and as raw bodies."""

import math
import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

BATCH = 50
THREADS = 8
HUGE = 100_000  # letters, in one string of 500
Answer = tuple[bytes, float] | None  # text and score; None: refused with 400


def hostile(serving: Any, version: Path, lines: list[str], count: int) -> int:
    """A table of what was answered and refused; how often that was wrong."""
    from tests.export.hostile import json_text

    known = [line.encode() for line in lines[:20]]
    texts = list(nasty(count, lines))
    print("\n| strings through | sent | answered | refused | wrong | seconds | peak, MB |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    begin = time.perf_counter()
    expected, bad = in_process(version, texts, known)
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"| the session loader | {count} | {count} | 0 | {bad} | {seconds:.0f} | {peak:.0f} |")
    with serving:
        ways = {"gRPC": over_grpc(serving), "REST": over_rest(serving), "REST, raw": raw(serving)}
        for name, ask in ways.items():
            begin = time.perf_counter()
            with ThreadPoolExecutor(THREADS) as pool:
                found = list(pool.map(ask, texts))
            right = texts if name != "REST, raw" else [json_text(text) for text in texts]
            wrong = sum(
                not is_right(answer, text if text is None else expected.get(text), text)
                for answer, text in zip(found, right, strict=True)
            )
            refused = sum(answer is None for answer in found)
            seconds = time.perf_counter() - begin
            bad += wrong
            print(
                f"| {name} | {count} | {count - refused} | {refused} | {wrong} | {seconds:.0f} | "
                f"{serving.memory('VmHWM'):.0f} |",
                flush=True,
            )
        if serving.process.poll() is not None:
            sys.exit("The server has ended.")
    return bad


def nasty(count: int, lines: list[str]):
    """Those of the tests, and one in 500 of 100,000 letters."""
    from tests.export.hostile import strings

    huge = [b"a", "漢".encode(), "\U0001f600".encode(), b"le chat ", b"\xff", b"\0", b"<s> "]
    for number, text in enumerate(strings(count, lines)):
        text = text if number % 500 != 499 else (huge[number // 500 % len(huge)] * HUGE)[:HUGE]
        yield text


def in_process(version: Path, texts: list[bytes], known: list[bytes]) -> tuple[dict, int]:
    """Each string's answer, and how often a known sentence among 50 of them got another one."""
    import numpy as np

    from export import SessionModel

    found: dict[bytes, Answer] = {}
    wrong = 0
    with SessionModel(version) as model:

        def ask(batch: list[bytes]) -> list[Answer]:
            outputs = model("serving_default", {"text": np.array(batch, object)})
            return list(zip(outputs["text"].tolist(), outputs["score"].tolist(), strict=True))

        alone = {text: ask([text])[0] for text in known}
        for start in range(0, len(texts), BATCH):
            batch, neighbour = texts[start : start + BATCH], known[start // BATCH % len(known)]
            place = start // BATCH % (len(batch) + 1)
            *answers, beside = _moved_last(ask([*batch[:place], neighbour, *batch[place:]]), place)
            wrong += not is_right(beside, alone[neighbour], neighbour)
            found.update(zip(batch, answers, strict=True))
    return found, wrong


def _moved_last(answers: list[Answer], place: int) -> list[Answer]:
    return [*answers[:place], *answers[place + 1 :], answers[place]]


def over_grpc(serving: Any) -> Callable[[bytes], Answer]:
    """One string a request; it holds any bytes."""
    import numpy as np

    client = serving.client("gRPC")

    def ask(text: bytes) -> Answer:
        outputs = client.predict({"text": np.array([text], object)})
        return outputs["text"][0], float(outputs["score"][0])

    return ask


def over_rest(serving: Any) -> Callable[[bytes], Answer]:
    """As text in JSON where it is text, else in base64."""
    from tests.export.hostile import as_json

    client = serving.client("REST")

    def ask(text: bytes) -> Answer:
        (row,) = client.predict({"instances": [{"text": as_json(text)}]})
        return row["text"].encode(), row["score"]

    return ask


def raw(serving: Any) -> Callable[[bytes], Answer]:
    """The bytes between quotation marks: where that is no JSON the answer must be 400."""
    import requests

    url = f"http://127.0.0.1:{serving.ports['REST']}/v1/models/loaded:predict"

    def ask(text: bytes) -> Answer:
        answer = requests.post(url, data=b'{"instances": ["' + text + b'"]}', timeout=300)
        if answer.status_code == 400 and answer.json()["error"]:
            return None
        answer.raise_for_status()
        (row,) = answer.json()["predictions"]
        return row["text"].encode(), row["score"]

    return ask


def is_right(found: Answer, expected: Answer, text: bytes | None) -> bool:
    """Refused where it had to be; else the same text, in UTF-8, and the score but for rounding.

    A raw body may say another string than any that was asked before: then it has to be answered.
    """
    if found is None or text is None:
        return found is None and text is None
    found[0].decode()  # raises where it is not
    if expected is None:
        return math.isfinite(found[1])
    return found[0] == expected[0] and math.isclose(
        found[1], expected[1], rel_tol=1e-4, abs_tol=1e-4
    )

"""A development server under load, killed, and sent nasty strings; every answer is compared.

    python benchmarks/serving.py --model models/en-de --texts test2016.src
    python benchmarks/serving.py --model models/en-de --texts test2016.src --requests 0 --kills 5
    python benchmarks/serving.py --model models/en-de --requests 0 --hostile 10000

`tf-transformer serve` runs in a process of its own on loopback, with and without dynamic batching,
and is asked by our own clients, one text a request, so that a latency has its retries in it. The
requests are divided evenly among protocols, batching and concurrency. An answer is right when it is
the one of `SessionModel` in this process, which is asked one text at a time: the same text, the
same flag, the score within 1e-4. The exit status is 1 when one is wrong or missing.

Without --model a tiny one with random weights is exported. Memory is read from /proc: Linux only.
"""

import argparse
import itertools
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
MODEL = "loaded"
CONCURRENCY = (1, 4, 16, 64)
PATIENCE = 300.0  # seconds for one answer: a server that starts again is waited for
BATCHING: dict[str, list[Any]] = {"yes": [], "no": ["--max-batch", 1, "--batch-wait-ms", 0]}
Rows = dict[str, dict[str, Any]]


class Serving:
    """`tf-transformer serve` in a process of its own; a context manager that ends it."""

    def __init__(self, folder: Path, *options: Any) -> None:
        from tests.export.serving import free_port

        self.ports = {"gRPC": free_port(), "REST": free_port()}
        self._words = ["-m", "tf_transformer", "serve", folder, "--name", MODEL, *options]
        self._words += ["--port", self.ports["gRPC"], "--rest-port", self.ports["REST"]]
        self.start()

    def start(self) -> None:
        """At the same ports as before."""
        self.process = subprocess.Popen(
            [sys.executable, *map(str, self._words)],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"},
        )

    def client(self, protocol: str) -> Any:
        """Of ours."""
        from export import Client, RestClient

        kind = {"gRPC": Client, "REST": RestClient}[protocol]
        return kind(f"127.0.0.1:{self.ports[protocol]}", MODEL, timeout=PATIENCE)

    def wait(self) -> None:
        """Until it answers."""
        until = time.monotonic() + PATIENCE
        with self.client("REST") as client:
            while self.process.poll() is None and time.monotonic() < until:
                if client.is_healthy():
                    return
        sys.exit(f"The server did not start: exit status {self.process.poll()}.")

    def memory(self, what: str = "VmRSS") -> float:
        """MB now; VmHWM is the most that it ever was."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(what + ":"))

    def __enter__(self) -> "Serving":
        self.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def mixed(lines: list[str], count: int) -> list[str]:
    """So many different texts: most are lines, some a few words of one, some several lines."""
    dice, found = random.Random(1), dict[str, None]()
    lines = [line for line in lines if line.strip()]
    for _ in range(100 * count):
        text, kind = dice.choice(lines), dice.random()
        if kind < 0.2:
            text = " ".join(text.split()[: dice.randint(1, 4)])
        elif kind < 0.4:
            text = " ".join(dice.choices(lines, k=dice.randint(2, 5)))
        found[text] = None
        if len(found) == count:
            break
    return list(found)


def is_right(row: dict[str, Any], expected: dict[str, Any]) -> bool:
    """The same text and flag, and the score but for rounding."""
    same = all(row[key] == expected[key] for key in ("text", "truncated"))
    return same and math.isclose(row["score"], expected["score"], rel_tol=1e-4, abs_tol=1e-4)


def answers_in_process(version: Path, texts: list[str]) -> Rows:
    """What `serving_default` says of each text by itself."""
    import numpy as np

    from export import SessionModel

    found = {}
    with SessionModel(version) as model:
        for text in texts:
            outputs = model("serving_default", {"text": np.array([text.encode()], object)})
            found[text] = {key: value.tolist()[0] for key, value in outputs.items()}
            found[text]["text"] = found[text]["text"].decode()
    return found


def ask_many(client: Any, texts: Iterator[str], expected: Rows, concurrency: int) -> dict[str, Any]:
    """Seconds of each request, and how many answers were wrong or did not come."""
    from export import ServerError

    found: dict[str, Any] = {"seconds": [], "wrong": 0, "errors": 0}
    begin = time.perf_counter()

    def ask(text: str) -> tuple[float, bool | None]:
        before = time.perf_counter()
        try:
            row = client.ask([text])[0]
        except ServerError as error:
            print(error, file=sys.stderr)
            return time.perf_counter() - before, None
        return time.perf_counter() - before, is_right(row, expected[text])

    with ThreadPoolExecutor(concurrency) as pool:
        for seconds, right in pool.map(ask, texts):
            found["seconds"].append(seconds)
            found["wrong"] += right is False
            found["errors"] += right is None
    return {**found, "all": time.perf_counter() - begin}


def load(folder: Path, expected: Rows, count: int) -> int:
    """The table of latencies; how many answers were wrong or missing."""
    import numpy as np

    each, bad = max(1, count // (4 * len(CONCURRENCY))), 0
    print(
        "| batching | requests at once | protocol | requests/s | p50 ms | p95 ms | p99 ms | ",
        end="",
    )
    print("wrong | no answer | server, MB |\n|---|--:|---|--:|--:|--:|--:|--:|--:|--:|")
    texts = itertools.cycle(expected)
    for batching, options in BATCHING.items():
        with Serving(folder, *options) as serving:
            for protocol in serving.ports:  # the first requests of every thread cost memory
                with serving.client(protocol) as client:
                    ask_many(client, itertools.islice(texts, max(CONCURRENCY)), expected, 64)
            print(f"| {batching} | warmed up | | | | | | | | {serving.memory():.0f} |")
            for concurrency, protocol in itertools.product(CONCURRENCY, serving.ports):
                with serving.client(protocol) as client:
                    asked = itertools.islice(texts, each)
                    found = ask_many(client, asked, expected, concurrency)
                p50, p95, p99 = 1000 * np.percentile(found["seconds"], (50, 95, 99))
                bad += found["wrong"] + found["errors"]
                print(
                    f"| {batching} | {concurrency} | {protocol} | {each / found['all']:.1f} | "
                    f"{p50:.1f} | {p95:.1f} | {p99:.1f} | {found['wrong']} | {found['errors']} | "
                    f"{serving.memory():.0f} |",
                    flush=True,
                )
            print(f"| {batching} | at most | | | | | | | | {serving.memory('VmHWM'):.0f} |")
    return bad


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, help="folder of versions")
    parser.add_argument("--texts", type=Path, help="lines to translate; default a few of our own")
    parser.add_argument("--requests", type=int, default=20_000, help="0: no load test")
    parser.add_argument("--distinct", type=int, default=500, help="different texts among them")
    parser.add_argument("--kills", type=int, default=0, help="under load, each with a new start")
    parser.add_argument("--hostile", type=int, default=0, help="strings, each in four ways")
    options = parser.parse_args()

    from serving_hostile import hostile
    from serving_kills import kill_and_restart

    from tests.tiny_translator import FRENCH, export_unchecked, make_translator
    from tf_transformer.saved import versions

    with tempfile.TemporaryDirectory() as temporary:
        folder = options.model
        if folder is None:
            folder = export_unchecked(make_translator(), Path(temporary) / "tiny").parent
        version = list(versions(folder).values())[-1]
        lines = options.texts.read_text("utf-8").splitlines() if options.texts else FRENCH
        expected = answers_in_process(version, mixed(lines, options.distinct))
        bad = load(folder, expected, options.requests) if options.requests else 0
        if options.kills:
            bad += kill_and_restart(Serving(folder), expected, options.kills)
        if options.hostile:
            bad += hostile(Serving(folder), version, lines, options.hostile)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()

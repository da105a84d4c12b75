"""The kills of `serving.py`: the server is gone in the middle of requests, and comes again."""

import itertools
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

WORKERS = 8  # of each protocol
BETWEEN = 200  # answers from one kill to the next


class Answer(NamedTuple):
    """What came of one request."""

    protocol: str
    right: bool | None  # None: no answer
    begin: float
    end: float


class Asking:
    """Threads that ask one text after the other, until they are told to end."""

    def __init__(self, protocol: str, client: Any, expected: dict[str, Any]) -> None:
        self._protocol, self._client, self._expected = protocol, client, expected
        self.found: list[Answer] = []
        self._texts, self._ended = itertools.cycle(list(expected)), threading.Event()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(WORKERS)
        self._workers = [self._pool.submit(self._ask) for _ in range(WORKERS)]

    def _ask(self) -> None:
        from serving import is_right

        from export import ServerError

        while not self._ended.is_set():
            with self._lock:
                text = next(self._texts)
            begin, right = time.monotonic(), None
            try:
                right = is_right(self._client.ask([text])[0], self._expected[text])
            except ServerError as error:
                print(error, file=sys.stderr)
            self.found.append(Answer(self._protocol, right, begin, time.monotonic()))

    def first_after(self, moment: float) -> float:
        """When the first answer came to a request, after a moment; waits for it."""
        while True:
            ends = [one.end for one in list(self.found) if one.end > moment]
            if ends:
                return min(ends)
            if all(worker.done() for worker in self._workers):
                sys.exit(f"Nobody asks any more: {self._workers[0].exception()}")
            time.sleep(0.01)

    def end(self) -> list[Answer]:
        """Of all requests, the last ones too."""
        self._ended.set()
        for worker in self._workers:
            worker.result()
        self._pool.shutdown()
        return self.found


def kill_and_restart(serving: Any, expected: dict[str, Any], kills: int) -> int:
    """A table of how long clients had to wait; how many answers were wrong or missing."""
    print("\n| kill | on their way | first answer, gRPC, s | first answer, REST, s |")
    print("|--:|--:|--:|--:|")
    with serving:
        clients = {protocol: serving.client(protocol) for protocol in serving.ports}
        asking = {key: Asking(key, client, expected) for key, client in clients.items()}
        for number in range(1, kills + 1):
            _wait_for_more(asking)
            before = sum(len(one.found) for one in asking.values())
            serving.process.kill()
            serving.process.wait()
            killed = time.monotonic()
            serving.start()
            time.sleep(0.2)  # answers of the old one that are noted late
            waiting = 2 * WORKERS - (sum(len(one.found) for one in asking.values()) - before)
            waited = [one.first_after(killed + 0.2) - killed for one in asking.values()]
            print(f"| {number} | {waiting} | {waited[0]:.1f} | {waited[1]:.1f} |", flush=True)
        _wait_for_more(asking)
        found = [answer for one in asking.values() for answer in one.end()]
        for client in clients.values():
            client.close()
    wrong = sum(one.right is False for one in found)
    missing = sum(one.right is None for one in found)
    longest = max(one.end - one.begin for one in found)
    print(f"\n{len(found)} requests, {wrong} wrong, {missing} without an answer; ", end="")
    print(f"the longest took {longest:.1f} s, with its retries.")
    return wrong + missing


def _wait_for_more(asking: dict[str, Asking]) -> None:
    wanted = {key: len(one.found) + BETWEEN // 2 for key, one in asking.items()}
    while any(len(one.found) < wanted[key] for key, one in asking.items()):
        time.sleep(0.01)

"""What the clients of both protocols share: any number of texts, in order, a few at a time."""

import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

Row = dict[str, Any]


class ServerError(Exception):
    """A request that got no answer; the message is the server's, or says that there is none."""


class LineClient:
    """What the clients of both protocols share: any number of texts, a few requests at a time."""

    def ask(self, texts: Sequence[str]) -> list[Row]:
        """What `serving_default` says of each text, in one request."""
        raise NotImplementedError

    def status(self) -> dict[int, str]:
        """The state of each version: AVAILABLE, LOADING, ...; ServerError if there is none."""
        raise NotImplementedError

    def is_healthy(self) -> bool:
        """Whether a version is AVAILABLE; a server that does not answer has none."""
        try:
            return "AVAILABLE" in self.status().values()
        except ServerError:
            return False

    def close(self) -> None:
        """Frees the connections."""
        raise NotImplementedError

    def translate(self, texts: Iterable[str], **options: int) -> list[str]:
        """The translations of any number of texts; options as `stream`."""
        return [row["text"] for row in self.stream(texts, **options)]

    def stream(
        self, texts: Iterable[str], batch: int = 32, requests_in_flight: int = 4
    ) -> Iterator[Row]:
        """What `serving_default` says of each text, `text` and `score` at least, in order.

        Args:
            texts: any number of them; no more are taken than are asked for.
            batch: texts of one request.
            requests_in_flight: at the same time; more are not held either.

        Raises:
            ServerError: a request got no answer, after all retries.
        """
        texts, waiting = iter(texts), deque[Future[list[Row]]]()
        with ThreadPoolExecutor(requests_in_flight) as pool:
            try:
                while chunk := list(itertools.islice(texts, batch)):
                    waiting.append(pool.submit(self._rows, chunk))
                    if len(waiting) == requests_in_flight:
                        yield from waiting.popleft().result()
                while waiting:
                    yield from waiting.popleft().result()
            finally:
                for one in waiting:
                    one.cancel()

    def _rows(self, texts: Sequence[str]) -> list[Row]:
        rows = self.ask(texts)
        if not all(isinstance(row, dict) and "text" in row for row in rows):
            raise ServerError("The model is no translator: serving_default has no output `text`.")
        if len(rows) != len(texts):
            raise ServerError(f"{len(texts)} texts got {len(rows)} answers.")
        return rows

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

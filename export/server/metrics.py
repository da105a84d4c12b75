"""What Prometheus reads: requests, failures and seconds, by protocol."""

import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

PATH = "/monitoring/prometheus/metrics"


class Metrics:
    """Counts requests; `text` is the exposition format 0.0.4 of Prometheus."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._requests: Counter[tuple[str, str]] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def request(self, protocol: str) -> Iterator[None]:
        """Around the answering of one request; an exception counts as a failure."""
        begin, result = time.perf_counter(), "error"
        try:
            yield
            result = "ok"
        finally:
            with self._lock:
                self._requests[protocol, result] += 1
                self._seconds[protocol] += time.perf_counter() - begin

    def text(self) -> str:
        """All of it."""
        with self._lock:
            requests, seconds = dict(self._requests), dict(self._seconds)
        lines = [
            "# HELP tf_transformer_requests_total Requests answered, by protocol and result.",
            "# TYPE tf_transformer_requests_total counter",
            *(
                f'tf_transformer_requests_total{{protocol="{protocol}",result="{result}"}} {count}'
                for (protocol, result), count in sorted(requests.items())
            ),
            "# HELP tf_transformer_request_seconds_total Time spent on them.",
            "# TYPE tf_transformer_request_seconds_total counter",
            *(
                f'tf_transformer_request_seconds_total{{protocol="{protocol}"}} {total:.6f}'
                for protocol, total in sorted(seconds.items())
            ),
        ]
        return "\n".join(lines) + "\n"

"""How fast a training is, by the tokens of its updates; standard library, for any Python."""

import json
import resource
import time


class Finished(Exception):
    """Ends a training that was measured long enough, wherever it is."""


class Clock:
    """Told of every update, it looks at those after a warm-up, for so many seconds.

    Whatever the training does between two updates counts: reading, logging, saving.

    Args:
        warm_up: seconds that do not count, from the end of the first update on.
        seconds: that count; whole updates, at least two.
    """

    def __init__(self, warm_up: float, seconds: float) -> None:
        self.warm_up, self.seconds = warm_up, seconds
        self.first = self.began = self.cpu = None
        self.updates = self.tokens = 0

    def update(self, tokens: int) -> None:
        """Counts an update that was just made, and raises `Finished` after the last one."""
        now = time.perf_counter()
        if self.first is None:
            self.first = now
        elif self.began is not None:
            self.updates += 1
            self.tokens += int(tokens)
            if self.updates >= 2 and now - self.began >= self.seconds:
                self.cpu = time.process_time() - self.cpu
                self.took = now - self.began
                raise Finished
        elif now - self.first >= self.warm_up:
            self.began, self.cpu = now, time.process_time()

    def line(self, **about: object) -> str:
        """What was measured, as JSON: target tokens (END counted), seconds, peak RSS in MB."""
        found = {
            **about,
            "updates": self.updates,
            "tokens": self.tokens,
            "tokens_per_s": self.tokens / self.took,
            "cpu_s_per_1000": 1000 * self.cpu / self.tokens,
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
        return json.dumps(found)

"""Ctrl-C and SIGTERM stop a training between two updates, never inside one."""

import signal
from types import FrameType, TracebackType
from typing import Any


class StopSignals:
    """A context in which SIGINT and SIGTERM raise KeyboardInterrupt where nothing is half done.

    Between `hold()` and `release()` the first signal waits for `release()`: weights that have
    made an update and a counter that has not cannot be gone on from. A second one does not wait;
    `held` then tells that what is in memory must not be saved. Outside the main thread signals
    stay whose they are.
    """

    def __init__(self) -> None:
        self.held = False
        self._waiting = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "StopSignals":
        try:
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._stop)
        except ValueError:  # not the main thread
            pass
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def hold(self) -> None:
        """An update begins."""
        self.held = True

    def release(self) -> None:
        """It is counted; raises KeyboardInterrupt if a signal has come."""
        self.held = False
        if self._waiting:
            self._waiting = False
            raise KeyboardInterrupt

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if self.held and not self._waiting:
            self._waiting = True
            return
        raise KeyboardInterrupt

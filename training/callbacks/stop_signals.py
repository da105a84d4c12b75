"""Ctrl-C and SIGTERM stop a training between two updates, never inside one."""

import signal
from collections.abc import Callable
from types import FrameType
from typing import Any


class StopSignals:
    """A context in which SIGINT and SIGTERM raise KeyboardInterrupt where nothing is half done.

    Between `hold()` and `release()` the first signal waits for `release()`: weights that have
    made an update and a counter that has not cannot be gone on from. A second one does not wait;
    `held` then tells that what is in memory must not be saved. Outside the main thread signals
    stay whose they are.

    Args:
        agree: for one of several processes, whether any has the flag that it is given. All then
            stop after the same update, and a first signal waits for one wherever it comes: who
            left alone would leave the others waiting.
    """

    def __init__(self, agree: Callable[[bool], bool] | None = None) -> None:
        self.held = False
        self._agree = agree
        self._waiting = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "StopSignals":
        try:
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._stop)
        except ValueError:  # not the main thread
            pass
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def hold(self) -> None:
        """An update begins."""
        self.held = True

    def release(self) -> None:
        """It is counted; raises KeyboardInterrupt if a signal has come."""
        self.held = False
        if self._waiting if self._agree is None else self._agree(self._waiting):
            self._waiting = False
            raise KeyboardInterrupt

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if (self.held or self._agree is not None) and not self._waiting:
            self._waiting = True
            return
        raise KeyboardInterrupt

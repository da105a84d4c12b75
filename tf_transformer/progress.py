"""A bar for long work on lines of text, on standard error."""

import time
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class LineProgress:
    """Lines done of how many, lines/s, tokens/s and the time left, and one line at the end.

    As a context manager. Nothing is shown where standard error is no terminal.

    Args:
        shown: False where standard output is the same terminal and would be torn by a bar.
        count: tells how many lines there are, None where nobody knows; asked only if it is shown.
    """

    def __init__(self, shown: bool, count: Callable[[], int | None] | None = None) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._shown = shown and self._console.is_terminal
        self._count = count
        self._lines = self._tokens = 0

    def __enter__(self) -> "LineProgress":
        self._began = time.perf_counter()
        total = self._count() if self._shown and self._count else None
        columns = (
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[speed]}"),
            TimeRemainingColumn(compact=True),
        )
        self._bar = Progress(*columns, console=self._console, transient=True)
        self._task = self._bar.add_task("", total=total, speed="")
        if self._shown:
            self._bar.start()
        return self

    def advance(self, lines: int, tokens: int) -> None:
        """A batch of so many lines and source tokens is done."""
        self._lines += lines
        self._tokens += tokens
        self._bar.update(self._task, advance=lines, speed=self._speed())

    def __exit__(self, failure: Any, *_: Any) -> None:
        if not self._shown:
            return
        self._bar.stop()
        if failure is None and self._lines:
            seconds = time.perf_counter() - self._began
            self._console.print(f"{self._lines:,} lines in {seconds:,.1f} s: {self._speed()}")

    def _speed(self) -> str:
        seconds = max(time.perf_counter() - self._began, 1e-9)
        lines = f"{self._lines / seconds:,.1f} lines/s"
        return f"{lines}, {self._tokens / seconds:,.0f} tokens/s" if self._tokens else lines

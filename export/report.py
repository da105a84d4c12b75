"""Results of checks for people: a table that grows while they run."""

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from .result import CheckResult


class Report:
    """A table of results; call it with each as it comes, inside `with`.

    Args:
        title: what is checked.
        console: where it is told, once there is a result; one that is no terminal gets the table
            at the end.
    """

    def __init__(self, title: str, console: Console) -> None:
        self._table = Table("", "check", "what was seen", title=title, title_justify="left")
        self._live = Live(self._table, console=console, refresh_per_second=4)

    def __call__(self, result: CheckResult) -> None:
        """Adds a row."""
        word, style = ("ok", "green") if result.ok else ("FAILED", "bold red")
        if result.ok and result.detail.startswith("skipped"):
            word, style = "skipped", "yellow"
        self._table.add_row(Text(word, style), Text(result.name), Text(result.detail))
        self._live.start()  # does nothing the second time

    def __enter__(self) -> "Report":
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

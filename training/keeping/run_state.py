"""What a run knows of itself besides its arrays: how far it is, and all that was measured."""

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

HISTORY_FILE = "history.jsonl"


@dataclasses.dataclass
class RunState:
    """The counters and the history; saved with the arrays, in one file.

    Args:
        step: updates made.
        seconds: of all processes that trained, up to `step`.
        speed: target tokens a second of the epoch, or the part of it before `step` in one process.
        logs: what Keras logged at `step`, means over the epoch so far.
        metrics: the variables of the metrics behind `logs`, to go on with in mid-epoch.
        history: the lines of `history.jsonl`, in order of their `step`. All that early stopping
            and keeping the best need is read from them, so that it cannot differ from them.
    """

    step: int = 0
    seconds: float = 0.0
    speed: float = 0.0
    logs: dict[str, float] = dataclasses.field(default_factory=dict)
    metrics: list[Any] = dataclasses.field(default_factory=list)
    history: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    def has_line(self) -> bool:
        """Whether `step` is told in the history."""
        return bool(self.history) and self.history[-1]["step"] == self.step

    def ranked(self, metric: str) -> list[int]:
        """Steps of the lines with that metric, the best first, the earlier of equals first.

        Args:
            metric: "nll", where less is better, or "bleu", where more is.

        >>> lines = [{"step": 1, "val_bleu": 7.0}, {"step": 2}, {"step": 3, "val_bleu": 9.0}]
        >>> RunState(history=lines).ranked("bleu")
        [3, 1]
        """
        sign = -1 if metric == "bleu" else 1
        lines = [line for line in self.history if f"val_{metric}" in line]
        return [line["step"] for line in sorted(lines, key=lambda x: sign * x[f"val_{metric}"])]

    def since_best(self, metric: str) -> int:
        """Evaluations after the best one; 0 when there was none."""
        ranked = self.ranked(metric)
        return sum(step > ranked[0] for step in ranked) if ranked else 0

    def write_history(self, run: Path) -> None:
        """`history.jsonl`, one line a JSON object, beside and renamed."""
        beside = run / f"{HISTORY_FILE}.writing"
        lines = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in self.history)
        beside.write_text(lines, encoding="utf-8")
        os.replace(beside, run / HISTORY_FILE)

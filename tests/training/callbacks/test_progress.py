"""training/callbacks/progress.py: what a person sees while a run trains."""

import io
import itertools
import re

import pytest
from rich.console import Console

from training.callbacks import progress
from training.callbacks.progress import ProgressReport
from training.keeping.run_state import RunState

LINE = {
    "epoch": 1.5,
    "step": 150,
    "loss": 3.0,
    "nll": 2.25,
    "val_nll": 2.5,
    "val_bleu": 31.25,
    "tokens_per_second": 12345.6,
    "samples": [{"source": "[b]le", "reference": "a [red]", "translation": "[i] a"}],
}


class Updates:
    """120 updates were made, of which 20 by this process, in runs of 100 an epoch."""

    def __init__(self):
        self.state = RunState(step=120)
        self.first_step, self.batches = 100, range(100)
        self.learning_rate, self.speed = 1.25e-3, 12345.6


def shown(monkeypatch, width, terminal, updates=3, seconds=1.0):
    """What stands on the screen after some updates, a line each."""
    clock = itertools.count(0, seconds)
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(clock))
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=terminal, width=width, color_system=None)
    seen = Updates()
    report = ProgressReport(console, seen, last_step=250)
    report.tell(LINE)
    report.on_epoch_begin(1)
    for _ in range(updates):
        seen.state.step += 1
        report.on_train_batch_end(0, {"nll": 2.3456, "loss": 3.0})
    if report._bar is not None:
        report._bar.refresh()
    report.close()
    return re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue()))


@pytest.mark.parametrize("width", [80, 120])
def test_the_bar_has_the_numbers_on_any_terminal(monkeypatch, width):
    bar = [line for line in shown(monkeypatch, width, terminal=True) if " left  " in line][-1]
    assert len(bar) <= width
    for said in ("epoch 2/3", "23/100", "nll 2.346", "BLEU 31.2"):
        assert said in bar
    assert ("12,346 tokens/s  lr 1.25e-03" in bar) == (width == 120)


def test_time_left_is_of_the_whole_run(monkeypatch):
    """20 updates took 60 s, so the 130 to come take 390."""
    clock = iter([0.0, 60.0])
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(clock))
    report = ProgressReport(Console(file=io.StringIO()), Updates(), last_step=250)
    assert str(report._time_left()) == "0:06:30"


def test_without_a_terminal_there_is_a_line_now_and_then(monkeypatch):
    """31 s go by between two looks at the clock: each update says so."""
    lines = shown(monkeypatch, 120, terminal=False, updates=2, seconds=31.0)
    said = [line for line in lines if line.startswith("  batch")]
    assert [line.split()[1] for line in said] == ["21/100", "22/100"]
    assert "  batch" not in "".join(shown(monkeypatch, 120, terminal=False, seconds=0.1))


def test_a_line_of_history_is_told_with_its_samples_as_they_are(monkeypatch):
    first, second, *_ = shown(monkeypatch, 200, terminal=False, updates=0)
    assert first == (
        "epoch 1.5/3  loss 3.000  nll 2.250  valid nll 2.500  valid BLEU 31.2  "
        "12,346 tokens/s, step 150"
    )
    assert second == "  [b]le -> [i] a (reference: a [red])"

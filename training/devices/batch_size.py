"""The largest `batch_tokens` that fits into memory, found by real updates of the worst batch."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from tf_transformer.errors import InputError

from ..recipe import Recipe

TOO_LARGE = 3  # exit status of a trial whose device had no memory left
_FINENESS = 8  # the answer is right within an eighth
_POLL_SECONDS = 0.1
_COLUMNS = ("batch_tokens", "     sentences", "peak memory", "s an update", "target tokens/s")

# The same installation in another process, whatever it is called there.
_PROGRAM = """
import sys
from tf_transformer.rooms import need
need("training.devices.batch_trial").main(*sys.argv[1:])
"""


@dataclasses.dataclass(frozen=True)
class Trial:
    """Updates of one size.

    Args:
        batch_tokens: their size.
        fits: whether they could be made.
        rows: sentences in it.
        length: of each of them, source and target.
        peak_bytes: most memory, of the GPU or of the process.
        seconds: of one update, the fastest.
    """

    batch_tokens: int
    fits: bool
    rows: int = 0
    length: int = 0
    peak_bytes: int = 0
    seconds: float = 0.0


def find_batch_size(
    recipe: Recipe,
    console: Console,
    memory_bytes: int | None = None,
    most_tokens: int = 2**20,
    run_trial: Callable[[Recipe, int, int], Trial] | None = None,
) -> int:
    """Prints what each size takes and which to set; the largest `batch_tokens` that fits.

    Each is tried in a process of its own, so that one which is killed takes nothing with it:
    doubled until it does not fit, then halved in between. Several replicas share a batch, so the
    answer is for all of them together.

    Args:
        recipe: precision, model, R-Drop and all; texts are not read, every sentence is
            `data.max_length` long.
        console: where the table goes.
        memory_bytes: most that a process may have; default nine tenths of what is free. For GPUs
            their own memory counts.
        most_tokens: where to stop.
        run_trial: tries (recipe, batch_tokens, memory_bytes); default `try_size`.

    Raises:
        InputError: not one sentence of `max_length` fits.
    """
    run_trial = run_trial or try_size
    limit = memory_bytes or free_memory() * 9 // 10
    # Line by line: it takes minutes, and who stops it has seen something.
    console.print(_line(*_COLUMNS), style="bold", highlight=False)

    def fits(tokens: int) -> bool:
        with console.status(f"{tokens:,} tokens ..."):
            found = run_trial(recipe, tokens, limit)
        console.print(_line(*_row(found)), highlight=False)
        return found.fits

    best = _largest(fits, recipe.data.max_length, most_tokens)
    if not best:
        raise InputError(
            f"Not even one sentence of data.max_length = {recipe.data.max_length} tokens fits: "
            "lower it, or the sizes in [model]."
        )
    console.print(_advice(recipe, best), highlight=False)
    return best


def try_size(recipe: Recipe, batch_tokens: int, memory_bytes: int) -> Trial:
    """Makes updates in another process, which is killed when it takes more memory than that."""
    with tempfile.TemporaryDirectory() as folder:
        question, answer, log = (Path(folder) / name for name in ("recipe.toml", "answer", "log"))
        question.write_text(recipe.to_toml(), encoding="utf-8")
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, question, str(batch_tokens), answer],
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
            )
            try:
                status = _watch(process, memory_bytes)
            finally:
                process.kill()
                process.wait()
        if status == 0:
            return Trial(batch_tokens, True, **json.loads(answer.read_text(encoding="utf-8")))
        if status in (TOO_LARGE, -signal.SIGKILL, -signal.SIGABRT):
            return Trial(batch_tokens, False)
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        raise InputError(f"The trial of {batch_tokens} tokens failed: {(lines or ['silent'])[-1]}")


def free_memory() -> int:
    """Bytes that a process here can have: of the machine or, where it is less, of the container."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                limits.append(int(line.split()[1]) * 1024)
        limits.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    except (OSError, ValueError):  # no Linux, or a container without a limit ("max")
        pass
    return min(limits)


def _watch(process: subprocess.Popen, memory_bytes: int) -> int:
    """The exit status of a process; it is killed when it has more memory than that."""
    while process.poll() is None:
        asked = ["ps", "-o", "rss=", "-p", str(process.pid)]
        kilobytes = subprocess.run(asked, capture_output=True, text=True).stdout.strip()
        if kilobytes and int(kilobytes) * 1024 > memory_bytes:
            process.kill()
        time.sleep(_POLL_SECONDS)
    return process.returncode


def _largest(fits: Callable[[int], bool], least: int, most: int) -> int:
    """The largest number that fits, within an eighth; 0 when `least` does not."""
    good, bad, size = 0, most + 1, max(least, min(1024, most))
    while size <= most:
        if not fits(size):
            bad = size
            break
        good, size = size, 2 * size
    if not good and bad > least and fits(least):
        good = least
    while good and bad <= most and bad - good > max(good // _FINENESS, 1):
        middle = (good + bad) // 2
        good, bad = (middle, bad) if fits(middle) else (good, middle)
    return good


def _line(*cells: str) -> str:
    return "  ".join(cell.rjust(len(name)) for cell, name in zip(cells, _COLUMNS, strict=True))


def _row(trial: Trial) -> list[str]:
    if not trial.fits:
        return [f"{trial.batch_tokens:,}", "", "too much", "", ""]
    tokens = trial.rows * trial.length
    return [
        f"{trial.batch_tokens:,}",
        f"{trial.rows:,} x {trial.length}",
        f"{trial.peak_bytes / 2**30:.2f} GiB",
        f"{trial.seconds:.2f}",
        f"{tokens / trial.seconds:,.0f}",
    ]


def _advice(recipe: Recipe, best: int) -> str:
    settings = recipe.training
    # Memory that is taken and given back in many sizes has gaps.
    safe = max(best * 9 // 10, recipe.data.max_length)
    wanted = settings.update_tokens or settings.batch_tokens
    text = f"[bold]{best:,} tokens fit. Set training.batch_tokens = {safe}[/bold] or less"
    if wanted <= safe:
        return f"{text}; the recipe's {settings.batch_tokens:,} do."
    return (
        f"{text}; with training.update_tokens = {wanted} an update has as many as in the recipe, "
        f"in {-(-wanted // safe)} batches."
    )

"""Decoding against other systems, in turn, round by round.

    pip install -e '.[bench]'
    python benchmarks/decoding.py --size tiny --threads 2
    python benchmarks/decoding.py --size base --threads 1 --opennmt-python opennmt/bin/python
    python benchmarks/decoding.py --lengths 25 50 100 200 --systems ours ctranslate2
    python benchmarks/decoding.py --quick   # both sizes, 2 threads, one short round, no XLA

Sources of 25 tokens, outputs of exactly 25 (or `--lengths`): END is kept out, for all alike. Random
weights; CTranslate2 has ours. Each measurement is a process of its own, systems alternate A B C A B
C; the table gives medians, and ratios to CTranslate2 float32 within each round. Memory is the peak
of that process, and in brackets what importing the library took of it. oneDNN is on for TensorFlow.

decoders/ has the systems; decoding_lines.py compares them on real text. One whose interpreter lacks
its libraries is left out, and said so: `--python NAME=PATH` gives it another one. OpenNMT-tf needs
that always, see decoders/opennmt_tf.py.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from decoders import SYSTEMS, System
from decoders.task import SIZES, Task

CELLS = [(1, 1), (4, 1), (1, 32), (4, 32)]  # beams, batch
FIRST = "ctranslate2"  # what the others are compared with
HERE = Path(__file__).resolve().parent
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parent)]),
    "TF_ENABLE_ONEDNN_OPTS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}


def run_python(interpreter: str, *arguments: str) -> str:
    """What a process printed; ends with its last line of error."""
    done = subprocess.run(
        [interpreter, *arguments], env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["killed"])[-1]
        raise SystemExit(f"{' '.join(arguments)}: {last}")
    return done.stdout


def available(systems: dict[str, System], interpreters: dict[str, str]) -> list[str]:
    """The names of those whose libraries are there; says which are not."""
    found = []
    for name, system in systems.items():
        libraries = system.libraries
        code = f"import importlib.util as u; print([n for n in {libraries} if not u.find_spec(n)])"
        missing = run_python(interpreters[name], "-c", code).strip()
        if missing == "[]":
            found.append(name)
        else:
            print(f"LEFT OUT: {name}, {interpreters[name]} has no {missing}", file=sys.stderr)
    return found


def one(name: str, interpreter: str, task: Task, seconds: float) -> dict[str, float]:
    """`measure` in a process of its own."""
    options = [f"--{key}={value}" for key, value in task._asdict().items()]
    command = ["-m", "decoders.measure", name, f"--seconds={seconds}", *options]
    return json.loads(run_python(interpreter, *command).splitlines()[-1])


def rows(rounds: list[dict[str, dict[str, float]]]) -> Iterator[list[str]]:
    """Cells of a row for each system, after its name."""
    for name in rounds[0]:
        cells = [name]
        for key in ("tokens_per_s", "tokens_per_cpu_s"):
            cells.append(f"{statistics.median(each[name][key] for each in rounds):,.0f}")
            ratio = "-"
            if FIRST in rounds[0]:
                ratios = [each[name][key] / each[FIRST][key] for each in rounds]
                ratio = f"{statistics.median(ratios):.2f}"
            cells.append(ratio)
        peak, library = (
            max(each[name][key] for each in rounds) for key in ("peak_mb", "library_mb")
        )
        yield [*cells, f"{peak:,.0f} ({library:,.0f})"]


def table(size: str, threads: int, lengths: list[int], given: argparse.Namespace) -> None:
    """Measures in turn and prints a row for each cell and system."""
    print(f"\n{size}, {threads} thread(s)\n")
    print("| beams, batch, tokens | system | tokens/s | of CT2 | tokens/CPU s | of CT2 | peak MB |")
    print("|---|---|--:|--:|--:|--:|--:|", flush=True)
    with tempfile.TemporaryDirectory(prefix="decoding_") as folder:
        if {"ctranslate2", "ctranslate2-int8"} & set(given.systems):
            run_python(given.interpreters["ours"], "-m", "decoders.ours", size, folder)
        for length in lengths:
            for beams, batch in CELLS:
                task = Task(size, beams, batch, length, threads, folder)
                rounds = [
                    {
                        name: one(name, given.interpreters[name], task, given.seconds)
                        for name in given.systems
                    }
                    for _ in range(given.rounds)
                ]
                for row in rows(rounds):
                    print(f"| {beams}, {batch}, {length} | {' | '.join(row)} |", flush=True)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The arguments, with `interpreters` of each system."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", choices=SIZES, action="append", help="default tiny")
    parser.add_argument("--threads", type=int, action="append", help="default 2")
    parser.add_argument("--lengths", type=int, nargs="+", default=[25], help="of the outputs")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--python", action="append", default=[], metavar="NAME=PATH")
    parser.add_argument("--opennmt-python", metavar="PATH", help="--python opennmt-tf=PATH")
    parser.add_argument("--quick", action="store_true", help="both sizes, one short round")
    given = parser.parse_args(arguments)
    if given.quick:
        given.size, given.rounds, given.seconds = given.size or list(SIZES), 1, 1.0
        given.systems = [name for name in given.systems if name != "keras-hub-xla"]
    given.interpreters = dict.fromkeys(SYSTEMS, sys.executable)
    pairs = [pair.split("=", 1) for pair in given.python]
    if given.opennmt_python:
        pairs.append(["opennmt-tf", given.opennmt_python])
    if unknown := {name for name, *_ in pairs} - set(SYSTEMS):
        parser.error(f"--python knows {', '.join(SYSTEMS)}, not {', '.join(unknown)}")
    given.interpreters.update(pairs)
    return given


def main() -> None:
    """See the file."""
    given = parse()
    asked = {name: SYSTEMS[name] for name in given.systems}
    given.systems = available(asked, given.interpreters)
    for size in given.size or ["tiny"]:
        for threads in given.threads or [2]:
            table(size, threads, given.lengths, given)


if __name__ == "__main__":
    main()

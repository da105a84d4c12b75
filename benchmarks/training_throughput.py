"""`tf-transformer train`, all of it, against OpenNMT-tf, KerasHub and PyTorch, round by round.

    pip install -e '.[bench]'
    python benchmarks/training_throughput.py --data DIR --opennmt-python VENV/bin/python
    python benchmarks/training_throughput.py --data DIR --quick

DIR holds a corpus with the splits train and valid, as `tf-transformer train` reads it. OpenNMT-tf
2.32 needs Python 3.10 and TensorFlow 2.13, so a virtual environment of its own:
`pip install OpenNMT-tf==2.32.0 tensorflow==2.13.1 'numpy<2'`; without `--opennmt-python` it is left
out. `--python` is the Python that runs KerasHub and PyTorch, by default the one that runs this.

What is compared: target tokens a second (END counted, padding not), CPU seconds for 1,000 of them,
and peak memory of the process, from text on disk, with everything that each does between updates.
Ours is the command's own function with its pipeline, progress, TensorBoard logs and saved states;
it validates only at the end, which is not measured. OpenNMT-tf is its Runner with its pipeline, on
the same pieces. KerasHub (its layers, `fit`, our loss) and PyTorch (nn.Transformer, its fused Adam)
have no pipeline of their own: they are given the very batches that ours makes, from memory. All
are pre-norm with one tied table, dropout 0.1 of embeddings and sublayer outputs, label smoothing
0.1 and Adam, in float32. Each measurement is a process of its own; systems alternate A B C D A B C
D; the table gives medians, and ratios to ours within each round. oneDNN is on for TensorFlow.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from peers.train_measure import SYSTEMS
from peers.train_sizes import SIZES

HERE = Path(__file__).resolve().parent
BATCH_TOKENS = {"tiny": 4096, "base": 2048}
MOST_BATCHES = 400
Round = dict[str, dict[str, Any]]


def command(system: str, size: str, folder: Path, chosen: argparse.Namespace) -> list[str]:
    """That measures one system."""
    python = {"ours": sys.executable, "opennmt": chosen.opennmt_python}.get(system, chosen.python)
    keys = {
        "size": size,
        "data": chosen.data,
        "folder": folder,
        "batch-tokens": BATCH_TOKENS[size],
        "threads": chosen.threads,
        "warm-up": chosen.warm_up,
        "seconds": chosen.seconds,
    }
    options = [part for key, value in keys.items() for part in (f"--{key}", str(value))]
    return [str(python), "-m", "peers.train_measure", system, *options]


def environment(system: str, threads: int) -> dict[str, str]:
    """The same threads and oneDNN for all; OpenNMT-tf's Python must not see our packages."""
    names = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS")
    paths = [HERE] if system == "opennmt" else [HERE, HERE.parent]
    return {
        **os.environ,
        **dict.fromkeys(names, str(threads)),
        "TF_ENABLE_ONEDNN_OPTS": "1",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "CUDA_VISIBLE_DEVICES": "-1",
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
    }


def process(arguments: list[str], system: str, threads: int) -> str:
    """The last line that it prints; a failure ends everything and shows what it said."""
    done = subprocess.run(
        arguments, capture_output=True, text=True, env=environment(system, threads), cwd=HERE
    )
    if done.returncode:
        sys.exit(f"{system} failed:\n{done.stderr[-3000:]}")
    return done.stdout.splitlines()[-1]


def prepare(size: str, data: Path, folder: Path) -> str:
    """Writes what all systems read; returns the number of pieces."""
    arguments = [size, str(data), str(folder), str(BATCH_TOKENS[size]), str(MOST_BATCHES)]
    return process([sys.executable, "-m", "peers.train_batches", *arguments], "ours", 2)


def measure(system: str, size: str, prepared: Path, chosen: argparse.Namespace) -> dict[str, Any]:
    """One process, in a folder of its own beside the prepared files."""
    with tempfile.TemporaryDirectory(prefix=f"{system}_") as own:
        folder = Path(own)
        for file in prepared.iterdir():
            (folder / file.name).symlink_to(file)
        line = process(command(system, size, folder, chosen), system, chosen.threads)
    print(line, flush=True)
    return json.loads(line)


def table(size: str, rounds: list[Round]) -> None:
    """Medians over the rounds, and of the ratios within each round; the best of the others last."""
    from rich.console import Console
    from rich.table import Table

    rows = Table(title=f"{size}, {len(rounds)} rounds")
    columns = ("target tokens/s", "ours / theirs", "CPU s / 1,000", "theirs / ours", "peak MB")
    rows.add_column("system")
    for column in columns:
        rows.add_column(column, justify="right")
    for system in rounds[0]:
        figures = [_figures(found[system], found["ours"]) for found in rounds]
        medians = [statistics.median(values) for values in zip(*figures, strict=True)]
        formats = ("{:,.0f}", "{:.2f}", "{:.2f}", "{:.2f}", "{:,.0f}")
        rows.add_row(system, *(f.format(x) for f, x in zip(formats, medians, strict=True)))
    console = Console()
    console.print(rows)
    speeds = [{name: one["tokens_per_s"] for name, one in found.items()} for found in rounds]
    if len(speeds[0]) > 1:
        best = statistics.median(found.pop("ours") / max(found.values()) for found in speeds)
        console.print(f"{size}: ours is {best:.2f} times as fast as the best of the others.")


def _figures(theirs: dict[str, Any], our: dict[str, Any]) -> tuple[float, ...]:
    speed = our["tokens_per_s"] / theirs["tokens_per_s"]
    cpu = theirs["cpu_s_per_1000"] / our["cpu_s_per_1000"]
    return theirs["tokens_per_s"], speed, theirs["cpu_s_per_1000"], cpu, theirs["peak_mb"]


def arguments() -> argparse.Namespace:
    """Of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="a corpus folder")
    parser.add_argument("--opennmt-python", type=Path, help="of its own environment")
    parser.add_argument("--python", default=sys.executable, help="for KerasHub and PyTorch")
    parser.add_argument("--size", choices=SIZES, nargs="+", default=list(SIZES))
    parser.add_argument("--system", choices=SYSTEMS, nargs="+", default=list(SYSTEMS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--warm-up", type=float, default=10, help="seconds that do not count")
    parser.add_argument("--seconds", type=float, default=60, help="of each measurement")
    parser.add_argument("--quick", action="store_true", help="1 round of 3 + 10 seconds each")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.rounds, chosen.warm_up, chosen.seconds = 1, 3.0, 10.0
    chosen.data = chosen.data.resolve()
    return chosen


def main() -> None:
    """Prepares the text of a size once, then measures all in turn."""
    chosen = arguments()
    systems = [name for name in SYSTEMS if name == "ours" or name in chosen.system]
    if "opennmt" in systems and chosen.opennmt_python is None:
        systems.remove("opennmt")
        print("OpenNMT-tf is left out: --opennmt-python names no Python that has it.")
    for size in chosen.size:
        with tempfile.TemporaryDirectory(prefix="training_throughput_") as folder:
            prepared = Path(folder)
            pieces = prepare(size, chosen.data, prepared)
            print(
                f"{size}: {pieces} pieces, tables of {SIZES[size]['vocabulary']} rows", flush=True
            )
            rounds: list[Round] = []
            for _ in range(chosen.rounds):
                rounds.append({s: measure(s, size, prepared, chosen) for s in systems})
            table(size, rounds)


if __name__ == "__main__":
    main()

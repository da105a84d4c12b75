"""A file of real text, free lengths, a trained run: our throughput engine against CTranslate2.

    tf-transformer train training/recipes/multi30k_en_de.toml --data DIR --run runs/m30k
    python benchmarks/decoding_lines.py --run runs/m30k --lines DIR/test2016.src --threads 2

Text in, text out, SentencePiece included. The same weights (float32; int8 is CTranslate2's own),
hypotheses compared by log P, batches of like length with the same number of tokens at most, as many
workers as threads with one thread each. Each measurement is a process of its own that translates
the file twice and times the second; systems alternate A B C A B C; medians, ratios within each
round. "same" counts the lines that CTranslate2 float32 translates alike.
"""

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

from decoders import LINES
from decoding import FIRST, available, run_python

Figures = dict[str, float]


def one(name: str, given: argparse.Namespace, beams: int, folder: str, output: Path) -> Figures:
    """One measurement, in a process of its own."""
    options = {
        "run": given.run,
        "lines": given.lines,
        "batch_tokens": given.batch_tokens,
        "threads": given.threads,
        "beams": beams,
        "folder": folder,
        "output": output,
    }
    command = ["-m", "decoders.measure_lines", name]
    command += [f"--{key}={value}" for key, value in options.items()]
    figures = json.loads(run_python(given.interpreters[name], *command).splitlines()[-1])
    return {
        "lines_per_s": figures["lines"] / figures["wall_s"],
        "tokens_per_s": figures["tokens"] / figures["wall_s"],
        "tokens_per_cpu_s": figures["tokens"] / figures["cpu_s"],
        "peak_mb": figures["peak_mb"],
    }


def table(given: argparse.Namespace, folder: str) -> None:
    """Measures in turn and prints a row for each system."""
    run_python(given.interpreters["ours"], "-m", "decoders.lines_ours", str(given.run), folder)
    print(
        "| beams | system | lines/s | tokens/s | of CT2 | tokens/CPU s | of CT2 | same | peak MB |"
    )
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|", flush=True)
    for beams in given.beams:
        outputs = {name: Path(folder) / f"{name}-{beams}.txt" for name in given.systems}
        rounds = [
            {name: one(name, given, beams, folder, outputs[name]) for name in given.systems}
            for _ in range(given.rounds)
        ]
        texts = {name: path.read_text("utf-8").splitlines() for name, path in outputs.items()}
        for name in given.systems:
            figures = {
                key: statistics.median(each[name][key] for each in rounds)
                for key in rounds[0][name]
            }
            ratios = {
                key: statistics.median(each[name][key] / each[FIRST][key] for each in rounds)
                for key in figures
            }
            same = sum(a == b for a, b in zip(texts[name], texts[FIRST], strict=True))
            cells = [
                *(f"{beams}", name, f"{figures['lines_per_s']:,.1f}"),
                *(f"{figures['tokens_per_s']:,.0f}", f"{ratios['tokens_per_s']:.2f}"),
                *(f"{figures['tokens_per_cpu_s']:,.0f}", f"{ratios['tokens_per_cpu_s']:.2f}"),
                *(f"{same} of {len(texts[name])}", f"{figures['peak_mb']:,.0f}"),
            ]
            print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    """See the file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", type=Path, required=True, help="a finished run directory")
    parser.add_argument("--lines", type=Path, required=True, help="source texts, one a line")
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--batch-tokens", type=int, default=4096)
    parser.add_argument("--python", action="append", default=[], metavar="NAME=PATH")
    given = parser.parse_args()
    given.run, given.lines = given.run.resolve(), given.lines.resolve()
    given.interpreters = dict.fromkeys(LINES, sys.executable)
    given.interpreters.update(pair.split("=", 1) for pair in given.python)
    given.systems = available(LINES, given.interpreters)
    if not {"ours", FIRST} <= {*given.systems}:
        raise SystemExit(f"ours and {FIRST} are needed.")
    with tempfile.TemporaryDirectory(prefix="decoding_") as folder:
        table(given, folder)


if __name__ == "__main__":
    main()

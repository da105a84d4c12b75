"""Measures one system on a file in this process; prints a line of JSON, writes what it found."""

import argparse
import importlib
import json
import time
from pathlib import Path

from decoders import LINES
from decoders.measure import peak_mb


def main() -> None:
    """See the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("system", choices=LINES)
    parser.add_argument("--run", required=True)
    parser.add_argument("--folder", required=True, help="of the models for CTranslate2")
    parser.add_argument("--lines", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    for name in ("beams", "threads", "batch_tokens"):
        parser.add_argument(f"--{name}", type=int, required=True)
    given = vars(parser.parse_args())
    system = LINES[given.pop("system")]
    texts = given.pop("lines").read_text(encoding="utf-8").splitlines()
    output = given.pop("output")
    module = importlib.import_module(system.module)
    run = module.prepare(texts=texts, **given, **system.arguments)
    run()
    begin, cpu = time.perf_counter(), time.process_time()
    found, tokens = run()
    wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
    output.write_text("".join(f"{text}\n" for text in found), encoding="utf-8")
    figures = {"wall_s": wall, "cpu_s": cpu, "lines": len(texts), "tokens": tokens}
    print(json.dumps({**figures, "peak_mb": peak_mb()}))


if __name__ == "__main__":
    main()

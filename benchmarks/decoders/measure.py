"""Measures one system in this process, which should do nothing else; prints a line of JSON."""

import argparse
import importlib
import json
import resource
import time

from decoders import SYSTEMS
from decoders.task import SIZES, Task

_LONG = 20.0  # seconds of a first call after which a second warm-up is not worth its time


def peak_mb() -> float:
    """Most resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(name: str, task: Task, seconds: float) -> dict[str, float]:
    """Target tokens a second and a CPU second; memory, and what of it the library's import takes.

    Raises:
        SystemExit: an output has another length than the task says.
    """
    system = SYSTEMS[name]
    module = importlib.import_module(system.module)
    library_mb = peak_mb()
    run = module.prepare(task, **system.arguments)
    begin = time.perf_counter()
    lengths = {len(row) for row in run()}
    first_s = time.perf_counter() - begin
    if lengths != {task.length}:
        raise SystemExit(f"{name} gave outputs of {lengths} tokens, not of {task.length}")
    if first_s < _LONG:
        run()
    calls, begin, cpu = 0, time.perf_counter(), time.process_time()
    while not calls or time.perf_counter() - begin < seconds:
        run()
        calls += 1
    wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
    tokens = calls * task.batch * task.length
    return {
        "tokens_per_s": tokens / wall,
        "tokens_per_cpu_s": tokens / cpu,
        "peak_mb": peak_mb(),
        "library_mb": library_mb,
        "first_s": first_s,
    }


def main() -> None:
    """See the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("system", choices=SYSTEMS)
    parser.add_argument("--size", choices=SIZES, required=True)
    for name in ("beams", "batch", "length", "threads"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--folder", required=True, help="of the models for CTranslate2")
    parser.add_argument("--seconds", type=float, required=True)
    given = vars(parser.parse_args())
    system, seconds = given.pop("system"), given.pop("seconds")
    print(json.dumps(measure(system, Task(**given), seconds)))


if __name__ == "__main__":
    main()

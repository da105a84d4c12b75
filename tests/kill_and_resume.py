"""The proof of exact resume: a run killed at random moments ends as the unbroken one, bit by bit.

    python -m tests.kill_and_resume [--kills 20] [--seed 1] [--folder DIR]      (make resume-test)

Trains the demo recipe, shortened to about a minute, once without a stop; then again, with SIGKILL
while it starts, trains, writes a file, validates, or writes its result, always by the same command.
Then everything must be equal: weights, optimizer, random generators, counters, history, and what
TensorBoard shows. A GPU adds in any order, so this is for a CPU.
"""

import argparse
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
TIMES = ("seconds", "speed", "tokens_per_second")  # of a clock: never equal
PAIRS = 2000  # of the demo's corpus
SETTINGS = (
    "training.epochs=8",
    "training.save_every_minutes=0.01",
    "training.patience=50",
    "training.final_weights=best",
    "training.average_checkpoints=2",
    "training.keep_checkpoints=3",
    "training.warmup_steps=60",
    "training.batch_tokens=1024",
    "training.update_tokens=2048",
    "training.ema_decay=0.99",
    "training.subword_sampling=both",
    "training.word_dropout=0.05",
    "evaluation.bleu=greedy",
    "evaluation.metric=bleu",
    "evaluation.every_steps=25",
)


class Training:
    """One process of `tf-transformer train`; what it is doing is read from its files."""

    def __init__(
        self, recipe: str | Path, data: Path, run: Path, settings: tuple[str, ...]
    ) -> None:
        self.run = run
        self.first_step = last_step(run)
        self.output = run.with_suffix(".txt")
        words = [
            "-m",
            "tf_transformer",
            "train",
            str(recipe),
            "--data",
            str(data),
            "--run",
            str(run),
        ]
        for setting in settings:
            words += ["--set", setting]
        with self.output.open("ab") as file:
            self.begin = file.tell()
            self.process = subprocess.Popen(
                [sys.executable, *words],
                cwd=ROOT,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONUNBUFFERED": "1", "TF_CPP_MIN_LOG_LEVEL": "2"},
            )

    def said(self) -> str:
        """What this process has printed, in one line."""
        with self.output.open("rb") as file:
            file.seek(self.begin)
            return " ".join(file.read().decode("utf-8", "replace").split())

    def trains(self) -> bool:
        """It has come further than the one before it."""
        return last_step(self.run) > self.first_step

    def writes(self) -> bool:
        folders = (self.run, self.run / "checkpoints", self.run / "checkpoints/state")
        names = (name for folder in folders if folder.is_dir() for name in os.listdir(folder))
        return any(name.endswith(".writing") or name.startswith("writing.") for name in names)

    def validates(self) -> bool:
        """The state of an epoch's end is there, its line of history is not."""
        found = re.search(r"(\d+) (batches|updates) an epoch;", self.said())
        step = last_step(self.run)
        if not found or not self.trains() or step % int(found[1]):
            return False
        history = self.run / "history.jsonl"
        return not history.exists() or f'"step": {step},' not in history.read_text()

    def ends(self) -> bool:
        return "The final weights are" in self.said()

    def wait_until(self, happens: "Callable[[Training], bool]") -> None:
        while self.process.poll() is None and not happens(self):
            time.sleep(0.001)

    def kill_after(self, seconds: float) -> bool:
        """Whether it was still there to be killed."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait() == -signal.SIGKILL
        return False

    def finish(self) -> None:
        if self.process.wait():
            sys.exit(f"{self.said()[-2000:]}\nThe training failed.")


# Moment: what is waited for, and the most seconds from then to the kill.
MOMENTS: dict[str, tuple[Callable[[Training], bool], float]] = {
    "starting": (lambda training: True, 15.0),
    "training": (Training.trains, 10.0),
    "writing": (lambda training: training.trains() and training.writes(), 0.02),
    "validating": (Training.validates, 1.0),
    "ending": (Training.ends, 1.0),
}


def last_step(run: Path) -> int:
    """Of the newest state, 0 without one."""
    files = (run / "checkpoints/state").glob("step-*.npz")
    return max((int(file.stem.removeprefix("step-")) for file in files), default=0)


def kill_and_resume(
    start: Callable[[], Training], moments: Iterator[str], kills: int, chance: random.Random
) -> list[str]:
    """Starts the training again and again; the moments at which it was killed."""
    killed: list[str] = []
    while len(killed) < kills:
        training, moment = start(), next(moments)
        happens, most = MOMENTS[moment]
        training.wait_until(happens)
        wait = chance.uniform(0, most)
        if training.kill_after(wait):
            killed.append(moment)
            step = last_step(training.run)
            print(f"kill {len(killed):2}: {moment}, {wait:.3f} s later; state of update {step}")
        else:
            print(f"     {moment}: was not reached")
    start().finish()
    return killed


def moments(kills: int, chance: random.Random) -> Iterator[str]:
    """All kinds, in random order; the ends last, as they can't come before."""
    ends = max(1, kills // 6)
    others = [name for name in MOMENTS if name != "ending"]
    plan = [others[n % len(others)] for n in range(kills - ends)]
    chance.shuffle(plan)
    yield from plan
    while True:
        yield "ending"


def differences(ours: Path, theirs: Path) -> list[str]:
    """What of two runs is not equal."""
    found = []
    for name in ("config.toml", "model.json", "corpus.json", "translator.json", "source.model"):
        if (ours / name).read_bytes() != (theirs / name).read_bytes():
            found.append(name)
    names = [
        sorted(str(file.relative_to(run)) for file in run.rglob("*.h5")) for run in (ours, theirs)
    ]
    names += [[f"step-{last_step(run)}.npz"] for run in (ours, theirs)]
    if names[0] != names[1] or names[2] != names[3]:
        return [*found, f"other files: {names}"]
    for name in [*names[0], f"checkpoints/state/{names[2][0]}"]:
        if not _equal(_arrays(ours / name), _arrays(theirs / name)):
            found.append(name)
    found += [name for name in _facts(ours) if _facts(ours)[name] != _facts(theirs)[name]]
    if _points(ours) != _points(theirs):
        found.append(f"TensorBoard: {_points(ours)} and {_points(theirs)}")
    found += [f"left over: {file}" for file in ours.rglob("*writing*")]
    return found


def _equal(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray]) -> bool:
    return ours.keys() == theirs.keys() and all(
        values.dtype == theirs[name].dtype and values.tobytes() == theirs[name].tobytes()
        for name, values in ours.items()
    )


def _arrays(file: Path) -> dict[str, np.ndarray]:
    if file.suffix == ".npz":
        with np.load(file) as arrays:
            return {name: arrays[name] for name in arrays.files if name != "facts.json"}
    found: dict[str, np.ndarray] = {}
    with h5py.File(file) as opened:
        opened.visititems(
            lambda name, item: (
                found.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None
            )
        )
    return found


def _facts(run: Path) -> dict[str, object]:
    with np.load(run / f"checkpoints/state/step-{last_step(run)}.npz") as archive:
        facts = json.loads(archive["facts.json"])
    facts["history.jsonl"] = [
        json.loads(line) for line in (run / "history.jsonl").read_text("utf-8").splitlines()
    ]
    for line in [facts, *facts["history"], *facts["history.jsonl"]]:
        for name in TIMES:
            line.pop(name, None)
    return facts


def _points(run: Path) -> dict[str, list[int]]:
    """The updates at which TensorBoard shows a point of the validation."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(run / "logs/validation"))
    events.Reload()
    return {name: [x.step for x in events.Scalars(name)] for name in events.Tags()["scalars"]}


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--folder", type=Path, help="to look at afterwards; default a temporary one"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        data = folder / "corpus"
        _write_corpus(data)
        Training("demo", data, folder / "unbroken", SETTINGS).finish()
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = used.ru_utime + used.ru_stime
        print(f"The unbroken run took {seconds:.0f} s of CPU. Seed {options.seed}.")
        chance = random.Random(options.seed)
        kill_and_resume(
            lambda: Training("demo", data, folder / "killed", SETTINGS),
            moments(options.kills, chance),
            options.kills,
            chance,
        )
        found = differences(folder / "killed", folder / "unbroken")
        if found:
            sys.exit("\n".join(["These are not equal:", *found]))
        print(f"{options.kills} kills, and all is equal to the bit.")


def _write_corpus(folder: Path) -> None:
    from training.demo import write_demo_corpus

    write_demo_corpus(folder)
    for side in ("src", "tgt"):
        file = folder / f"train.{side}"
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)[:PAIRS]
        file.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()

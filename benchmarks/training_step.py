"""One training step against PyTorch's nn.Transformer and a KerasHub stack, in turn, round by round.

    pip install -e '.[bench]'
    python benchmarks/training_step.py --size tiny --rounds 3
    python benchmarks/training_step.py --size base --rounds 2

The work is the same for all: 80 pairs of 22 to 25 tokens padded to 25, pre-norm, tied tables,
dropout 0.1 of embeddings and sublayer outputs, label smoothing 0.1, Adam; forward, backward and
update. Each measurement is a process
of its own (`--system NAME` runs one and prints a line of JSON); systems alternate A B C A B C; the
table gives medians, and ratios to ours within each round. oneDNN is on for TensorFlow.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from peers.train_sizes import ADAM, SIZES, SMOOTHING

ROWS, WIDTH = 80, 25
Step = Callable[[], None]


def batch(vocabulary: int):
    """Source, decoder input, labels, and the number of target tokens; 0 is the pad."""
    import numpy as np

    random = np.random.default_rng(0)
    source = random.integers(4, vocabulary, (ROWS, WIDTH)).astype("int32")
    target = random.integers(4, vocabulary, (ROWS, WIDTH + 1)).astype("int32")
    target[:, 0] = 2
    for row, (s, t) in enumerate(random.integers(22, WIDTH + 1, (ROWS, 2))):
        source[row, s:] = 0
        target[row, t + 1 :] = 0
    return source, target[:, :-1].copy(), target[:, 1:].copy(), int((target[:, 1:] != 0).sum())


def ours(size: dict, threads: int) -> Step:
    """This package: our layers, loss and Adam through Keras's compile and train function."""
    from tf_transformer import TransformerConfig, build_transformer
    from training import FusedAdam

    config = TransformerConfig(
        source_vocabulary_size=size["vocabulary"],
        target_vocabulary_size=size["vocabulary"],
        num_layers=size["layers"],
        hidden_dim=size["hidden"],
        num_heads=size["heads"],
        intermediate_dim=size["intermediate"],
        norm_first=True,
    )
    inputs = ("encoder_token_ids", "decoder_token_ids")
    return keras_step(build_transformer(config), FusedAdam, size, inputs)


def keras_hub(size: dict, threads: int) -> Step:
    """KerasHub's TransformerEncoder and TransformerDecoder layers, our loss, Keras's Adam."""
    import keras
    from peers.train_keras_hub import keras_hub_model

    return keras_step(keras_hub_model(size), keras.optimizers.Adam, size, ("source", "target"))


def keras_step(model, optimizer, size: dict, names: tuple[str, str]) -> Step:
    """A step through Keras's own train function, without callbacks."""
    import tensorflow as tf

    from training import SmoothedCrossEntropy

    adam = optimizer(1e-4, **ADAM)
    model.compile(adam, loss=SmoothedCrossEntropy(SMOOTHING), jit_compile=False)
    source, decoder, labels, _ = batch(size["vocabulary"])
    data = tf.data.Dataset.from_tensors(({names[0]: source, names[1]: decoder}, labels)).repeat()
    iterator = iter(data.prefetch(2))
    model.train_on_batch({names[0]: source, names[1]: decoder}, labels)
    train = model.make_train_function() or model.train_function
    return lambda: float(train(iterator)["loss"])


def torch(size: dict, threads: int) -> Step:
    """PyTorch's nn.Transformer, eager, with its fused Adam."""
    from peers.train_torch import torch_step

    step, arrays = torch_step(size, threads, WIDTH), batch(size["vocabulary"])[:3]
    return lambda: step(*arrays)


SYSTEMS = {"ours": ours, "keras_hub": keras_hub, "torch": torch}


def measure(system: str, size: str, threads: int, seconds: float) -> dict:
    """Medians over repeated steps of one system in this process."""
    step = SYSTEMS[system](SIZES[size], threads)
    step(), step()
    wall, cpu, start = [], [], time.perf_counter()
    while len(wall) < 3 or time.perf_counter() - start < seconds:
        w, c = time.perf_counter(), time.process_time()
        step()
        wall.append(time.perf_counter() - w)
        cpu.append(time.process_time() - c)
    tokens = batch(SIZES[size]["vocabulary"])[3]
    return {
        "system": system,
        "steps": len(wall),
        "wall_s": statistics.median(wall),
        "cpu_s": statistics.median(cpu),
        "tokens_per_s": tokens / statistics.median(wall),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def table(rounds: list[dict[str, dict]]) -> None:
    """Medians over the rounds, and of the ratios within each round."""
    from rich.console import Console
    from rich.table import Table

    columns = ("system", "tokens/s", "CPU s a step", "speed, ours = 1", "CPU, ours = 1", "peak MB")
    rows = Table(*columns)
    for system in rounds[0]:
        pairs = [(found[system], found["ours"]) for found in rounds]
        medians = [
            statistics.median(values)
            for values in zip(*(_figures(theirs, our) for theirs, our in pairs), strict=True)
        ]
        formats = ("{:,.0f}", "{:.3f}", "{:.2f}", "{:.2f}", "{:,.0f}")
        rows.add_row(system, *(f.format(x) for f, x in zip(formats, medians, strict=True)))
    Console().print(rows)


def _figures(theirs: dict, our: dict) -> tuple[float, ...]:
    speed, cpu = our["wall_s"] / theirs["wall_s"], theirs["cpu_s"] / our["cpu_s"]
    return theirs["tokens_per_s"], theirs["cpu_s"], speed, cpu, theirs["peak_mb"]


def main() -> None:
    """Runs one system, or all in turn."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=15, help="of each measurement")
    parser.add_argument("--system", choices=SYSTEMS, help="only this one, here, as JSON")
    chosen = parser.parse_args()
    if chosen.system:
        found = measure(chosen.system, chosen.size, chosen.threads, chosen.seconds)
        print(json.dumps(found))
        return
    environment = {**os.environ, "TF_ENABLE_ONEDNN_OPTS": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}
    for name in ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"):
        environment[name] = str(chosen.threads)
    environment["PYTHONPATH"] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    rounds: list[dict[str, dict]] = []
    for _ in range(chosen.rounds):
        rounds.append({})
        for system in SYSTEMS:
            command = [sys.executable, __file__, *sys.argv[1:], "--system", system]
            done = subprocess.run(command, capture_output=True, text=True, env=environment)
            if done.returncode:
                sys.exit(f"{system} failed:\n{done.stderr[-2000:]}")
            rounds[-1][system] = json.loads(done.stdout.splitlines()[-1])
            print(json.dumps(rounds[-1][system]), flush=True)
    table(rounds)


if __name__ == "__main__":
    main()

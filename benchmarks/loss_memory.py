"""Peak memory of the label-smoothed loss and its gradient, ours against a one-hot of (B, T, V).

    python benchmarks/loss_memory.py
    python benchmarks/loss_memory.py --rows 80 --length 25 --vocabulary 8000

Each is a process of its own that holds the logits (B, T, V) float32, then makes the loss and its
gradient in one `tf.function`. Told is how far the process's peak rises above where it was with the
logits, in units of such an array: the gradient that has to be given back is one of them. "one-hot"
is `keras.losses.CategoricalCrossentropy(label_smoothing=0.1)` of `one_hot(labels)`, pads weighed 0,
as without a loss of one's own; the losses of all must agree. Less than a minute.
"""

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SMOOTHING = 0.1
SYSTEMS = ("ours", "one-hot")


def peak_bytes() -> int:
    """Of this process, until now."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def loss_of(system: str, vocabulary: int):
    """A function of labels (B, T) and logits (B, T, V): the mean loss of a real token."""
    import keras
    import tensorflow as tf

    if system == "ours":
        from training import SmoothedCrossEntropy

        return SmoothedCrossEntropy(SMOOTHING)
    smoothed = keras.losses.CategoricalCrossentropy(
        from_logits=True, label_smoothing=SMOOTHING, reduction="sum"
    )

    def one_hot(labels, logits):
        live = tf.cast(labels > 0, tf.float32)
        total = smoothed(tf.one_hot(labels, vocabulary), logits, sample_weight=live)
        return total / tf.reduce_sum(live)

    return one_hot


def measure(system: str, rows: int, length: int, vocabulary: int) -> dict[str, float]:
    """The loss, how far memory rose above the logits, and the seconds of the second call."""
    import numpy as np
    import tensorflow as tf

    random = np.random.default_rng(0)
    labels = random.integers(4, vocabulary, (rows, length)).astype("int32")
    labels[:, -length // 4 :] = 0
    small = random.normal(size=(rows, length, 16)).astype("float32")
    table = tf.constant(random.normal(size=(16, vocabulary)).astype("float32"))
    logits = tf.matmul(small, table)
    loss = loss_of(system, vocabulary)

    @tf.function
    def gradient(labels, logits):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            value = loss(labels, logits)
        return value, tape.gradient(value, logits)

    # Traced before: what the tracing takes is not the loss's.
    gradient.get_concrete_function(labels, logits)
    before = peak_bytes()
    value, _ = gradient(labels, logits)
    value, rise = float(value), peak_bytes() - before
    began = time.perf_counter()
    float(gradient(labels, logits)[0])
    return {"loss": value, "rise": rise, "seconds": time.perf_counter() - began}


def main() -> None:
    """Measures both, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=80)
    parser.add_argument("--length", type=int, default=25)
    parser.add_argument("--vocabulary", type=int, default=32000)
    parser.add_argument("--system", choices=SYSTEMS, help="only this one, here, as JSON")
    chosen = parser.parse_args()
    if chosen.system:
        print(json.dumps(measure(chosen.system, chosen.rows, chosen.length, chosen.vocabulary)))
        return
    environment = {**os.environ, "TF_ENABLE_ONEDNN_OPTS": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}
    environment |= {"PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "-1"}
    array = 4 * chosen.rows * chosen.length * chosen.vocabulary
    print(f"logits ({chosen.rows}, {chosen.length}, {chosen.vocabulary}): {array / 1e6:,.0f} MB")
    losses = []
    for system in SYSTEMS:
        command = [sys.executable, __file__, *sys.argv[1:], "--system", system]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode:
            sys.exit(f"{system} failed:\n{done.stderr[-2000:]}")
        found = json.loads(done.stdout.splitlines()[-1])
        losses.append(found["loss"])
        print(
            f"{system:<8} peak + {found['rise'] / 1e6:>7,.0f} MB, {found['rise'] / array:.1f} "
            f"arrays of (B, T, V), {found['seconds']:.3f} s, loss {found['loss']:.4f}",
            flush=True,
        )
    if not math.isclose(*losses, rel_tol=1e-4):
        sys.exit("The losses differ, so the comparison says nothing.")


if __name__ == "__main__":
    main()

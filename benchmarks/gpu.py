"""Training on GPUs: target tokens a second and the share of the peak that the model's own
multiplications use (MFU), by precision, XLA, number of GPUs and Keras backend.

    python benchmarks/gpu.py                     # one H100, A100, ...: a few minutes
    python benchmarks/gpu.py --size big --batch-tokens 50000
    pip install 'jax[cuda12]' && python benchmarks/gpu.py --only jax
    python benchmarks/gpu.py --cpu               # tries the code, on a toy

Without a GPU nothing is measured, in one sentence. Every row is a process of its own: updates of
one batch of random ids, all places real, after some that warm up. "tensorflow" is what
`tf-transformer train` does, with its trainer, loss and Adam, "mirrored" on all GPUs with as many
tokens for each; "jax" is the same model and loss under KERAS_BACKEND=jax, in Keras's train step.
MFU counts what PaLM's appendix B counts (arXiv 2204.02311): each product of the forward pass once
and of the backward pass twice, attention in full, nothing that is computed again. The peak is the
device's dense one for the precision; float32 runs on tensor cores as TF32 where there are such.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from gpu_row import ROWS, measure

ROOT = Path(__file__).resolve().parents[1]
# Dense TFLOP/s of (bfloat16 or, before Ampere, float16; float32 as TF32 or, there, plain), from the
# makers' data sheets. The first name that is a part of the device's is taken.
PEAKS = {
    "B200": (2250, 1100),
    "H200": (989, 494),
    "H100 PCIe": (756, 378),
    "H100": (989, 494),
    "A100": (312, 156),
    "L40S": (362, 183),
    "L4": (121, 60),
    "A10G": (70, 35),
    "A10": (125, 62),
    "A6000": (155, 77),
    "RTX 4090": (165, 83),
    "RTX 3090": (71, 36),
    "V100": (125, 15.7),
    "T4": (65, 8.1),
}


def peak_of(device: str, precision: str) -> float | None:
    """FLOP/s of a device by its name; None where the table has it not."""
    for name, peaks in PEAKS.items():
        if name.lower() in device.lower():
            return 1e12 * peaks[precision == "float32"]
    return None


def gpus() -> list[str]:
    """Names of the GPUs that TensorFlow sees."""
    import tensorflow as tf

    found = tf.config.list_physical_devices("GPU")
    details = [tf.config.experimental.get_device_details(gpu) for gpu in found]
    return [one.get("device_name", "a GPU without a name") for one in details]


def rows_for(devices: list[str], only: str) -> dict[str, str]:
    """Rows to measure, each with the reason why not, or with none."""
    import importlib.util

    wanted = [only] if only in ROWS else [name for name in ROWS if only in name]
    reasons = dict.fromkeys(wanted, "")
    for name in wanted:
        if ROWS[name][3] and len(devices) == 1:
            reasons[name] = "there is one GPU"
        if ROWS[name][0] == "jax" and importlib.util.find_spec("jax") is None:
            reasons[name] = "jax is not installed"
    return reasons


def main() -> None:
    """Measures each row in a process of its own, and prints a table."""
    parser = argparse.ArgumentParser(description="Tokens/s and MFU of training on GPUs.")
    parser.add_argument("--size", choices=("tiny", "base", "big"), default="base")
    parser.add_argument("--batch-tokens", type=int, default=25000, help="of a side, a GPU")
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--updates", type=int, default=50, help="after as many that warm up")
    parser.add_argument("--only", default="", help="rows whose name has this, such as bfloat16")
    parser.add_argument("--peak-tflops", type=float, help="of a GPU that the table has not")
    parser.add_argument("--cpu", action="store_true", help="a toy on the CPU, to try the code")
    parser.add_argument("--row", choices=ROWS, help="only this one, here, as JSON")
    chosen = parser.parse_args()
    if chosen.cpu:
        chosen.size, chosen.batch_tokens, chosen.length, chosen.updates = "smoke", 64, 8, 2
    work = (chosen.size, chosen.batch_tokens, chosen.length, chosen.updates)
    if chosen.row:
        print(json.dumps(measure(chosen.row, *work)))
        return
    devices = ["CPU"] if chosen.cpu else gpus()
    if not devices:
        print("SKIPPED: TensorFlow sees no GPU on this machine, so there is nothing to measure.")
        return
    print(f"{len(devices)} x {devices[0]}; {' '.join(map(str, work))}")
    for name, reason in rows_for(devices, chosen.only).items():
        print(f"{name:<26} {reason or line(name, devices[0], chosen)}", flush=True)


def line(name: str, device: str, chosen: argparse.Namespace) -> str:
    """A row of the table, measured in a process of its own."""
    environment = {**os.environ, "KERAS_BACKEND": ROWS[name][0], "TF_CPP_MIN_LOG_LEVEL": "2"}
    environment |= {"PYTHONPATH": str(ROOT), "TF_ENABLE_ONEDNN_OPTS": "1"}
    environment |= {"CUDA_VISIBLE_DEVICES": "-1"} if chosen.cpu else {}
    command = [sys.executable, __file__, *sys.argv[1:], "--row", name]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        return f"failed: {(done.stderr.strip() or 'no word').splitlines()[-1]}"
    found = json.loads(done.stdout.splitlines()[-1])
    given = chosen.peak_tflops and 1e12 * chosen.peak_tflops
    peak = given or peak_of(device, ROWS[name][1])
    share = f"MFU {found['flops_per_device'] / peak:.1%}" if peak else "MFU unknown: --peak-tflops"
    return (
        f"{found['tokens_per_s']:>12,.0f} target tokens/s on {found['devices']}, "
        f"{found['flops_per_device'] / 1e12:,.1f} TFLOP/s each, {share}"
    )


if __name__ == "__main__":
    main()

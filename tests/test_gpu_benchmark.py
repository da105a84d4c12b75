"""benchmarks/gpu.py, which CI has no GPU for: its code runs, and what it divides by is right."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.gpu_row import flops_of_update
from tf_transformer import TransformerConfig, build_transformer

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "gpu.py"


def run(*arguments: str) -> str:
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}
    command = [sys.executable, str(SCRIPT), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("gated", [False, True])
def test_flops_are_those_of_the_models_own_kernels(gated):
    """Twice each number of a kernel for each token that meets it, and attention's two products."""
    config = TransformerConfig(
        source_vocabulary_size=30,
        target_vocabulary_size=30,
        num_layers=3,
        hidden_dim=12,
        num_heads=3,
        intermediate_dim=20,
        gated=gated,
    )
    rows, length = 5, 7
    kernels = [w for w in build_transformer(config).weights if w.path.endswith("kernel")]
    per_token = sum(2 * int(w.value.shape.num_elements()) for w in kernels) + 2 * 12 * 30  # logits
    attention = 3 * config.num_layers * 2 * (2 * length * 12)  # self, self, cross; QK and AV
    expected = 3 * rows * length * (per_token + attention)
    assert flops_of_update(config, rows, length) == expected


def test_without_a_gpu_it_says_so_and_measures_nothing():
    said = run()
    assert said.startswith("SKIPPED: ") and len(said.splitlines()) == 1


def test_a_row_runs_on_the_cpu():
    said = run("--cpu", "--only", "bfloat16, XLA, mirrored", "--peak-tflops", "1")
    assert "there is one GPU" in said
    said = run("--cpu", "--only", "float32", "--peak-tflops", "1")
    speed = re.search(r"float32 +([\d,]+) target tokens/s on 1, .* MFU \d+\.\d%", said)
    assert speed and int(speed[1].replace(",", "")) > 0

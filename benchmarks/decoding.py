"""Decoding against CTranslate2 on the same weights, in turn, round by round.

    pip install -e '.[bench]'
    python benchmarks/decoding.py --size tiny --rounds 2 --threads 2
    python benchmarks/decoding.py --size base --rounds 2 --threads 1

Sources of 25 tokens, outputs of exactly 25: END's bias keeps it out, for all alike. Random weights,
pre-norm, one tied table. Each measurement is a process of its own (`--system NAME --beams K --batch
B` runs one and prints a line of JSON); systems alternate A B C A B C; the table gives medians, and
ratios to ours within each round. oneDNN is on for TensorFlow.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

SIZES = {
    "tiny": dict(num_layers=4, hidden_dim=128, num_heads=4, intermediate_dim=256),
    "base": dict(num_layers=6, hidden_dim=512, num_heads=8, intermediate_dim=2048),
}
VOCABULARY = {"tiny": 8000, "base": 32000}
LENGTH = 25
SYSTEMS = ("ours", "ctranslate2", "ctranslate2-int8")
CELLS = [(1, 1), (4, 1), (1, 32), (4, 32)]  # beams, batch


class Vocabulary:
    """As much of a tokenizer as the exporter asks for."""

    suffix, content = ".txt", b""

    def __init__(self, size: int) -> None:
        self.vocabulary_size = size

    def vocabulary(self) -> list[str]:
        """<pad>, <unk>, <s>, </s>, and a word for each other id."""
        return ["<pad>", "<unk>", "<s>", "</s>", *(f"w{i}" for i in range(4, self.vocabulary_size))]

    def save(self, path: Path) -> None:
        """Nothing is read from it."""
        Path(path).write_bytes(self.content)


def translator(size: str, beams: int):
    """Random weights, the same in every process; END never comes."""
    import keras
    import numpy as np

    from tf_transformer import DecodingOptions, TransformerConfig, Translator, build_transformer

    keras.utils.set_random_seed(1)
    config = TransformerConfig(
        source_vocabulary_size=VOCABULARY[size],
        target_vocabulary_size=VOCABULARY[size],
        norm_first=True,
        output_bias=True,
        **SIZES[size],
    )
    model = build_transformer(config)
    bias = next(weight for weight in model.weights if weight.path.endswith("embedding/bias"))
    bias.assign(np.where(np.arange(bias.shape[0]) == 3, -1e9, 0.0))
    words = Vocabulary(VOCABULARY[size])
    return Translator(model, words, words, DecodingOptions(num_beams=beams, alpha=0.0))  # type: ignore[arg-type]


def sources(size: str, batch: int):
    """Ids (B, 25), the last of each row END."""
    import numpy as np

    ids = np.random.default_rng(0).integers(4, VOCABULARY[size], (batch, LENGTH)).astype("int32")
    ids[:, -1] = 3
    return ids


def ours(size: str, beams: int, batch: int, threads: int) -> Callable[[], object]:
    """The search that evaluation, SavedModel and LiteRT share, in a TensorFlow graph."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    model = translator(size, beams)
    ids, limits = tf.constant(sources(size, batch)), tf.fill([batch], LENGTH)
    generate = tf.function(
        lambda ids, limits: model.generate(ids, limits).token_ids[:, 0],
        [tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None], tf.int32)],
        autograph=False,
    )
    return lambda: generate(ids, limits).numpy()


def ctranslate2(
    size: str, beams: int, batch: int, threads: int, kind: str = "float32"
) -> Callable[[], object]:
    """Our exporter's model in CTranslate2's engine."""
    import ctranslate2 as engine

    from export import export_ctranslate2

    folder = Path(tempfile.mkdtemp(prefix="decoding_")) / "model"
    export_ctranslate2(translator(size, beams), folder, None if kind == "float32" else kind)
    model = engine.Translator(
        str(folder), compute_type=kind, intra_threads=threads, inter_threads=1
    )
    words = Vocabulary(VOCABULARY[size]).vocabulary()
    rows = [[words[i] for i in row[:-1]] for row in sources(size, batch)]  # it adds END itself
    settings = dict(beam_size=beams, length_penalty=0.0, max_decoding_length=LENGTH)
    return lambda: [found.hypotheses[0] for found in model.translate_batch(rows, **settings)]


def measure(system: str, size: str, beams: int, batch: int, threads: int, seconds: float) -> dict:
    """Target tokens a second, CPU seconds a call and peak memory of one system."""
    if system == "ours":
        run = ours(size, beams, batch, threads)
    else:
        kind = "int8" if system.endswith("int8") else "float32"
        run = ctranslate2(size, beams, batch, threads, kind)
    for _ in range(3):
        found = run()
    lengths = {len(row) for row in found}  # type: ignore[attr-defined]
    if lengths != {LENGTH}:
        raise SystemExit(f"{system} gave outputs of {lengths} tokens, not of {LENGTH}")
    calls, begin, cpu = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - begin < seconds:
        run()
        calls += 1
    wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
    tokens = calls * batch * LENGTH
    return {
        "tokens_per_s": tokens / wall,
        "tokens_per_cpu_s": tokens / cpu,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def child(arguments: argparse.Namespace, system: str, beams: int, batch: int) -> dict:
    """`measure` in a process of its own."""
    command = [sys.executable, __file__, "--system", system, "--size", arguments.size]
    command += ["--beams", str(beams), "--batch", str(batch)]
    command += ["--threads", str(arguments.threads), "--seconds", str(arguments.seconds)]
    environment = {**os.environ, "TF_ENABLE_ONEDNN_OPTS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(
        command, env=environment, cwd=root, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{system}: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


def table(arguments: argparse.Namespace) -> None:
    """Measures in turn and prints a row for each system and cell."""
    print(f"{arguments.size}, {arguments.threads} thread(s), ratios to CTranslate2 float32")
    print("| beams, batch | system | tokens/s | of CT2 | tokens/CPU s | of CT2 | peak MB |")
    print("|---|---|--:|--:|--:|--:|--:|")
    for beams, batch in CELLS:
        rounds = [
            {system: child(arguments, system, beams, batch) for system in SYSTEMS}
            for _ in range(arguments.rounds)
        ]
        for system in SYSTEMS:
            cells = [f"{beams}, {batch}", system]
            for key in ("tokens_per_s", "tokens_per_cpu_s"):
                values = [one[system][key] for one in rounds]
                ratios = [one[system][key] / one["ctranslate2"][key] for one in rounds]
                cells += [f"{statistics.median(values):,.0f}", f"{statistics.median(ratios):.2f}"]
            cells.append(f"{max(one[system]['peak_mb'] for one in rounds):,.0f}")
            print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    """See the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement")
    parser.add_argument("--system", choices=SYSTEMS, help="one only; a line of JSON")
    parser.add_argument("--beams", type=int, default=4)
    parser.add_argument("--batch", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.system is None:
        table(arguments)
        return
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    sizes = arguments.size, arguments.beams, arguments.batch, arguments.threads
    print(json.dumps(measure(arguments.system, *sizes, arguments.seconds)))


if __name__ == "__main__":
    main()

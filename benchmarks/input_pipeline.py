"""The input pipeline alone, in target tokens a second, against the training it has to feed.

    python benchmarks/input_pipeline.py --data DIR

DIR holds train.src and train.tgt (plain or .gz), or train.tsv. Each way of making batches runs in
a process of its own, through the same `Batches.dataset` that `tf-transformer train` reads, for
whole epochs from the second on (the first waits for the process to warm up). "training" is
`model.fit` of the preset tiny on the plain batches. Tokens are real target tokens; "prepared" is
what is done once, before the first batch.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from typing import Any

VOCABULARY, BATCH_TOKENS = 8000, 4096
PLAIN: dict[str, Any] = {"model_type": "unigram", "batches": {}}
BOTH = ("source", "target")
WAYS: dict[str, dict[str, Any]] = {
    "plain": PLAIN,
    "fixed shapes": {**PLAIN, "batches": {"static_shapes": True}},
    "mixed, weight 0.5 of half": {**PLAIN, "mixed": True},
    "unigram sampling, word dropout": {
        **PLAIN,
        "batches": {"sampling": BOTH, "word_dropout": 0.1},
    },
    "BPE dropout, word dropout": {
        "model_type": "bpe",
        "batches": {"sampling": BOTH, "word_dropout": 0.1},
    },
}


def make(data: str, way: dict[str, Any]):
    """The batches of a way, and the seconds that they took to prepare, without the tokenizer."""
    from tf_transformer.tokenizers import SentencePieceTokenizer
    from training import Batches, Corpus, mix, read_split

    corpus = read_split(data)
    texts = [*corpus.source, *corpus.target]
    tokenizer = SentencePieceTokenizer.train(texts, VOCABULARY, model_type=way["model_type"])
    if way.get("mixed"):
        half = len(corpus) // 2
        parts = [
            Corpus(corpus.source[some], corpus.target[some])
            for some in (slice(half), slice(half, None))
        ]
        corpus = mix([(parts[0], 1.0), (parts[1], 0.5)])
    began = time.perf_counter()
    batches = Batches(corpus, tokenizer, tokenizer, BATCH_TOKENS, **way["batches"])
    return batches, tokenizer.vocabulary_size, time.perf_counter() - began


def pipeline(data: str, name: str, epochs: int) -> dict[str, float]:
    """Tokens a second of a way, over whole epochs, and those of a second of CPU."""
    batches, _, prepared = make(data, WAYS[name])
    dataset = iter(batches.dataset(0).as_numpy_iterator())
    for _ in range(len(batches)):
        next(dataset)
    tokens, began, cpu = 0, time.perf_counter(), time.process_time()
    for _ in range(epochs * len(batches)):
        tokens += int((next(dataset)[1] > 0).sum())
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    return {"speed": tokens / seconds, "per_cpu": tokens / cpu, "prepared": prepared}


def training(data: str, seconds: float) -> dict[str, float]:
    """The same of `model.fit` on the plain batches."""
    import keras

    from tf_transformer import TransformerConfig, build_transformer
    from training import FusedAdam, SmoothedCrossEntropy, TokenAccuracy, TokenNLL

    batches, size, prepared = make(data, PLAIN)
    sizes = {"source_vocabulary_size": size, "target_vocabulary_size": size}
    model = build_transformer(TransformerConfig.from_preset("tiny", **sizes))
    model.compile(FusedAdam(1e-3), SmoothedCrossEntropy(0.1), metrics=[TokenNLL(), TokenAccuracy()])
    counts, warm = batches.token_counts(0), 20

    class Clock(keras.callbacks.Callback):
        tokens, began, cpu = 0, 0.0, 0.0

        def on_train_batch_end(self, batch, logs=None):
            if batch == warm:
                self.began, self.cpu = time.perf_counter(), time.process_time()
            elif batch > warm:
                self.tokens += counts[batch]
                self.model.stop_training = time.perf_counter() - self.began > seconds

    clock = Clock()
    model.fit(batches.dataset(0), steps_per_epoch=len(batches), callbacks=[clock], verbose=0)
    took, cpu = time.perf_counter() - clock.began, time.process_time() - clock.cpu
    return {"speed": clock.tokens / took, "per_cpu": clock.tokens / cpu, "prepared": prepared}


def main() -> None:
    """Runs all, or one in this process with --only."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="folder with the train split")
    parser.add_argument("--epochs", type=int, default=2, help="of each way (default 2)")
    parser.add_argument("--seconds", type=float, default=30, help="of training (default 30)")
    parser.add_argument("--only", help="one way, or training; prints a line of JSON")
    options = parser.parse_args()
    if options.only == "training":
        print(json.dumps(training(options.data, options.seconds)))
    elif options.only:
        print(json.dumps(pipeline(options.data, options.only, options.epochs)))
    else:
        report(options)


def report(options: argparse.Namespace) -> None:
    """Each in a process of its own; a table in Markdown."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    found = {}
    for name in ("training", *WAYS):
        ran = subprocess.run(
            [sys.executable, __file__, *sys.argv[1:], "--only", name],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": root, "TF_CPP_MIN_LOG_LEVEL": "2"},
        )
        found[name] = json.loads(ran.stdout.splitlines()[-1])
    base = found["training"]
    print("| | tokens/s | training = 1 | tokens a CPU second | training = 1 | prepared, s |")
    print("|---|--:|--:|--:|--:|--:|")
    for name, row in found.items():
        print(
            f"| {name} | {row['speed']:,.0f} | {row['speed'] / base['speed']:.1f} "
            f"| {row['per_cpu']:,.0f} | {row['per_cpu'] / base['per_cpu']:.1f} "
            f"| {row['prepared']:.1f} |"
        )


if __name__ == "__main__":
    main()

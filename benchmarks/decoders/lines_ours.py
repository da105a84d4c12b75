"""A file of texts through a trained run: the throughput engine, batches of like length."""

import argparse
from collections.abc import Callable
from pathlib import Path

import tensorflow as tf

from tf_transformer import Translator
from tf_transformer.bulk import Batching


def load(run: str, beams: int) -> Translator:
    """With a search that CTranslate2 has too: hypotheses are compared by log P."""
    search = "greedy" if beams == 1 else "beam"
    return Translator.load(run, search=search, num_beams=beams, alpha=0.0)


def prepare(
    run: str, folder: str, texts: list[str], beams: int, threads: int, batch_tokens: int
) -> Callable[[], tuple[list[str], int]]:
    """Gives the translations and their tokens, END counted; as many workers as threads."""
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    translator = load(run, beams)
    batching = Batching(batch_tokens=batch_tokens, batch_rows=batch_tokens, workers=threads)

    def translate() -> tuple[list[str], int]:
        found = [row["text"] for row in translator.stream(texts, batching=batching)]
        return found, sum(len(translator.tokenizers.target.pieces(text)) + 1 for text in found)

    return translate


def export(run: str, folder: Path) -> None:
    """The run for CTranslate2, `folder`/float32 and `folder`/int8."""
    from export import export_ctranslate2

    translator = load(run, 4)
    for kind in ("float32", "int8"):
        export_ctranslate2(translator, folder / kind, None if kind == "float32" else kind)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Writes a run for CTranslate2.")
    parser.add_argument("run")
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    export(given.run, given.folder)

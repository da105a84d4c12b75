"""The search that evaluation, SavedModel and LiteRT share, in a TensorFlow graph."""

import argparse
from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from decoders.task import END, SIZES, Task
from tf_transformer import DecodingOptions, TransformerConfig, Translator, build_transformer


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


def translator(size: str, beams: int = 1) -> Translator:
    """Random weights, the same in every process; pre-norm, one tied table; END never comes."""
    keras.utils.set_random_seed(1)
    sizes = SIZES[size]
    config = TransformerConfig(
        source_vocabulary_size=sizes["vocabulary"],
        target_vocabulary_size=sizes["vocabulary"],
        num_layers=sizes["layers"],
        hidden_dim=sizes["hidden"],
        num_heads=sizes["heads"],
        intermediate_dim=sizes["intermediate"],
        norm_first=True,
        output_bias=True,
    )
    model = build_transformer(config)
    bias = model.get_layer("embedding").bias
    bias.assign(np.where(np.arange(bias.shape[0]) == END, -1e9, 0.0))
    words = Vocabulary(sizes["vocabulary"])
    options = DecodingOptions(num_beams=beams, alpha=0.0)
    return Translator(model, words, words, options)  # type: ignore[arg-type]


def prepare(task: Task) -> Callable[[], list]:
    """See the folder."""
    tf.config.threading.set_intra_op_parallelism_threads(task.threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    model = translator(task.size, task.beams)
    ids, limits = tf.constant(task.sources()), tf.fill([task.batch], task.length)
    generate = tf.function(
        lambda ids, limits: model.generate(ids, limits, wanted=1).token_ids[:, 0],
        [tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None], tf.int32)],
        autograph=False,
    )
    return lambda: generate(ids, limits).numpy()


def export(size: str, folder: Path) -> None:
    """The same weights for CTranslate2, `folder`/float32 and `folder`/int8."""
    from export import export_ctranslate2

    for kind in ("float32", "int8"):
        export_ctranslate2(translator(size), folder / kind, None if kind == "float32" else kind)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Writes the weights for CTranslate2.")
    parser.add_argument("size", choices=SIZES)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    export(given.size, given.folder)

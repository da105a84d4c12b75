"""OpenNMT-tf 2.32, random weights of the same sizes, pre-norm, one tied table.

The last published version needs TensorFlow 2.13 and so Python 3.10 at most:

    python3.10 -m venv opennmt
    opennmt/bin/pip install "OpenNMT-tf[tensorflow]==2.32.0" "numpy<2" "setuptools<81"
"""

import tempfile
from collections.abc import Callable
from pathlib import Path

import opennmt
import tensorflow as tf

from decoders.task import Task


def prepare(task: Task) -> Callable[[], list]:
    """See the folder."""
    tf.config.threading.set_intra_op_parallelism_threads(task.threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.random.set_seed(1)
    sizes = task.model()
    words = Path(tempfile.mkdtemp(prefix="opennmt_")) / "words.txt"
    names = ["<blank>", "<s>", "</s>", *(f"w{i}" for i in range(3, sizes["vocabulary"]))]
    words.write_text("\n".join(names) + "\n")
    model = opennmt.models.Transformer(
        opennmt.inputters.WordEmbedder(sizes["hidden"]),
        opennmt.inputters.WordEmbedder(sizes["hidden"]),
        num_layers=sizes["layers"],
        num_units=sizes["hidden"],
        num_heads=sizes["heads"],
        ffn_inner_dim=sizes["intermediate"],
        share_embeddings=opennmt.models.EmbeddingsSharingLevel.ALL,
    )
    model.initialize(
        {"source_vocabulary": str(words), "target_vocabulary": str(words)},
        params={
            "beam_width": task.beams,
            "maximum_decoding_length": task.length,
            "minimum_decoding_length": task.length,
        },
    )
    model.create_variables()

    @tf.function(
        input_signature=[tf.TensorSpec([None, None], tf.int64), tf.TensorSpec([None], tf.int32)]
    )
    def decode(ids: tf.Tensor, lengths: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        found = model({"ids": ids, "length": lengths})[1]
        return found["tokens"][:, 0], found["length"][:, 0]

    ids = tf.constant(task.sources(), tf.int64)
    lengths = tf.fill([task.batch], ids.shape[1])

    def run() -> list:
        tokens, counts = decode(ids, lengths)
        return [row[:count] for row, count in zip(tokens.numpy(), counts.numpy(), strict=True)]

    return run

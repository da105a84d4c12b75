"""KerasHub's encoder-decoder with cache and samplers, BART, random weights of the same sizes.

It is KerasHub's one model of this kind: its `TransformerDecoder` layers, learned positions,
post-norm. It stops at no token and at the length of its buffer.
"""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"

from collections.abc import Callable  # noqa: E402

import keras  # noqa: E402
import keras_hub  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from decoders.task import SOURCE_LENGTH, START, Task  # noqa: E402


def prepare(task: Task, compiled: str = "") -> Callable[[], list]:
    """See the folder; `compiled`, not empty, is by XLA."""
    tf.config.threading.set_intra_op_parallelism_threads(task.threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    keras.utils.set_random_seed(1)
    sizes = task.model()
    backbone = keras_hub.models.BartBackbone(
        vocabulary_size=sizes["vocabulary"],
        num_layers=sizes["layers"],
        num_heads=sizes["heads"],
        hidden_dim=sizes["hidden"],
        intermediate_dim=sizes["intermediate"],
        max_sequence_length=max(SOURCE_LENGTH, task.length + 1),
    )
    model = keras_hub.models.BartSeq2SeqLM(backbone=backbone, preprocessor=None)
    beams = keras_hub.samplers.BeamSampler(num_beams=task.beams)
    sampler = keras_hub.samplers.GreedySampler() if task.beams == 1 else beams
    model.compile(sampler=sampler, jit_compile=bool(compiled))
    ids = task.sources()
    begun = np.zeros((task.batch, task.length + 1), "int32")
    begun[:, 0] = START
    inputs = {
        "encoder_token_ids": ids,
        "encoder_padding_mask": np.ones_like(ids, bool),
        "decoder_token_ids": begun,
        "decoder_padding_mask": begun == START,
    }

    def run() -> list:
        return model.generate(inputs, stop_token_ids=None)["decoder_token_ids"][:, 1:]

    return run

"""Run by test_distribution.py in a process of its own: a CPU is divided before TensorFlow is used.

python on_two_devices.py FOLDER trains by FOLDER/tiny.toml into FOLDER/mirrored and FOLDER/half, and
writes FOLDER/report.json with what the table of case 75 does on two replicas.
"""

import json
import sys
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from rich.console import Console

from training.devices.distribution import Distribution
from training.objective.losses import SmoothedCrossEntropy
from training.recipe import load_recipe
from training.settings.sections import TrainingSettings
from training.train import train
from training.trainer import Trainer

MIRRORED = ["training.strategy=mirrored", "training.replicas=2"]
IDS = np.array([[1, 2, 3], [4, 0, 0]], "int32")
LABELS = np.array([[1, 1, 3], [2, 0, 0]], "int32")


def table(kind):
    """Rows of a 5 x 5 table are the logits; the source is not looked at."""
    source = keras.Input((None,), dtype="int32", name="encoder_token_ids")
    target = keras.Input((None,), dtype="int32", name="decoder_token_ids")
    rows = keras.layers.Embedding(5, 5, embeddings_initializer=lambda shape, dtype: 2 * np.eye(5))
    model = kind({"encoder_token_ids": source, "decoder_token_ids": target}, rows(target))
    model.compile(keras.optimizers.SGD(1.0), SmoothedCrossEntropy(0.0), jit_compile=False)
    return model


def dataset(rows, batch):
    ids, labels = IDS[rows], LABELS[rows]
    inputs = {"encoder_token_ids": ids, "decoder_token_ids": ids}
    return tf.data.Dataset.from_tensor_slices((inputs, labels)).batch(batch)


def one_update(kind):
    model = table(kind)
    before = np.array(model.get_weights()[0])
    loss = model.fit(dataset([0, 1], 2), verbose=0).history["loss"][0]
    return {"loss": loss, "change": (model.get_weights()[0] - before).tolist()}


def five_sentences():
    """Validation in batches of 2, 2 and 1: the last has a replica without a row."""
    data = dataset([0, 1, 0, 1, 1], 2)
    history = table(as_trainer).fit(data, epochs=1, validation_data=data, verbose=0).history
    model = table(as_trainer)
    return {"evaluate": model.evaluate(data, return_dict=True, verbose=0), "fit": history}


def as_trainer(inputs, outputs):
    return Trainer(keras.Model(inputs, outputs))


def main(folder: Path) -> None:
    settings = TrainingSettings(strategy="mirrored", replicas=2)
    with Distribution.open(settings).scope():
        report = {
            "trainer": one_update(as_trainer),
            "keras": one_update(keras.Model),
            "five": five_sentences(),
        }
    (folder / "report.json").write_text(json.dumps(report))
    more = json.loads((folder / "settings.json").read_text())
    quiet = Console(quiet=True)
    for run, settings in more.items():
        recipe = load_recipe(folder / "tiny.toml", [*MIRRORED, *settings])
        train(recipe, folder / "data", folder / run, quiet)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

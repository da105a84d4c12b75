"""Run by test_fresh_process.py in a process that knows nothing: loads what lies in a directory.

python load_in_fresh_process.py DIRECTORY writes DIRECTORY/report.json. Only tf_transformer is
imported for its classes; no custom_objects, safe mode as Keras has it.
"""

import json
import sys
from pathlib import Path

import keras
import numpy as np

import tf_transformer


def inputs_of(directory: Path) -> dict[str, np.ndarray]:
    with np.load(directory / "inputs.npz") as arrays:
        return dict(arrays)


def load_keras(path: Path) -> dict:
    """A .keras file: its answer, its variables, and one more step of training where compiled."""
    inputs, expected = inputs_of(path.parent), np.load(path.parent / "answer.npy")
    model = keras.models.load_model(path)
    answer = np.asarray(model(inputs))
    report = {
        "difference": float(np.abs(answer.astype("float64") - expected).max()),
        "paths": sorted(weight.path for weight in model.weights),
        "parameters": model.count_params(),
    }
    if getattr(model, "optimizer", None) is not None:
        optimizer = model.optimizer
        rate = getattr(optimizer, "inner_optimizer", optimizer)._learning_rate
        report["iterations"] = int(optimizer.iterations.value)
        report["rates"] = [float(rate(step)) for step in (0, 3, 4_000)]
        labels = np.load(path.parent / "labels.npy")
        model.train_on_batch(inputs, labels)
        variables = [*model.weights, *optimizer.variables]
        np.savez(path.parent / "after_training.npz", *(np.asarray(v) for v in variables))
    return report


def load_weights(path: Path) -> dict:
    """A model.json and its model.weights.h5, loaded before the model's first call."""
    config = tf_transformer.TransformerConfig.from_json(path.parent / "model.json")
    model = tf_transformer.build_transformer(config)
    model.load_weights(path)
    expected = np.load(path.parent / "answer.npy")
    answer = np.asarray(model(inputs_of(path.parent)))
    return {"difference": float(np.abs(answer.astype("float64") - expected).max())}


def main(directory: Path) -> None:
    report = {}
    for folder in sorted(path for path in directory.iterdir() if path.is_dir()):
        report[folder.name] = load_keras(folder / "model.keras")
        if (folder / "model.weights.h5").exists():
            report[folder.name]["weights"] = load_weights(folder / "model.weights.h5")
    (directory / "report.json").write_text(json.dumps(report))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Run by test_backends.py: three steps of training on the backend that KERAS_BACKEND names.

python three_steps.py POSITION prints the losses as JSON.
"""

import json
import sys

import keras
import numpy as np

from tf_transformer import TransformerConfig, build_transformer
from training.objective.losses import SmoothedCrossEntropy
from training.optimizers.schedule import TransformerSchedule

IDS = {
    "encoder_token_ids": np.array([[4, 9, 7, 11, 3, 0], [5, 3, 0, 0, 0, 0]], "int32"),
    "decoder_token_ids": np.array([[2, 14, 6, 8], [2, 9, 0, 0]], "int32"),
}
LABELS = np.array([[14, 6, 8, 3], [9, 3, 0, 0]], "int32")


def losses(position: str) -> list[float]:
    """Of three steps from the same random weights."""
    config = TransformerConfig(
        source_vocabulary_size=23,
        target_vocabulary_size=23,
        num_layers=2,
        hidden_dim=12,
        num_heads=3,
        intermediate_dim=20,
        dropout=0.0,
        position=position,
    )
    model = build_transformer(config)
    random = np.random.default_rng(0)
    model.set_weights([random.normal(0, 0.3, weight.shape) for weight in model.weights])
    optimizer = keras.optimizers.Adam(TransformerSchedule(12, 10), beta_2=0.98, epsilon=1e-9)
    model.compile(optimizer, SmoothedCrossEntropy(0.1))
    history = model.fit(IDS, LABELS, epochs=3, verbose=0)
    return history.history["loss"]


if __name__ == "__main__":
    print(json.dumps({"backend": keras.backend.backend(), "losses": losses(sys.argv[1])}))

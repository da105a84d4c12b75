"""Where the decoder looks in a fixed sentence, as a picture for TensorBoard."""

from typing import Any

import numpy as np
import tensorflow as tf

from tf_transformer.config import END_ID, START_ID
from tf_transformer.model import build_attention_model
from tf_transformer.translator import Translator

from ..optimizers.ema import averaged_weights
from ..reporting.plots import draw_attention
from .tensorboard import TensorBoardLogs

_MOST = 40  # tokens of a side: more could not be read


class AttentionImages:
    """Draws the cross-attention of the first sample of each line: a row a layer, a column a head.

    Args:
        translator: over the model in training.
        logs: get the pictures.
    """

    def __init__(self, translator: Translator, logs: TensorBoardLogs) -> None:
        self.translator = translator
        self.logs = logs
        self._attention = build_attention_model(translator.model)

    def tell(self, line: dict[str, Any]) -> None:
        """Draws the translation of a line of history; nothing where it has none."""
        for sample in line.get("samples", [])[:1]:
            weights, rows, columns = self.weights(sample["source"], sample["translation"])
            picture = draw_attention(weights, rows, columns)
            self.logs.image("cross_attention", line["step"], picture)

    def weights(self, source: str, target: str) -> tuple[np.ndarray, list[str], list[str]]:
        """Cross-attention (L, N, T, S) float32 of a pair, and its T and S pieces."""
        tokenizers = self.translator.tokenizers
        ids, pieces = [], []
        for tokenizer, text in ((tokenizers.source, source), (tokenizers.target, target)):
            ids.append([*tokenizer.encode([text])[0][:_MOST], END_ID])
            pieces.append([*tokenizer.pieces(text)[:_MOST], "END"])
        inputs = {
            "encoder_token_ids": tf.constant([ids[0]]),
            "decoder_token_ids": tf.constant([[START_ID, *ids[1][:-1]]]),
        }
        with averaged_weights(self.translator.model):
            cross = self._attention(inputs, training=False)["cross"]
        return np.asarray(cross[0]), pieces[1], pieces[0]

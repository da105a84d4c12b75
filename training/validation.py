"""What the validation split says of a model in training: loss, BLEU, sample translations."""

from typing import Any

import keras

from tf_transformer.translator import Translator

from .corpus import Corpus
from .ema import averaged_weights
from .evaluate import corpus_bleu
from .feed import Feed
from .settings import EvaluationSettings


class Validation:
    """Called, it measures the model, with its averaged weights where there are; draws no random
    number.

    Args:
        translator: over the compiled model in training, with the recipe's search.
        batches: the validation split.
        corpus: its sentences.
        settings: [evaluation].
    """

    def __init__(
        self, translator: Translator, batches: Feed, corpus: Corpus, settings: EvaluationSettings
    ) -> None:
        self.model: keras.Model = translator.model
        self.batches = batches
        self.corpus = corpus
        self.settings = settings
        search = "greedy" if settings.bleu == "none" else settings.bleu
        self.translator = translator.with_options(search=search)

    def __call__(self) -> dict[str, Any]:
        """`val_loss`, `val_nll`, ...; with BLEU `val_bleu` and `bleu_signature`; `samples`.

        A sample has "source", "reference" and "translation".
        """
        number = len(self.corpus) if self.settings.bleu != "none" else self.settings.samples
        source, reference = self.corpus.source[:number], self.corpus.target[:number]
        with averaged_weights(self.model):
            dataset = self.batches.dataset(None)
            measured = self.model.evaluate(dataset, return_dict=True, verbose=0)
            translations = self.translator(source)
        found: dict[str, Any] = {f"val_{name}": float(x) for name, x in measured.items()}
        if self.settings.bleu != "none":
            bleu, signature = corpus_bleu(translations, reference)
            found.update(val_bleu=bleu.score, bleu_signature=signature)
        rows = zip(source, reference, translations, strict=True)
        found["samples"] = [
            {"source": source, "reference": reference, "translation": translation}
            for source, reference, translation in list(rows)[: self.settings.samples]
        ]
        return found

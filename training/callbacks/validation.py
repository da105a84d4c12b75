"""What the validation split says of a model in training: loss, BLEU, sample translations."""

import json
from typing import Any

import keras

from tf_transformer.translator import Translator

from ..batches.feed import Feed
from ..corpora.corpus import Corpus
from ..devices.distribution import Distribution
from ..evaluate import corpus_bleu
from ..optimizers.ema import averaged_weights
from ..settings.sections import EvaluationSettings


class Validation:
    """Called, it measures the model, with its averaged weights where there are; draws no random
    number.

    Args:
        translator: over the compiled model in training, with the recipe's search.
        batches: the validation split.
        corpus: its sentences.
        settings: [evaluation].
        distribution: of the training. The chief translates, and all are told what it found: what
            follows from it, such as an early stop, is the same everywhere.
    """

    def __init__(
        self,
        translator: Translator,
        batches: Feed,
        corpus: Corpus,
        settings: EvaluationSettings,
        distribution: Distribution | None = None,
    ) -> None:
        self.model: keras.Model = translator.model
        self.batches = batches
        self.corpus = corpus
        self.settings = settings
        self.distribution = distribution or Distribution()
        search = "greedy" if settings.bleu == "none" else settings.bleu
        self.translator = translator.with_options(search=search)

    def __call__(self) -> dict[str, Any]:
        """`val_loss`, `val_nll`, ...; with BLEU `val_bleu` and `bleu_signature`; `samples`.

        A sample has "source", "reference" and "translation".
        """
        with averaged_weights(self.model):
            dataset = self.distribution.dataset(self.batches, None)
            steps = len(self.batches)
            measured = self.model.evaluate(dataset, steps=steps, return_dict=True, verbose=0)
            found: dict[str, Any] = {f"val_{name}": float(x) for name, x in measured.items()}
            if self.distribution.is_chief:
                found.update(self._translated())
        return json.loads(self.distribution.tell(json.dumps(found).encode()))

    def _translated(self) -> dict[str, Any]:
        number = len(self.corpus) if self.settings.bleu != "none" else self.settings.samples
        source, reference = self.corpus.source[:number], self.corpus.target[:number]
        translations = self.translator(source)
        found: dict[str, Any] = {}
        if self.settings.bleu != "none":
            bleu, signature = corpus_bleu(translations, reference)
            found.update(val_bleu=bleu.score, bleu_signature=signature)
        rows = zip(source, reference, translations, strict=True)
        found["samples"] = [
            {"source": source, "reference": reference, "translation": translation}
            for source, reference, translation in list(rows)[: self.settings.samples]
        ]
        return found

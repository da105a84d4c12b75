"""How weights are made (section 5 of the paper): corpus, batches, loss, schedule, run.

The names below load when they are used: reading a recipe takes no TensorFlow.
"""

import importlib
from typing import TYPE_CHECKING, Any

# First, or the package and the losses that it registers would import each other halfway.
import tf_transformer  # noqa: F401

if TYPE_CHECKING:
    from .batches.batching import Batches
    from .corpora.corpus import Corpus, mix
    from .corpora.pairs import corpus_of
    from .corpora.reading import read_pairs, read_split, read_tsv
    from .objective.losses import SmoothedCrossEntropy
    from .objective.metrics import Perplexity, TokenAccuracy, TokenNLL
    from .optimizers.adafactor import Adafactor
    from .optimizers.ema import averaged_weights
    from .optimizers.optimizer import OPTIMIZERS, FusedAdam, FusedAdamW
    from .optimizers.schedule import (
        SCHEDULES,
        ConstantRate,
        CosineDecay,
        InverseSquareRoot,
        LinearDecay,
        TransformerSchedule,
    )
    from .recipe import Recipe, load_recipe

_HOMES = {
    "Adafactor": ".optimizers.adafactor",
    "Batches": ".batches.batching",
    "Corpus": ".corpora.corpus",
    "averaged_weights": ".optimizers.ema",
    "corpus_of": ".corpora.pairs",
    "mix": ".corpora.corpus",
    "read_pairs": ".corpora.reading",
    "read_split": ".corpora.reading",
    "read_tsv": ".corpora.reading",
    "SmoothedCrossEntropy": ".objective.losses",
    "OPTIMIZERS": ".optimizers.optimizer",
    "FusedAdam": ".optimizers.optimizer",
    "FusedAdamW": ".optimizers.optimizer",
    "Perplexity": ".objective.metrics",
    "TokenAccuracy": ".objective.metrics",
    "TokenNLL": ".objective.metrics",
    "Recipe": ".recipe",
    "load_recipe": ".recipe",
    "SCHEDULES": ".optimizers.schedule",
    "ConstantRate": ".optimizers.schedule",
    "CosineDecay": ".optimizers.schedule",
    "InverseSquareRoot": ".optimizers.schedule",
    "LinearDecay": ".optimizers.schedule",
    "TransformerSchedule": ".optimizers.schedule",
}

__all__ = [
    "Adafactor",
    "Batches",
    "ConstantRate",
    "Corpus",
    "CosineDecay",
    "FusedAdam",
    "FusedAdamW",
    "InverseSquareRoot",
    "LinearDecay",
    "OPTIMIZERS",
    "Perplexity",
    "Recipe",
    "SCHEDULES",
    "SmoothedCrossEntropy",
    "TokenAccuracy",
    "TokenNLL",
    "TransformerSchedule",
    "averaged_weights",
    "corpus_of",
    "load_recipe",
    "mix",
    "read_pairs",
    "read_split",
    "read_tsv",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

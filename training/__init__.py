"""How weights are made (section 5 of the paper): corpus, batches, loss, schedule, run.

The names below load when they are used: reading a recipe takes no TensorFlow.
"""

import importlib
from typing import TYPE_CHECKING, Any

# First, or the package and the losses that it registers would import each other halfway.
import tf_transformer  # noqa: F401

if TYPE_CHECKING:
    from .adafactor import Adafactor
    from .batching import Batches
    from .corpus import Corpus, mix
    from .ema import averaged_weights
    from .losses import SmoothedCrossEntropy
    from .metrics import Perplexity, TokenAccuracy, TokenNLL
    from .optimizer import OPTIMIZERS, FusedAdam, FusedAdamW
    from .pairs import corpus_of
    from .reading import read_pairs, read_split, read_tsv
    from .recipe import Recipe, load_recipe
    from .schedule import (
        SCHEDULES,
        ConstantRate,
        CosineDecay,
        InverseSquareRoot,
        LinearDecay,
        TransformerSchedule,
    )

_HOMES = {
    "Adafactor": ".adafactor",
    "Batches": ".batching",
    "Corpus": ".corpus",
    "averaged_weights": ".ema",
    "corpus_of": ".pairs",
    "mix": ".corpus",
    "read_pairs": ".reading",
    "read_split": ".reading",
    "read_tsv": ".reading",
    "SmoothedCrossEntropy": ".losses",
    "OPTIMIZERS": ".optimizer",
    "FusedAdam": ".optimizer",
    "FusedAdamW": ".optimizer",
    "Perplexity": ".metrics",
    "TokenAccuracy": ".metrics",
    "TokenNLL": ".metrics",
    "Recipe": ".recipe",
    "load_recipe": ".recipe",
    "SCHEDULES": ".schedule",
    "ConstantRate": ".schedule",
    "CosineDecay": ".schedule",
    "InverseSquareRoot": ".schedule",
    "LinearDecay": ".schedule",
    "TransformerSchedule": ".schedule",
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

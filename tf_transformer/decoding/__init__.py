"""Ways to search for an output. A new one is one file here and one line below."""

from tf_transformer.decoding.beam import BeamSearch
from tf_transformer.decoding.diverse import DiverseSearch
from tf_transformer.decoding.greedy import GreedySearch
from tf_transformer.decoding.loop import for_any_device
from tf_transformer.decoding.noise import fingerprints
from tf_transformer.decoding.rules import (
    RULES,
    EndAtLimit,
    ForcedPrefix,
    MinimumLength,
    NoRepeatNgram,
    RepetitionPenalty,
    Rule,
    SoFar,
    SuppressedTokens,
)
from tf_transformer.decoding.sampling import SamplingSearch
from tf_transformer.decoding.scoring import LENGTH_PENALTIES, length_penalty
from tf_transformer.decoding.search import RowOptions, Search, SearchResult, Step

SEARCHES: dict[str, type[Search]] = {
    "greedy": GreedySearch,
    "beam": BeamSearch,
    "diverse": DiverseSearch,
    "sampling": SamplingSearch,
}

__all__ = [
    "BeamSearch",
    "DiverseSearch",
    "EndAtLimit",
    "ForcedPrefix",
    "GreedySearch",
    "LENGTH_PENALTIES",
    "MinimumLength",
    "NoRepeatNgram",
    "RULES",
    "RepetitionPenalty",
    "RowOptions",
    "Rule",
    "SEARCHES",
    "SamplingSearch",
    "Search",
    "SearchResult",
    "SoFar",
    "Step",
    "SuppressedTokens",
    "fingerprints",
    "for_any_device",
    "length_penalty",
]

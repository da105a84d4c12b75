"""Ways to search for an output. A new one is one file here and one line below."""

from tf_transformer.decoding.beam import BeamSearch
from tf_transformer.decoding.greedy import GreedySearch
from tf_transformer.decoding.search import Search, SearchResult, Step, length_penalty

SEARCHES: dict[str, type[Search]] = {"greedy": GreedySearch, "beam": BeamSearch}

__all__ = [
    "SEARCHES",
    "BeamSearch",
    "GreedySearch",
    "Search",
    "SearchResult",
    "Step",
    "length_penalty",
]

"""Parallel text in memory: sentence pairs, cleaned and counted, and mixed by weight."""

import dataclasses
import logging
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tf_transformer.errors import InputError
from tf_transformer.lines import CONTROLS, clean_line

BLANK_SIDE = "blank on one side"
DUPLICATE = "duplicate"
HAD_CONTROLS = "control characters"
HAD_OUTER_BLANKS = "outer blanks"

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Part:
    """Of a mixed corpus: so many pairs, one after another, and how often an epoch sees each."""

    name: str
    pairs: int
    weight: float


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Sentence pairs: `source[n]` is translated by `target[n]`; neither is blank.

    Args:
        source: source sentences, without control characters and outer blanks.
        target: target sentences, as many.
        dropped: number of pairs left out, by reason.
        repaired: number of sentences of the pairs kept that were changed, by reason.
        name: the files it was read from, for messages.
        parts: what it was mixed from, in the order of the pairs; see `mix`.
    """

    source: list[str]
    target: list[str]
    dropped: dict[str, int] = dataclasses.field(default_factory=dict)
    repaired: dict[str, int] = dataclasses.field(default_factory=dict)
    name: str = "corpus"
    parts: tuple[Part, ...] = ()

    def __post_init__(self) -> None:
        if len(self.source) != len(self.target):
            raise InputError(
                f"{self.name}: `source` and `target` must be equally long. "
                f"Received: {len(self.source)} and {len(self.target)} sentences"
            )

    def __len__(self) -> int:
        return len(self.source)

    def parts_of(self, pairs: np.ndarray) -> tuple[np.ndarray, list[float]]:
        """For the numbers of pairs those of their parts, and the weights of all parts."""
        ends = np.cumsum([part.pairs for part in self.parts])
        return np.searchsorted(ends, pairs, side="right"), [
            *(part.weight for part in self.parts),
            1.0,  # of a corpus that was not mixed
        ]


def clean(
    pairs: Iterable[tuple[str, str]], name: str, skipped: Mapping[str, int] | None = None
) -> Corpus:
    """A corpus of these pairs.

    Pairs with a blank side are dropped and counted. Control characters and the Unicode line
    separators become blanks, outer blanks are cut, so that no later stage can split a sentence.

    Args:
        pairs: source and target of each.
        name: what messages call them.
        skipped: what the reader left out, by reason.

    Raises:
        InputError: no pair is left.
    """
    dropped = Counter(skipped or {})
    repaired: Counter[str] = Counter()
    source: list[str] = []
    target: list[str] = []
    for pair in pairs:
        cleaned = (clean_line(pair[0]), clean_line(pair[1]))
        if not all(cleaned):
            dropped[BLANK_SIDE] += 1
            continue
        if cleaned != pair:
            repaired.update(
                HAD_CONTROLS if CONTROLS.search(before) else HAD_OUTER_BLANKS
                for before, after in zip(pair, cleaned, strict=True)
                if before != after
            )
        source.append(cleaned[0])
        target.append(cleaned[1])
    if not source:
        why = f"no pair is left: {_counts(dropped)}" if dropped else "the corpus is empty"
        raise InputError(f"{name}: {why}.")
    _report(name, len(source), dropped, repaired)
    return Corpus(source, target, dict(dropped), dict(repaired), name)


def without_duplicates(corpus: Corpus) -> Corpus:
    """The corpus with each pair once, where it comes first; the number of the others is logged."""
    pairs = dict.fromkeys(zip(corpus.source, corpus.target, strict=True))
    dropped = Counter({DUPLICATE: len(corpus) - len(pairs)})
    if not dropped[DUPLICATE]:
        return corpus
    _report(corpus.name, len(pairs), dropped, Counter())
    source, target = (list(side) for side in zip(*pairs, strict=True))
    return dataclasses.replace(
        corpus, source=source, target=target, dropped={**corpus.dropped, **dropped}
    )


def mix(corpora: Sequence[tuple[Corpus, float]]) -> Corpus:
    """One corpus of several, each with its weight: how often an epoch sees each of its pairs.

    A weight of 2 doubles a corpus in each epoch; with 0.1 an epoch has another tenth of it each
    time. See `Mixture`.
    """
    if not corpora:
        raise InputError("`corpora` must hold at least one corpus. Received: none")
    for corpus, weight in corpora:
        if not 0 < weight < math.inf:
            raise InputError(f"{corpus.name}: its weight must be above 0. Received: {weight!r}")
    return Corpus(
        [sentence for corpus, _ in corpora for sentence in corpus.source],
        [sentence for corpus, _ in corpora for sentence in corpus.target],
        dict(sum((Counter(corpus.dropped) for corpus, _ in corpora), Counter())),
        dict(sum((Counter(corpus.repaired) for corpus, _ in corpora), Counter())),
        " and ".join(corpus.name for corpus, _ in corpora),
        tuple(Part(corpus.name, len(corpus), float(weight)) for corpus, weight in corpora),
    )


def _report(name: str, kept: int, dropped: Counter[str], repaired: Counter[str]) -> None:
    message = f"{name}: {kept} pairs"
    if dropped:
        message += f"; pairs dropped: {_counts(dropped)}"
    if repaired:
        message += f"; sentences repaired: {_counts(repaired)}"
    logger.log(logging.WARNING if dropped else logging.INFO, message)


def _counts(reasons: Counter[str]) -> str:
    return ", ".join(f"{count} ({reason})" for reason, count in reasons.items())

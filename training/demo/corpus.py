"""The demo corpus: drawn from the grammar, split into train, valid and test, written to files."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random

from .being import profession_of
from .clauses import finish, statement
from .grammar import CONSTRUCTIONS, sentences, words
from .people import JE, STUDENT
from .verbs import ETRE

Pair = tuple[str, str]

TEST_PAIRS = 500
VALID_PAIRS = 300
# A word that occurs less often than this in train is not asked for in valid or test.
_MINIMUM_COUNT = 8


@dataclass(frozen=True)
class DemoCorpus:
    """Pairs of a French and an English sentence; no sentence of one split is in another."""

    train: list[Pair]
    valid: list[Pair]
    test: list[Pair]


def all_pairs(seed: int) -> dict[str, str]:
    """Every drawn sentence, French to English, the sentence of the README first.

    Raises:
        ValueError: the grammar gives a French sentence two translations (a fault in the grammar).
    """
    shown = finish(statement(JE, ETRE, profession_of(JE, STUDENT)))
    pairs = {shown.french: shown.english}
    for construction, number in CONSTRUCTIONS.items():
        for french, english in sentences(construction, number, seed).items():
            if pairs.setdefault(french, english) != english:
                raise ValueError(
                    f"{construction.__name__} translates {french!r} as {english!r}, "
                    f"which was {pairs[french]!r} before"
                )
    return pairs


def demo_corpus(seed: int = 0) -> DemoCorpus:
    """Draws the corpus; the same seed gives the same one on every machine.

    Sentences with the same translation ("je suis étudiant", "je suis étudiante") stay together,
    so that neither side of a held-out pair has been seen; every word of it has been.
    """
    groups: dict[str, list[Pair]] = {}
    for french, english in all_pairs(seed).items():
        groups.setdefault(english, []).append((french, english))
    first, *others = groups
    random = Random(seed)
    random.shuffle(others)
    seen = Counter(word for group in groups.values() for pair in group for word in _tagged(pair))
    test: list[Pair] = []
    valid: list[Pair] = []
    train: list[Pair] = []
    for english in (first, *others):
        group = groups[english]
        held_out = test if len(test) < TEST_PAIRS else valid
        used = Counter(word for pair in group for word in _tagged(pair))
        if len(valid) < VALID_PAIRS and all(
            seen[word] - count >= _MINIMUM_COUNT for word, count in used.items()
        ):
            held_out.extend(group)
            seen -= used
        else:
            train.extend(group)
    for split in (train, valid, test):
        random.shuffle(split)
    return DemoCorpus(train, valid, test)


def _tagged(pair: Pair) -> list[tuple[int, str]]:
    """The words of both sides, apart: "table" is French and English."""
    return [(side, word) for side, sentence in enumerate(pair) for word in words(sentence)]


def write_demo_corpus(directory: Path, seed: int = 0) -> None:
    """Writes train.src and train.tgt, valid.* and test.* in UTF-8, one sentence a line.

    Each file is written beside and renamed, so that a broken run leaves no half file.
    """
    directory.mkdir(parents=True, exist_ok=True)
    corpus = demo_corpus(seed)
    for name, split in (("train", corpus.train), ("valid", corpus.valid), ("test", corpus.test)):
        for side, ending in enumerate(("src", "tgt")):
            path = directory / f"{name}.{ending}"
            beside = path.with_name(f"{path.name}.tmp")
            text = "".join(f"{pair[side]}\n" for pair in split)
            beside.write_text(text, encoding="utf-8", newline="\n")
            os.replace(beside, path)

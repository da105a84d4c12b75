"""The demo corpus: drawn from the grammar, split into train, valid and test, written to files."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tf_transformer.errors import InputError
from tf_transformer.lines import write_lines

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
    counts = {english: _count(group) for english, group in groups.items()}
    left = Counter[tuple[int, str]]()  # how often train still has each word
    for count in counts.values():
        left.update(count)
    shown, *others = groups
    random = Random(seed)
    random.shuffle(others)
    test = list(groups[shown])
    left.subtract(counts[shown])
    valid: list[Pair] = []
    train: list[Pair] = []
    for english in others:
        full = len(valid) >= VALID_PAIRS
        if full or any(left[word] - n < _MINIMUM_COUNT for word, n in counts[english].items()):
            train.extend(groups[english])
            continue
        (test if len(test) < TEST_PAIRS else valid).extend(groups[english])
        left.subtract(counts[english])
    for split in (train, valid, test):
        random.shuffle(split)
    return DemoCorpus(train, valid, test)


def _count(group: list[Pair]) -> Counter[tuple[int, str]]:
    """The words of both sides, apart: "table" is French and English."""
    return Counter((side, word) for pair in group for side in (0, 1) for word in words(pair[side]))


def write_demo_corpus(directory: Path, seed: int = 0) -> None:
    """Writes train.src and train.tgt, valid.* and test.* in UTF-8, one sentence a line.

    Makes the folder if need be. Each file is written beside and renamed.

    Raises:
        InputError: the folder can't be made or written to.
    """
    corpus = demo_corpus(seed)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"The demo corpus needs a folder, but {directory} can't be one: {error.strerror}."
        ) from None
    for name, split in (("train", corpus.train), ("valid", corpus.valid), ("test", corpus.test)):
        for side, ending in enumerate(("src", "tgt")):
            write_lines(directory / f"{name}.{ending}", (pair[side] for pair in split))

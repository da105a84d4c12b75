"""Train, valid and test of a corpus that comes without them, with no sentence in two of them."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable

Pair = tuple[str, str]

HELD_OUT = 2000  # pairs of valid and of test
_LARGEST = 20  # groups above it belong to train: short sentences with a hundred translations
_BLANKS = re.compile(r"[ \u00a0\u202f]+")
_PUNCTUATION = re.compile(r"[^\w\s]")


def hold_out(pairs: Iterable[Pair], number: int = HELD_OUT) -> dict[str, list[Pair]]:
    """Divides pairs into "train", "valid" and "test".

    Pairs that share a source or a target, whatever its case and punctuation, are a group, and a
    group is in one split. `number` groups make test and as many valid, with one pair each; which
    ones is decided by a hash of their first source, so that it is always the same. Text is put in
    Unicode's form NFC with single blanks, and a pair that is there twice is taken once.
    """
    tidy = dict.fromkeys((_tidy(source), _tidy(target)) for source, target in pairs)
    groups: dict[int, list[Pair]] = {}
    for pair, group in zip(tidy, _groups(list(tidy)), strict=True):
        groups.setdefault(group, []).append(pair)
    ordered = sorted(groups.values(), key=lambda group: _hash(_key(group[0][0])))
    small = [group for group in ordered if len(group) <= _LARGEST][: 2 * number]
    held = [group[0] for group in small]
    away = {pair for group in small for pair in group}
    return {
        "train": [pair for pair in tidy if pair not in away],
        "valid": held[number:],
        "test": held[:number],
    }


def _groups(pairs: list[Pair]) -> list[int]:
    """For each pair the number of its group (union-find over the sentences of both sides)."""
    parents: list[int] = []
    numbers: dict[tuple[int, str], int] = {}

    def root(node: int) -> int:
        while parents[node] != node:
            parents[node] = parents[parents[node]]
            node = parents[node]
        return node

    def node_of(side: int, text: str) -> int:
        node = numbers.setdefault((side, _key(text)), len(parents))
        if node == len(parents):
            parents.append(node)
        return node

    nodes = []
    for source, target in pairs:
        first, second = node_of(0, source), node_of(1, target)
        parents[root(second)] = root(first)
        nodes.append(first)
    return [root(node) for node in nodes]


def _tidy(text: str) -> str:
    return _BLANKS.sub(" ", unicodedata.normalize("NFC", text)).strip()


def _key(text: str) -> str:
    return " ".join(_PUNCTUATION.sub(" ", text.lower()).split())


def _hash(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()

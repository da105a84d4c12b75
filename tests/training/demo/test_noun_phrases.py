"""Noun phrases in both languages."""

import pytest

from training.demo import people
from training.demo.clauses import noun_phrase, owned
from training.demo.determiners import NUMBERS, POSSESSIVES, THE, THIS, WHICH, A
from training.demo.words import Adjective, Noun

BEAU, ROUGE = Adjective("beau", "beautiful", before=True), Adjective("rouge", "red")
ARBRE, ECOLE = Noun("arbre", "tree"), Noun("école", "school", feminine=True)
HIBOU, ROBE = Noun("hibou", "owl"), Noun("robe", "dress", feminine=True)
MON = POSSESSIVES[0]


@pytest.mark.parametrize(
    ("phrase", "said", "translated"),
    [
        (noun_phrase(A, ARBRE, adjective=BEAU), "un bel arbre", "a beautiful tree"),
        (noun_phrase(A, HIBOU, adjective=BEAU), "un beau hibou", "a beautiful owl"),
        (noun_phrase(A, HIBOU), "un hibou", "an owl"),
        (noun_phrase(THE, ROBE, True, BEAU), "les belles robes", "the beautiful dresses"),
        (noun_phrase(A, ROBE, True, ROUGE), "des robes rouges", "red dresses"),
        (noun_phrase(THIS, ARBRE), "cet arbre", "this tree"),
        (noun_phrase(THIS, ARBRE, adjective=BEAU), "ce bel arbre", "this beautiful tree"),
        (noun_phrase(THIS, HIBOU), "ce hibou", "this owl"),
        (noun_phrase(THIS, ECOLE), "cette école", "this school"),
        (noun_phrase(THIS, ECOLE, True), "ces écoles", "these schools"),
        (noun_phrase(MON, ECOLE), "mon école", "my school"),
        (noun_phrase(MON, ECOLE, adjective=BEAU), "ma belle école", "my beautiful school"),
        (noun_phrase(MON, ROBE, True), "mes robes", "my dresses"),
        (noun_phrase(WHICH, ROBE, True), "quelles robes", "which dresses"),
        (noun_phrase(NUMBERS[0], ARBRE, True), "deux arbres", "two trees"),
        (owned(ROBE, people.NAMES[4]), "la robe de marie", "marie's dress"),
    ],
)  # fmt: skip
def test_noun_phrases(phrase, said: str, translated: str) -> None:
    assert (phrase.french, phrase.english) == (said, translated)

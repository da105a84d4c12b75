"""Who the sentences are about: pronouns, names, family, professions."""

from __future__ import annotations

from .nouns import nouns
from .words import Noun, Subject


def _pronoun(french: str, english: str, slot: int, plural: bool, feminine: bool) -> Subject:
    return Subject(french, english, slot, plural, feminine, is_pronoun=True)


JE = _pronoun("je", "i", 0, False, False)
# One row a slot; the variants of a row differ in what agrees with them.
PRONOUNS: tuple[tuple[Subject, ...], ...] = (
    (JE, _pronoun("je", "i", 0, False, True)),
    (_pronoun("tu", "you", 1, False, False), _pronoun("tu", "you", 1, False, True)),
    (_pronoun("il", "he", 2, False, False), _pronoun("elle", "she", 2, False, True)),
    (_pronoun("nous", "we", 3, True, False), _pronoun("nous", "we", 3, True, True)),
    (
        _pronoun("vous", "you", 4, False, False),
        _pronoun("vous", "you", 4, False, True),
        _pronoun("vous", "you", 4, True, False),
        _pronoun("vous", "you", 4, True, True),
    ),
    (_pronoun("ils", "they", 5, True, False), _pronoun("elles", "they", 5, True, True)),
)
# The object forms that say no gender: "il me voit" -> "he sees me".
OBJECT_PRONOUNS = (("me", "me", 0), ("te", "you", 1), ("nous", "us", 3), ("vous", "you", 4))
# Behind a preposition: French, English, the possessive of "at my house", slot.
STRESSED_PRONOUNS = (
    ("moi", "me", "my", 0),
    ("toi", "you", "your", 1),
    ("lui", "him", "his", 2),
    ("elle", "her", "her", 2),
    ("nous", "us", "our", 3),
    ("vous", "you", "your", 4),
    ("eux", "them", "their", 5),
)


def overlap(slot: int, other: int) -> bool:
    """Whether two slots may share a person who is spoken to or speaks: je and nous, tu and vous."""
    return slot % 3 == other % 3 != 2


_MEN = ("paul", "simon", "antoine", "martin")
_WOMEN = ("marie", "sophie", "alice", "emma")
NAMES = tuple(
    Subject(name, name, 2, plural=False, feminine=name in _WOMEN) for name in (*_MEN, *_WOMEN)
)

FAMILY = (
    *nouns("père = father", "grand-père = grandfather", count="singular"),
    *nouns("mère = mother", "grand-mère = grandmother", feminine=True, count="singular"),
    *nouns("frère = brother", "fils = son", "oncle = uncle", "ami = friend"),
    *nouns("cousin = cousin", "voisin = neighbor"),
    *nouns("sœur = sister", "tante = aunt", "amie = friend", feminine=True),
    *nouns("cousine = cousin", "voisine = neighbor", feminine=True),
    *nouns("parent = parent", count="plural"),
)
MAN, BOY, CHILD = nouns("homme = man", "garçon = boy", "enfant = child")
WOMAN, GIRL = nouns("femme = woman", "fille = girl", feminine=True)
PEOPLE = (MAN, WOMAN, BOY, GIRL, CHILD)


def _profession(row: str) -> tuple[Noun, Noun]:
    """The masculine and the feminine noun from "french [feminine] = english [feminine]"."""
    french, english = (side.split("|") for side in row.split(" = "))
    return Noun(french[0], english[0]), Noun(french[-1], english[-1], feminine=True)


STUDENT = _profession("étudiant|étudiante = student")
PROFESSIONS: tuple[tuple[Noun, Noun], ...] = (
    STUDENT,
    *(
        _profession(row)
        for row in (
            "acteur|actrice = actor|actress",
            "agriculteur|agricultrice = farmer",
            "architecte = architect",
            "artiste = artist",
            "avocat|avocate = lawyer",
            "boulanger|boulangère = baker",
            "chanteur|chanteuse = singer",
            "cuisinier|cuisinière = cook",
            "danseur|danseuse = dancer",
            "dentiste = dentist",
            "écrivain|écrivaine = writer",
            "infirmier|infirmière = nurse",
            "ingénieur|ingénieure = engineer",
            "journaliste = journalist",
            "juge = judge",
            "médecin = doctor",
            "musicien|musicienne = musician",
            "peintre = painter",
            "pharmacien|pharmacienne = pharmacist",
            "pilote = pilot",
            "policier|policière = police officer",
            "professeur|professeure = teacher",
            "serveur|serveuse = waiter|waitress",
        )
    ),
)

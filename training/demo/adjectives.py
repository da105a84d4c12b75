"""Adjectives, in classes by what they can be said of."""

from __future__ import annotations

from .words import Adjective


def _adjectives(*rows: str, before: bool = False) -> tuple[Adjective, ...]:
    pairs = (row.split(" = ") for row in rows)
    return tuple(Adjective(french, english, before) for french, english in pairs)


_SIZES = _adjectives("grand = big", "petit = small", before=True)
_LOOKS = _adjectives("beau = beautiful", before=True)
_AGES = _adjectives("vieux = old", "nouveau = new", before=True)
_TASTES = _adjectives("bon = good", "mauvais = bad", before=True)
_LENGTHS = _adjectives("long = long", before=True)
_YOUNG = _adjectives("jeune = young", before=True)
_COLOURS = _adjectives(
    "rouge = red", "bleu = blue", "vert = green", "noir = black", "blanc = white", "marron = brown"
)
_COATS = _adjectives("noir = black", "blanc = white", "marron = brown")

GOOD = _TASTES
OF_THINGS = (
    *_SIZES,
    *_AGES,
    *_LOOKS,
    *_COLOURS,
    *_adjectives("cher = expensive", "lourd = heavy", "propre = clean", "sale = dirty"),
)
OF_CLOTHES = (
    *_LENGTHS,
    *_AGES,
    *_LOOKS,
    *_COLOURS,
    *_adjectives("cher = expensive", "propre = clean", "sale = dirty"),
)
OF_FOOD = (*_TASTES, *_adjectives("froid = cold", "chaud = hot", "délicieux = delicious"))
OF_BOOKS = (
    *_LENGTHS,
    *_TASTES,
    *_adjectives("triste = sad", "drôle = funny", "ennuyeux = boring"),
    *_adjectives("intéressant = interesting"),
)
OF_ANIMALS = (*_SIZES, *_YOUNG, _AGES[0], *_LOOKS, *_COATS)
OF_FLOWERS = (*_SIZES, *_LOOKS, _COLOURS[0], _COLOURS[4])
OF_HOMES = (
    *_SIZES,
    *_AGES,
    *_LOOKS,
    *_adjectives("moderne = modern", "calme = quiet", "cher = expensive"),
)
OF_SIGHTS = (*_SIZES, _AGES[0], *_LOOKS, *_adjectives("célèbre = famous"))
OF_CARS = (*_SIZES, *_AGES, *_COLOURS, *_adjectives("rapide = fast", "cher = expensive"))

MOODS = _adjectives(
    "fatigué = tired",
    "heureux = happy",
    "triste = sad",
    "malade = sick",
    "occupé = busy",
    "prêt = ready",
    "seul = alone",
    "inquiet = worried",
)
# Traits can be compared and stand beside a noun: "un homme honnête".
TRAITS = _adjectives(
    "fort = strong",
    "riche = rich",
    "pauvre = poor",
    "intelligent = intelligent",
    "gentil = kind",
    "drôle = funny",
    "sérieux = serious",
    "timide = shy",
    "poli = polite",
    "honnête = honest",
    "célèbre = famous",
    "courageux = brave",
    "curieux = curious",
    "sportif = athletic",
)
OF_PEOPLE = (*_YOUNG, _AGES[0], *(word for word in TRAITS if word.french != "pauvre"))
COMPARED = (*_YOUNG, *TRAITS)
NATIONALITIES = _adjectives(
    "français = french",
    "anglais = english",
    "espagnol = spanish",
    "italien = italian",
    "allemand = german",
    "américain = american",
    "japonais = japanese",
    "chinois = chinese",
    "canadien = canadian",
)

ADJECTIVES: dict[str, tuple[Adjective, ...]] = {
    "food": OF_FOOD,
    "drinks": OF_FOOD,
    "books": OF_BOOKS,
    "things": OF_THINGS,
    "bags": OF_THINGS,
    "clothes": OF_CLOTHES,
    "cars": OF_CARS,
    "pets": OF_ANIMALS,
    "wild": OF_ANIMALS,
    "flowers": OF_FLOWERS,
    "homes": OF_HOMES,
    "sights": OF_SIGHTS,
}
# "nouveau" stands beside its noun only: a thing that is new is "neuf".
PREDICATES: dict[str, tuple[Adjective, ...]] = {
    kind: tuple(word for word in words if word.french != "nouveau")
    for kind, words in ADJECTIVES.items()
}

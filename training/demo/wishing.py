"""Wishes, likings, orders: a verb and what is to be done."""

from __future__ import annotations

from .clauses import command, infinitive, noun_phrase, question, statement
from .determiners import GENERIC
from .draw import Draw
from .nouns import OBJECTS
from .places import PLACES
from .verbs import (
    ALLER,
    DEVOIR,
    INTRANSITIVE,
    LIKING,
    PAS,
    POUVOIR,
    TRANSITIVE,
    TRYING,
    VOULOIR,
)
from .words import Phrase, Subject

_LIKED = ("food", "drinks", "books", "pets", "wild", "flowers", "music")
_PLEASE = {
    1: Phrase(", s'il te plaît", ", please"),
    4: Phrase(", s'il vous plaît", ", please"),
}
# Nobody wants to lose a key, and "vois le chat" is hardly an order one gives.
_WANTED = tuple(verb for verb in TRANSITIVE if verb.french not in ("oublier", "perdre"))
_ORDERED = tuple(
    verb
    for verb in TRANSITIVE
    if verb.french not in ("comprendre", "perdre", "rencontrer", "trouver", "voir")
)
_WOULD_LIKE = (
    Phrase("je voudrais", "i would like"),
    Phrase("tu voudrais", "you would like"),
    Phrase("il voudrait", "he would like"),
    Phrase("elle voudrait", "she would like"),
    Phrase("nous voudrions", "we would like"),
    Phrase("vous voudriez", "you would like"),
    Phrase("ils voudraient", "they would like"),
    Phrase("elles voudraient", "they would like"),
)


def _to_do(draw: Draw, subject: Subject | None = None, negated: bool = False) -> Phrase:
    """Something to do: "manger une pomme", "dormir", "aller à la plage"."""
    kind = draw.one(("object", "object", "object", "place", "alone"))
    if kind == "alone":
        return infinitive(draw.one(INTRANSITIVE))
    if kind == "place":
        place = draw.one(PLACES)
        return infinitive(ALLER, Phrase(f"à {place.french}", f"to {place.english}"))
    verb = draw.one(_WANTED)
    what = draw.object_of(verb, negated)
    if subject and what.french == subject.french:
        return _to_do(draw, subject, negated)
    return infinitive(verb, what)


def wanting(draw: Draw) -> Phrase:
    """elle ne veut pas aller à la banque; nous voulions dormir."""
    subject, middle = draw.subject(), draw.negation()
    tense = "imperfect" if draw.chance(0.25) else "present"
    return statement(subject, VOULOIR, _to_do(draw, subject, middle is not None), tense, middle)


def being_able(draw: Draw) -> Phrase:
    """je ne peux pas dormir."""
    subject, middle = draw.subject(), draw.negation(0.35)
    return statement(subject, POUVOIR, _to_do(draw, subject, middle is not None), middle=middle)


def having_to(draw: Draw) -> Phrase:
    """tu dois finir la leçon."""
    subject, middle = draw.subject(), draw.negation()
    return statement(subject, DEVOIR, _to_do(draw, subject, middle is not None), middle=middle)


def trying(draw: Draw) -> Phrase:
    """j'essaie de finir la leçon; ils espèrent dormir."""
    subject = draw.subject()
    return statement(subject, draw.one(TRYING), _to_do(draw, subject))


def asking_to(draw: Draw) -> Phrase:
    """pouvez-vous fermer la porte ?; est-ce que tu veux manger ?"""
    subject, verb = draw.subject(0.75), draw.one((POUVOIR, VOULOIR))
    inversion = draw.inversion(subject, 0.5)
    return question(subject, verb, _to_do(draw, subject), inversion=inversion)


def would_like(draw: Draw) -> Phrase:
    """je voudrais une pomme; nous voudrions partir."""
    wish = draw.one(_WOULD_LIKE)
    if draw.chance(0.5):
        kind = draw.one(("food", "drinks", "things", "clothes", "pets", "flowers"))
        return wish.then(draw.thing(kind).phrase)
    return wish.then(Phrase("", "to"), _to_do(draw))


def liking(draw: Draw) -> Phrase:
    """j'aime le café; elle n'aime pas les chats noirs."""
    subject, verb, kind = draw.subject(), draw.one(LIKING), draw.one(_LIKED)
    noun = draw.one(OBJECTS[kind])
    quality = draw.adjective(kind, 0.2)
    what = noun_phrase(GENERIC, noun, noun.count == "both", quality).phrase
    if draw.chance(0.2):
        inversion = draw.inversion(subject, 0.5)
        return question(subject, verb, what, inversion=inversion)
    return statement(subject, verb, what, middle=draw.negation() if verb is LIKING[0] else None)


def liking_to(draw: Draw) -> Phrase:
    """nous aimons danser."""
    subject, verb = draw.subject(), draw.one(LIKING)
    middle = draw.negation() if verb is LIKING[0] else None
    what = _to_do(draw, subject, middle is not None)
    return statement(subject, verb, Phrase("", "to").then(what), middle=middle)


def order(draw: Draw) -> Phrase:
    """ferme la porte; n'ouvrez pas cette lettre, s'il vous plaît."""
    slot, verb = draw.one((1, 4)), draw.one(_ORDERED)
    middle = PAS if draw.chance(0.3) else None
    said = command(verb, draw.object_of(verb, middle is not None), slot, middle)
    return said.then(_PLEASE[slot]) if draw.chance(0.3) else said

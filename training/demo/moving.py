"""Going, staying, living: the places, towns and countries."""

from __future__ import annotations

from .clauses import question, statement
from .determiners import HOURS
from .draw import Draw
from .people import STRESSED_PRONOUNS, overlap
from .places import FROM_LANDS, LANDS, PLACES
from .things import at_home_of
from .verbs import ALLER, ETRE, HABITER, INTRANSITIVE, LEAVING, RESTER, VENIR_DE
from .words import NOTHING, Phrase

_WORKING = INTRANSITIVE[:5]


def _at(draw: Draw, preposition: str) -> Phrase:
    place = draw.one(PLACES)
    return Phrase(f"à {place.french}", f"{preposition} {place.english}")


def _in(draw: Draw, preposition: str) -> Phrase:
    land = draw.one(LANDS)
    return Phrase(land.french, f"{preposition} {land.english}")


def going(draw: Draw) -> Phrase:
    """elles sont allées à la plage hier."""
    subject, tense = draw.subject(), draw.tense()
    if draw.chance(0.3):
        when = NOTHING if tense == "present" else draw.time(tense)  # not every evening to china
        where = _in(draw, "to").then(when)
    else:
        where = _at(draw, "to").then(draw.time(tense))
    return statement(subject, ALLER, where, tense, draw.negation())


def going_home(draw: Draw) -> Phrase:
    """je vais chez le médecin."""
    subject, tense = draw.subject(), draw.tense()
    where = at_home_of(draw, subject)
    to = Phrase(where.french, f"to {where.english}")
    return statement(subject, ALLER, to.then(draw.time(tense)), tense, draw.negation(0.15))


def going_question(draw: Draw) -> Phrase:
    """vas-tu à la gare ?"""
    subject, tense = draw.subject(), draw.tense()
    where = _at(draw, "to") if draw.chance(0.7) else _in(draw, "to")
    inversion = draw.inversion(subject)
    return question(subject, ALLER, where, tense, inversion=inversion)


def at_place(draw: Draw) -> Phrase:
    """mon frère est à l'hôpital."""
    subject, tense = draw.subject(), draw.one(("present", "present", "imperfect"))
    home = Phrase("à la maison", "at home")
    where = home if draw.chance(0.1) else _at(draw, "at")
    if draw.chance(0.2):
        inversion = draw.inversion(subject, 0.5)
        return question(subject, ETRE, where, tense, inversion=inversion)
    return statement(subject, ETRE, where, tense, draw.negation())


def working_at(draw: Draw) -> Phrase:
    """nous travaillons à la banque."""
    subject, tense, verb = draw.subject(), draw.tense(), draw.one((*_WORKING, RESTER))
    home = Phrase("à la maison", "at home")
    where = home if draw.chance(0.15) else _at(draw, "at")
    return statement(subject, verb, where, tense, draw.negation())


def living_in(draw: Draw) -> Phrase:
    """j'habite au japon; elle a travaillé à rome."""
    subject, where = draw.subject(), _in(draw, "in")
    if draw.chance(0.6):
        tense = draw.one(("present", "imperfect", "future"))
        return statement(subject, HABITER, where, tense, draw.negation())
    return statement(subject, draw.one(_WORKING[:3]), where, draw.tense(), draw.negation())


def coming_from(draw: Draw) -> Phrase:
    """je viens d'espagne."""
    return statement(draw.subject(), VENIR_DE, draw.one(FROM_LANDS), middle=draw.negation())


def leaving(draw: Draw) -> Phrase:
    """mes amis sont arrivés hier soir."""
    subject, tense, verb = draw.subject(), draw.tense(0.25), draw.one(LEAVING)
    return statement(subject, verb, draw.time(tense, 1.0), tense, draw.negation())


def leaving_at(draw: Draw) -> Phrase:
    """nous partons à huit heures."""
    subject, tense, verb = draw.subject(), draw.tense(), draw.one(LEAVING)
    when = Phrase("à", "at").then(draw.one(HOURS))
    return statement(subject, verb, when, tense, draw.negation(0.15))


def leaving_with(draw: Draw) -> Phrase:
    """elle est partie avec nous."""
    subject, tense, verb = draw.subject(), draw.tense(), draw.one(LEAVING)
    said, translated, _, slot = draw.one(STRESSED_PRONOUNS)
    if overlap(slot, subject.slot):
        return leaving_with(draw)
    return statement(subject, verb, Phrase(f"avec {said}", f"with {translated}"), tense)

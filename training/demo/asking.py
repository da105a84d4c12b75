"""Questions with and without a question word."""

from __future__ import annotations

from .clauses import noun_phrase, question, statement
from .determiners import WHICH
from .draw import Draw
from .nouns import OBJECTS
from .verbs import (
    ALLER,
    AVOIR_BE,
    HABITER,
    INTRANSITIVE,
    LEAVING,
    ON_BOTH,
    ON_THINGS,
    PAS,
    TRANSITIVE,
)
from .words import Phrase, Subject

_WHO = Subject("qui", "who", 2, plural=False, feminine=False)
_WHAT = Phrase("que", "what")
# Verbs whose "what" is not "whom".
_ASKABLE = tuple(verb for verb in (*ON_THINGS, *ON_BOTH) if " " not in verb.english)


def whether(draw: Draw) -> Phrase:
    """est-ce que tu as vu le chat ?; mangez-vous du pain ?"""
    subject, verb, tense = draw.subject(0.7), draw.one(TRANSITIVE), draw.tense()
    what = draw.object_of(verb)
    if what.french == subject.french:
        return whether(draw)
    return question(subject, verb, what, tense, inversion=draw.inversion(subject))


def whether_not(draw: Draw) -> Phrase:
    """n'avez-vous pas vu le chat ?"""
    subject, verb, tense = draw.pronoun(), draw.one(TRANSITIVE), draw.tense()
    if subject.slot % 3 == 0:
        return whether_not(draw)  # few people ask this of themselves
    what = draw.object_of(verb, negated=True)
    return question(subject, verb, what, tense, PAS, inversion=draw.inversion(subject))


def where(draw: Draw) -> Phrase:
    """où est-ce que tu travailles ?; où habitez-vous ?"""
    subject, tense, verb = draw.subject(), draw.tense(), draw.one((*INTRANSITIVE, HABITER, ALLER))
    if verb is ALLER:
        tense = "past"  # "où vas-tu ?" would be "where are you going?"
    elif verb is HABITER and tense == "past":
        tense = "imperfect"
    asking = Phrase("où", "where")
    return question(subject, verb, tense=tense, asking=asking, inversion=draw.inversion(subject))


def when(draw: Draw) -> Phrase:
    """quand est-ce que ton frère part ?; quand sont-elles arrivées ?"""
    subject, tense, verb = draw.subject(), draw.tense(0.2), draw.one(LEAVING)
    asking = draw.one((Phrase("quand", "when"), Phrase("à quelle heure", "at what time")))
    return question(subject, verb, tense=tense, asking=asking, inversion=draw.inversion(subject))


def why(draw: Draw) -> Phrase:
    """pourquoi est-ce que tu cours ?"""
    subject, tense = draw.subject(), draw.tense()
    verb = draw.one((*INTRANSITIVE, *LEAVING))
    asking = Phrase("pourquoi", "why")
    return question(
        subject,
        verb,
        tense=tense,
        middle=draw.negation(0.2),
        asking=asking,
        inversion=draw.inversion(subject),
    )


def what(draw: Draw) -> Phrase:
    """qu'est-ce que tu lis ?; que lisez-vous ?"""
    subject, verb, tense = draw.subject(), draw.one(_ASKABLE), draw.tense()
    inversion = draw.inversion(subject)
    return question(subject, verb, tense=tense, asking=_WHAT, inversion=inversion)


def who(draw: Draw) -> Phrase:
    """qui a mangé le gâteau ?"""
    verb, tense = draw.one(TRANSITIVE), draw.tense()
    return statement(_WHO, verb, draw.object_of(verb), tense).then(Phrase("?", "?"))


def which(draw: Draw) -> Phrase:
    """quels livres est-ce que vous lisez ?"""
    subject, verb = draw.subject(), draw.one(_ASKABLE)
    kind = draw.one([kind for kind in verb.objects if kind != "people"])
    noun = draw.one(OBJECTS[kind])
    asking = noun_phrase(WHICH, noun, draw.plural(noun)).phrase
    tense = "present" if draw.chance(0.6) else "future"  # the past would agree: "lue"
    return question(subject, verb, tense=tense, asking=asking, inversion=draw.inversion(subject))


def how_old(draw: Draw) -> Phrase:
    """quel âge a ton frère ?"""
    subject = draw.subject(0.3)
    asking = Phrase("quel âge", "how old")
    if subject.is_pronoun:
        if subject.slot == 0:
            return how_old(draw)
        return question(subject, AVOIR_BE, asking=asking, inversion=True)
    has = Phrase("ont", "are") if subject.plural else Phrase("a", "is")
    return asking.then(has, subject.phrase, Phrase("?", "?"))

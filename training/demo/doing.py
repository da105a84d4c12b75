"""What people do: with things, with and for each other, well or badly."""

from __future__ import annotations

from .clauses import noun_phrase, statement
from .determiners import THE, A
from .draw import Draw
from .nouns import OBJECTS
from .people import OBJECT_PRONOUNS, STRESSED_PRONOUNS, overlap
from .verbs import (
    CONNAITRE,
    FREQUENCIES,
    GIVING,
    INSTRUMENTS,
    INTRANSITIVE,
    JOUER_A,
    JOUER_DE,
    LANGUAGES,
    LEARNING,
    MANNERS,
    ON_BOTH,
    ON_PEOPLE,
    PARLER,
    PLUS,
    SPORTS,
    TRANSITIVE,
)
from .words import Phrase, Subject, Verb


def _object(draw: Draw, subject: Subject, verb: Verb, negated: bool = False) -> Phrase:
    """An object that is not the subject again."""
    what = draw.object_of(verb, negated)
    return what if what.french != subject.french else _object(draw, subject, verb, negated)


def _acting(draw: Draw, tense: str) -> Phrase:
    subject, verb, middle = draw.subject(), draw.one(TRANSITIVE), draw.negation()
    what = _object(draw, subject, verb, negated=middle is not None)
    return statement(subject, verb, what, tense, middle)


def acting_now(draw: Draw) -> Phrase:
    """je mange une pomme."""
    return _acting(draw, "present")


def acting_before(draw: Draw) -> Phrase:
    """elle n'a pas lu la lettre."""
    return _acting(draw, "past")


def acting_later(draw: Draw) -> Phrase:
    """ils vont acheter du pain."""
    return _acting(draw, "future")


def acting_when(draw: Draw) -> Phrase:
    """nous avons vendu la voiture hier."""
    subject, verb, tense = draw.subject(), draw.one(TRANSITIVE), draw.tense(0.3, 0.4)
    what = _object(draw, subject, verb)
    return statement(subject, verb, what.then(draw.time(tense, 1.0)), tense)


def habit(draw: Draw) -> Phrase:
    """je ne mange jamais de viande; elle lit souvent le journal."""
    subject, verb = draw.subject(), draw.one(TRANSITIVE)
    middle = PLUS if draw.chance(0.15) else draw.one(FREQUENCIES)
    what = _object(draw, subject, verb, negated=middle.negative)
    return statement(subject, verb, what, middle=middle)


def knowing(draw: Draw) -> Phrase:
    """je connais ton frère."""
    subject, middle = draw.subject(), draw.negation()
    return statement(subject, CONNAITRE, _object(draw, subject, CONNAITRE), middle=middle)


def manner(draw: Draw) -> Phrase:
    """tu danses bien."""
    subject, verb, how = draw.subject(), draw.one(INTRANSITIVE), draw.one(MANNERS)
    if how.french == "vite" and verb.french == "dormir":
        return manner(draw)
    return statement(subject, verb, how, middle=draw.negation())


def simply(draw: Draw) -> Phrase:
    """je ne dors pas; elle travaille tous les jours."""
    subject, verb, tense = draw.subject(), draw.one(INTRANSITIVE), draw.tense()
    when = draw.time(tense, 0.75)
    negated = not when.french or draw.chance(0.25)
    return statement(subject, verb, when, tense, draw.negation(float(negated)))


def company(draw: Draw) -> Phrase:
    """marie travaille avec moi."""
    subject, verb, tense = draw.subject(), draw.one(INTRANSITIVE), draw.tense()
    with_whom = draw.person().phrase
    if draw.chance(0.4):
        said, translated, _, slot = draw.one(STRESSED_PRONOUNS)
        if overlap(slot, subject.slot):
            return company(draw)
        with_whom = Phrase(said, translated)
    elif with_whom.french == subject.french:
        return company(draw)
    return statement(subject, verb, Phrase("avec", "with").then(with_whom), tense, draw.negation())


def giving(draw: Draw) -> Phrase:
    """je donne un livre à mon frère."""
    subject, verb, tense = draw.subject(), draw.one(GIVING), draw.tense()
    noun = draw.one(OBJECTS[draw.one(verb.objects)])
    what = noun_phrase(draw.one((A, THE)), noun, draw.plural(noun))
    whom = draw.person().phrase
    if whom.french == subject.french:
        return giving(draw)
    return statement(subject, verb, what.phrase.then(Phrase("à", "to"), whom), tense)


def to_us(draw: Draw) -> Phrase:
    """il m'aide; ma sœur ne va pas nous attendre."""
    said, translated, slot = draw.one(OBJECT_PRONOUNS)
    subject = draw.subject()
    if overlap(slot, subject.slot):
        return to_us(draw)  # "je me vois" would be "i see myself"
    verb = draw.one((*ON_BOTH, *ON_PEOPLE, CONNAITRE))
    tense = "future" if verb is not CONNAITRE and draw.chance(0.4) else "present"
    return statement(subject, verb, Phrase("", translated), tense, draw.negation(), pronoun=said)


def language(draw: Draw) -> Phrase:
    """nous apprenons le français; il parle anglais."""
    subject, what = draw.subject(), draw.one(LANGUAGES)
    if draw.chance(0.5):
        return statement(subject, PARLER, what, draw.tense(0.8, 0.1), draw.negation())
    the_language = Phrase(f"le {what.french}", what.english)
    return statement(subject, draw.one(LEARNING), the_language, draw.tense(), draw.negation())


def playing(draw: Draw) -> Phrase:
    """simon joue aux échecs; je joue du piano."""
    subject, tense = draw.subject(), draw.tense()
    middle = draw.one(FREQUENCIES) if tense == "present" and draw.chance(0.3) else draw.negation()
    verb, what = JOUER_A, draw.one(SPORTS)
    if draw.chance(0.4):
        verb, what = JOUER_DE, draw.one(INSTRUMENTS)
    when = draw.time(tense, 0.2) if middle is None else Phrase("", "")
    return statement(subject, verb, what.then(when), tense, middle)

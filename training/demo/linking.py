"""Two clauses in a sentence: reasons, opinions, relative clauses."""

from __future__ import annotations

from .adjectives import COMPARED, MOODS, NATIONALITIES, PREDICATES
from .being import profession_of
from .clauses import agreed, noun_phrase, statement
from .determiners import NOT_SOME, SOME, THE
from .draw import Draw
from .nouns import OBJECTS
from .people import NAMES, PEOPLE, PROFESSIONS, overlap
from .verbs import (
    AVOIR_BE,
    ETRE,
    FELT,
    INTRANSITIVE,
    NEEDS,
    ON_THINGS,
    SAYING,
)
from .words import NOTHING, Phrase, Subject

_REASONS = (Phrase("parce que", "because"), Phrase("quand", "when"), Phrase("si", "if"))


def _state(draw: Draw, subject: Subject) -> Phrase:
    """What may be thought of someone or make someone do something."""
    if draw.chance(0.5):
        return statement(subject, AVOIR_BE, draw.one(FELT))
    return statement(subject, ETRE, agreed(draw.one(MOODS), subject))


def reason(draw: Draw) -> Phrase:
    """paul dort parce qu'il est fatigué; je chante quand je suis heureux."""
    subject, middle, link = draw.subject(), draw.negation(0.2), draw.one(_REASONS)
    if draw.chance(0.7):
        doing = statement(subject, draw.one(INTRANSITIVE), middle=middle)
        return doing.then(link, _state(draw, subject.pronoun))
    which = int(draw.chance(0.5))  # one eats when hungry and drinks when thirsty
    verb, feeling = ON_THINGS[which], NEEDS[which]
    noun = draw.one([noun for noun in OBJECTS[verb.objects[0]] if noun.count == "mass"])
    what = noun_phrase(NOT_SOME if middle else SOME, noun).phrase
    because = statement(subject.pronoun, AVOIR_BE, feeling, middle=middle)
    return statement(subject, verb, what, middle=middle).then(link, because)


def opinion(draw: Draw) -> Phrase:
    """je pense qu'elle est avocate."""
    subject, other = draw.subject(0.8), draw.subject(0.5)
    kind = draw.one(("state", "trait", "profession", "nationality"))
    if kind == "profession":
        other = draw.one((draw.pronoun(), draw.one(NAMES), draw.relative()))
        that = statement(other, ETRE, profession_of(other, draw.one(PROFESSIONS)))
    elif kind == "state":
        that = _state(draw, other)
    else:
        words = COMPARED if kind == "trait" else NATIONALITIES
        that = statement(other, ETRE, agreed(draw.one(words), other))
    if other.french == subject.french and not other.is_pronoun:
        return opinion(draw)
    if other.slot != subject.slot and overlap(other.slot, subject.slot):
        return opinion(draw)  # not "vous croyez que tu"
    return statement(subject, draw.one(SAYING), Phrase("que", "that").then(that))


def person_who(draw: Draw) -> Phrase:
    """la femme qui chante est médecin."""
    noun = draw.one((*PEOPLE, draw.one(draw.one(PROFESSIONS))))
    person = noun_phrase(THE, noun, draw.plural(noun)).subject
    doing = Subject("qui", "who", person.slot, person.plural, person.feminine)
    verb, tense = draw.one((*INTRANSITIVE, *ON_THINGS)), draw.tense(0.6, 0.4)
    what = draw.object_of(verb) if verb.objects else NOTHING
    relative = statement(doing, verb, what, tense)
    quality = agreed(draw.one((*COMPARED, *NATIONALITIES)), person)
    main = statement(Subject("", "", person.slot, person.plural, False), ETRE, quality)
    return person.phrase.then(relative, main)


def thing_that(draw: Draw) -> Phrase:
    """le livre que je lis est intéressant."""
    verb = draw.one([verb for verb in ON_THINGS if set(verb.objects) & set(PREDICATES)])
    kind = draw.one([kind for kind in verb.objects if kind in PREDICATES])
    noun = draw.one(OBJECTS[kind])
    thing = noun_phrase(THE, noun, draw.plural(noun))
    link = Phrase("que", "that")
    relative = statement(draw.subject(0.8), verb)
    quality = agreed(draw.one(PREDICATES[kind]), thing)
    main = statement(Subject("", "", thing.subject.slot, thing.plural, False), ETRE, quality)
    return thing.phrase.then(link, relative, main)

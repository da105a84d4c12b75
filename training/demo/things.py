"""What things are like, where they are, who has them."""

from __future__ import annotations

from .adjectives import ADJECTIVES, PREDICATES
from .clauses import agreed, noun_phrase, owned, question, statement
from .determiners import HOW_MANY, LOTS_OF, NONE, NUMBERS, POSSESSIVES, THE, A
from .draw import Draw
from .english import be, possessive
from .french_verbs import verb_group
from .nouns import CONTAINERS, LANDMARKS, OBJECTS, ROOMS, SUPPORTS
from .people import STRESSED_PRONOUNS, overlap
from .places import BESIDE, INSIDE, ON
from .verbs import AVOIR, ETRE, PAS, PLUS
from .words import Noun, NounPhrase, Phrase, Subject

_IT = Subject("ce", "it", 2, plural=False, feminine=False)
_OWNED = ("things", "bags", "clothes", "cars", "pets", "homes")
_COUNTED = tuple(kind for kind in ADJECTIVES if kind != "drinks")
_LYING = ("things", "clothes")
_VERY = Phrase("très", "very")


def thing_is(draw: Draw) -> Phrase:
    """cette robe n'est pas chère."""
    kind = draw.one(tuple(ADJECTIVES))
    thing, tense = draw.definite(kind), draw.one(("present", "present", "imperfect"))
    what = agreed(draw.one(PREDICATES[kind]), thing)
    if draw.chance(0.2):
        what = _VERY.then(what)
    if draw.chance(0.15):
        return question(thing.subject, ETRE, what, tense)
    return statement(thing.subject, ETRE, what, tense, draw.negation())


def _belonging(draw: Draw, kind: str) -> NounPhrase:
    noun, owner = draw.one(OBJECTS[kind]), draw.person()
    return owned(noun, owner, draw.plural(noun))


def belonging_is(draw: Draw) -> Phrase:
    """la voiture de mon père est rouge."""
    kind = draw.one(_OWNED)
    thing = _belonging(draw, kind)
    what = agreed(draw.one(PREDICATES[kind]), thing)
    return statement(thing.subject, ETRE, what, middle=draw.negation())


def it_is(draw: Draw) -> Phrase:
    """ce n'est pas une grande maison."""
    kind = draw.one(_COUNTED)
    noun = draw.one([noun for noun in OBJECTS[kind] if noun.count == "both"])
    what = noun_phrase(A, noun, adjective=draw.adjective(kind, 0.8))
    tense = draw.one(("present", "present", "imperfect"))
    if draw.chance(0.2):
        return question(_IT, ETRE, what.phrase, tense)
    return statement(_IT, ETRE, what.phrase, tense, draw.negation())


def it_is_whose(draw: Draw) -> Phrase:
    """c'est le chien d'alice."""
    kind = draw.one(_OWNED)
    noun = draw.one(OBJECTS[kind])
    what = owned(noun, draw.person())
    if draw.chance(0.5):
        what = noun_phrase(draw.one(POSSESSIVES), noun, adjective=draw.adjective(kind, 0.3))
    if draw.chance(0.2):
        return question(_IT, ETRE, what.phrase)
    return statement(_IT, ETRE, what.phrase, middle=draw.negation())


def _place(draw: Draw, preposition: Phrase, nouns: tuple[Noun, ...]) -> Phrase:
    word = draw.one((THE, THE, draw.one(POSSESSIVES)))
    return preposition.then(noun_phrase(word, draw.one(nouns)).phrase)


def _lying(draw: Draw) -> Phrase:
    """Where a small thing may be."""
    if draw.chance(0.5):
        return _place(draw, INSIDE, CONTAINERS)
    return _place(draw, draw.one(ON), SUPPORTS)


def _standing(draw: Draw) -> Phrase:
    """Where an animal or a person may be."""
    if draw.chance(0.4):
        return _place(draw, INSIDE, ROOMS)
    return _place(draw, draw.one(BESIDE), LANDMARKS)


def thing_location(draw: Draw) -> Phrase:
    """mes clés sont sur la table."""
    thing, where = draw.definite(draw.one(_LYING)), _lying(draw)
    tense = draw.one(("present", "present", "imperfect"))
    if draw.chance(0.2):
        return question(thing.subject, ETRE, where, tense)
    return statement(thing.subject, ETRE, where, tense, draw.negation(0.2))


def location(draw: Draw) -> Phrase:
    """le chat est derrière la porte; nous sommes dans la cuisine."""
    subject = draw.definite("pets").subject if draw.chance(0.4) else draw.subject()
    tense = draw.one(("present", "present", "imperfect"))
    if draw.chance(0.2):
        inversion = draw.inversion(subject)
        return question(subject, ETRE, _standing(draw), tense, inversion=inversion)
    return statement(subject, ETRE, _standing(draw), tense, draw.negation(0.2))


def there_is(draw: Draw) -> Phrase:
    """il n'y a pas de chat dans le jardin."""
    animal = draw.chance(0.4)
    noun = draw.one(OBJECTS[draw.one(("pets", "pets", "wild") if animal else _LYING)])
    where = _standing(draw) if animal else _lying(draw)
    plural, was = draw.plural(noun, 0.4), draw.chance(0.25)
    verb = "avait" if was else "a"
    is_or_are = be(5 if plural else 2, "past" if was else "present")
    if draw.chance(0.25):
        none = noun_phrase(NONE, noun, plural).phrase
        return Phrase(f"il ne y {verb} pas", f"there {is_or_are}").then(none, where)
    word = draw.one((A, LOTS_OF, draw.one(NUMBERS))) if plural else A
    what = noun_phrase(word, noun, plural)
    if draw.chance(0.2):
        asked = Phrase(f"est-ce que il y {verb} {what.french}", f"{is_or_are} there {what.english}")
        return asked.then(where, Phrase("?", "?"))
    return Phrase(f"il y {verb} {what.french}", f"there {is_or_are} {what.english}").then(where)


def having(draw: Draw) -> Phrase:
    """je n'ai pas de voiture; elle a beaucoup de livres."""
    subject, kind = draw.subject(), draw.one((*_OWNED, "books", "flowers"))
    tense = "imperfect" if draw.chance(0.2) else "present"
    if draw.chance(0.2):
        noun = draw.one(OBJECTS[kind])
        return statement(subject, AVOIR, noun_phrase(LOTS_OF, noun, True).phrase, tense)
    middle = PLUS if tense == "present" and draw.chance(0.07) else draw.negation()
    what = draw.thing(kind, negated=middle is not None, adjective=0.35)
    return statement(subject, AVOIR, what.phrase, tense, middle)


def having_question(draw: Draw) -> Phrase:
    """as-tu un chien ?; combien de livres as-tu ?"""
    subject, kind = draw.subject(), draw.one((*_OWNED, "books", "flowers"))
    inversion = draw.inversion(subject, 0.5)
    if draw.chance(0.35):
        many = noun_phrase(HOW_MANY, draw.one(OBJECTS[kind]), True)
        return question(subject, AVOIR, asking=many.phrase, inversion=inversion)
    noun = draw.one(OBJECTS[kind])
    what = noun_phrase(A, noun, draw.plural(noun), draw.adjective(kind, 0.0))
    return question(subject, AVOIR, what.phrase, inversion=inversion)


def where_is(draw: Draw) -> Phrase:
    """où sont tes clés ?; où est mon frère ?"""
    tense = draw.one(("present", "present", "imperfect"))
    subject = draw.definite(draw.one(_OWNED)).subject if draw.chance(0.6) else draw.person()
    verb = Phrase(verb_group("être", subject, tense), be(subject.slot, tense))
    return Phrase("où", "where").then(verb, subject.phrase, Phrase("?", "?"))


def whose_place(draw: Draw) -> Phrase:
    """je suis chez ma sœur."""
    subject, tense = draw.subject(), draw.one(("present", "present", "imperfect"))
    where = at_home_of(draw, subject)
    at = Phrase(where.french, f"at {where.english}")
    return statement(subject, ETRE, at, tense, PAS if draw.chance(0.2) else None)


def at_home_of(draw: Draw, subject: Subject) -> Phrase:
    """The place of someone else: "chez le médecin" = "the doctor's house"."""
    if draw.chance(0.3):
        said, _, whose, slot = draw.one(STRESSED_PRONOUNS)
        if slot != subject.slot and overlap(slot, subject.slot):
            return at_home_of(draw, subject)  # not "nous sommes chez moi"
        return Phrase(f"chez {said}", f"{whose} house")
    owner = draw.person()
    if owner.french == subject.french:
        return at_home_of(draw, subject)
    return Phrase(f"chez {owner.french}", f"{possessive(owner.english, owner.plural)} house")

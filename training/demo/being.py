"""What people are and have: professions, moods, nationalities, age, comparisons."""

from __future__ import annotations

from . import english
from .adjectives import COMPARED, GOOD, MOODS, NATIONALITIES, OF_PEOPLE
from .clauses import agreed, noun_phrase, question, statement
from .determiners import AGES, BARE, HOURS, A
from .draw import Draw
from .people import MAN, NAMES, PROFESSIONS, STRESSED_PRONOUNS, WOMAN, overlap
from .places import LANDS, TIMES
from .verbs import AVOIR_BE, ETRE, FAIRE_BE, FELT, NEEDS, PAS, PLUS
from .words import Middle, Noun, Phrase, Subject

_VERY = Phrase("très", "very")
_IT = Subject("il", "it", 2, plural=False, feminine=False, is_pronoun=True)


def profession_of(subject: Subject, profession: tuple[Noun, Noun]) -> Phrase:
    """A profession without its article in French: "étudiante" = "a student"."""
    noun = profession[subject.feminine]
    said = noun_phrase(BARE, noun, subject.plural).french
    return Phrase(said, noun_phrase(A, noun, subject.plural).english)


def _who(draw: Draw) -> Subject:
    """Someone who has no profession yet in the sentence."""
    if draw.chance(0.6):
        return draw.pronoun()
    return draw.one(NAMES) if draw.chance(0.4) else draw.relative()


def _tense(draw: Draw) -> str:
    return "present" if draw.chance(0.6) else draw.one(("imperfect", "imperfect", "future"))


def _middle(draw: Draw, tense: str) -> Middle | None:
    if tense == "present" and draw.chance(0.1):
        return PLUS
    return draw.negation(0.3)


def profession(draw: Draw) -> Phrase:
    """je ne suis pas médecin."""
    subject, tense = _who(draw), _tense(draw)
    what = profession_of(subject, draw.one(PROFESSIONS))
    return statement(subject, ETRE, what, tense, _middle(draw, tense))


def profession_question(draw: Draw) -> Phrase:
    """est-ce que tu es médecin ?"""
    subject, tense = _who(draw), draw.one(("present", "present", "imperfect"))
    what = profession_of(subject, draw.one(PROFESSIONS))
    return question(subject, ETRE, what, tense, inversion=draw.inversion(subject))


def good_profession(draw: Draw) -> Phrase:
    """tu es une bonne étudiante: with an adjective the article comes back."""
    subject = _who(draw)
    while subject.plural or (subject.is_pronoun and subject.slot == 2):
        subject = _who(draw)  # "il est un bon médecin" would be "c'est un bon médecin"
    noun = draw.one(PROFESSIONS)[subject.feminine]
    what = noun_phrase(A, noun, adjective=draw.one((*GOOD, *OF_PEOPLE)))
    return statement(subject, ETRE, what.phrase, middle=draw.negation())


def someone_is(draw: Draw) -> Phrase:
    """paul est un homme honnête."""
    name = draw.one(NAMES)
    noun = WOMAN if name.feminine else MAN
    tense = draw.one(("present", "imperfect"))
    what = noun_phrase(A, noun, adjective=draw.one(OF_PEOPLE))
    return statement(name, ETRE, what.phrase, tense, draw.negation())


def mood(draw: Draw) -> Phrase:
    """elles sont très fatiguées aujourd'hui."""
    subject, tense = draw.subject(), _tense(draw)
    what = agreed(draw.one((*MOODS, *COMPARED)), subject)
    if draw.chance(0.25):
        what = _VERY.then(what)
    return statement(subject, ETRE, what, tense, _middle(draw, tense))


def mood_now(draw: Draw) -> Phrase:
    """je suis malade aujourd'hui; j'étais malade hier."""
    subject = draw.subject()
    tense, times = draw.one((("present", "present"), ("imperfect", "past"), ("future", "future")))
    when = Phrase("aujourd'hui", "today") if tense == "present" else draw.one(TIMES[times])
    what = agreed(draw.one(MOODS), subject).then(when)
    return statement(subject, ETRE, what, tense, draw.negation())


def mood_question(draw: Draw) -> Phrase:
    """es-tu prête ?"""
    subject, tense = draw.subject(), _tense(draw)
    what = agreed(draw.one((*MOODS, *COMPARED)), subject)
    return question(subject, ETRE, what, tense, inversion=draw.inversion(subject))


def nationality(draw: Draw) -> Phrase:
    """ma voisine est allemande."""
    subject = draw.subject()
    what = agreed(draw.one(NATIONALITIES), subject)
    if draw.chance(0.3):
        return question(subject, ETRE, what, inversion=draw.inversion(subject))
    return statement(subject, ETRE, what, middle=draw.negation())


def need(draw: Draw) -> Phrase:
    """nous n'avons plus faim: avoir in French, to be in English."""
    subject, tense = draw.subject(), draw.one(("present", "present", "imperfect", "future"))
    if draw.chance(0.15):
        return statement(subject, AVOIR_BE, _VERY.then(draw.one(FELT)), tense)
    return statement(subject, AVOIR_BE, draw.one(NEEDS), tense, _middle(draw, tense))


def need_question(draw: Draw) -> Phrase:
    """avez-vous soif ?"""
    subject, tense = draw.subject(), draw.one(("present", "present", "imperfect", "future"))
    inversion = draw.inversion(subject)
    return question(subject, AVOIR_BE, draw.one(NEEDS), tense, inversion=inversion)


def age(draw: Draw) -> Phrase:
    """sophie a vingt ans."""
    subject, tense = draw.subject(), draw.one(("present", "present", "imperfect"))
    number = Phrase(*draw.one(AGES))
    years = number.then(Phrase("ans", "years old"))
    return statement(subject, AVOIR_BE, years, tense, draw.negation(0.15))


def comparison(draw: Draw) -> Phrase:
    """simon est plus fort que moi."""
    subject, adjective = draw.subject(), draw.one(COMPARED)
    if draw.chance(0.5):
        said, translated, _, slot = draw.one(STRESSED_PRONOUNS)
        other = Phrase(said, translated)
        if slot == subject.slot or overlap(slot, subject.slot):
            return comparison(draw)
    else:
        other = draw.person().phrase
        if other.french == subject.french:
            return comparison(draw)
    quality = agreed(adjective, subject)
    kind, more, than = draw.one(
        (
            ("plus", english.comparative(adjective.english), "than"),
            ("moins", f"less {adjective.english}", "than"),
            ("aussi", f"as {adjective.english}", "as"),
        )
    )
    compared = Phrase(
        f"{kind} {quality.french} que {other.french}", f"{more} {than} {other.english}"
    )
    return statement(subject, ETRE, compared)


def weather(draw: Draw) -> Phrase:
    """il fait froid à paris."""
    what = draw.one((Phrase("froid", "cold"), Phrase("chaud", "hot")))
    if draw.chance(0.3):
        what = _VERY.then(what)
    where = draw.one(LANDS)
    what = what.then(Phrase(where.french, f"in {where.english}"))
    tense = draw.one(("present", "imperfect", "future"))
    if draw.chance(0.2):
        return question(_IT, FAIRE_BE, what, tense, inversion=draw.chance(0.5))
    return statement(_IT, FAIRE_BE, what, tense, draw.negation())


def hour(draw: Draw) -> Phrase:
    """il est huit heures."""
    what = draw.one(HOURS)
    kind = draw.one(("is", "was", "asked"))
    if kind == "asked":
        return question(_IT, ETRE, what, inversion=draw.chance(0.5))
    tense = "present" if kind == "is" else "imperfect"
    return statement(_IT, ETRE, what, tense, PAS if draw.chance(0.5) else None)

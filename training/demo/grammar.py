"""Every construction of the demo language and how many sentences to draw from it."""

from __future__ import annotations

import re
from collections.abc import Callable

from . import asking, being, doing, linking, moving, things, wishing
from .clauses import finish
from .draw import Draw
from .words import Phrase

# One construction, one function, one line: its share of the corpus in sentences.
CONSTRUCTIONS: dict[Callable[[Draw], Phrase], int] = {
    being.profession: 590,
    being.profession_question: 260,
    being.good_profession: 180,
    being.someone_is: 90,
    being.mood: 440,
    being.mood_now: 220,
    being.mood_question: 220,
    being.nationality: 220,
    being.need: 330,
    being.need_question: 180,
    being.age: 180,
    being.comparison: 260,
    being.weather: 110,
    being.hour: 40,
    things.thing_is: 370,
    things.belonging_is: 180,
    things.it_is: 260,
    things.it_is_whose: 180,
    things.thing_location: 220,
    things.location: 260,
    things.there_is: 260,
    things.having: 330,
    things.having_question: 220,
    things.where_is: 110,
    things.whose_place: 90,
    doing.acting_now: 740,
    doing.acting_before: 740,
    doing.acting_later: 520,
    doing.acting_when: 300,
    doing.habit: 260,
    doing.knowing: 70,
    doing.manner: 150,
    doing.simply: 260,
    doing.company: 180,
    doing.giving: 260,
    doing.to_us: 180,
    doing.language: 180,
    doing.playing: 180,
    moving.going: 330,
    moving.going_home: 110,
    moving.going_question: 150,
    moving.at_place: 180,
    moving.working_at: 180,
    moving.living_in: 220,
    moving.coming_from: 110,
    moving.leaving: 180,
    moving.leaving_at: 150,
    moving.leaving_with: 70,
    asking.whether: 370,
    asking.whether_not: 150,
    asking.where: 150,
    asking.when: 110,
    asking.why: 150,
    asking.what: 180,
    asking.who: 110,
    asking.which: 150,
    asking.how_old: 40,
    wishing.wanting: 260,
    wishing.being_able: 180,
    wishing.having_to: 180,
    wishing.trying: 110,
    wishing.asking_to: 180,
    wishing.would_like: 110,
    wishing.liking: 260,
    wishing.liking_to: 150,
    wishing.order: 180,
    linking.reason: 260,
    linking.opinion: 220,
    linking.person_who: 150,
    linking.thing_that: 150,
}
_TRIES = 4
_SHORTEST, _LONGEST = 3, 12


def words(sentence: str) -> list[str]:
    """The words of a sentence: "qu'as-tu lu ?" -> ["qu", "as", "tu", "lu", "?"]."""
    return re.findall(r"\w+|[?,]", sentence)


def _of_good_length(sentence: str) -> bool:
    return _SHORTEST <= len(re.findall(r"\w+", sentence)) <= _LONGEST


def sentences(construction: Callable[[Draw], Phrase], number: int, seed: int) -> dict[str, str]:
    """Up to `number` sentences of a construction, French to English, in the order drawn.

    Each construction has its own generator, so that a new one leaves the others' sentences alone.

    Raises:
        ValueError: a French sentence has two translations, which is a fault in the grammar.
    """
    draw = Draw(f"{seed} {construction.__name__}")
    drawn: dict[str, str] = {}
    for _ in range(number * _TRIES):
        french, english = finish(construction(draw))
        if not (_of_good_length(french) and _of_good_length(english)):
            continue
        if drawn.setdefault(french, english) != english:
            raise ValueError(f"two translations of {french!r}: {drawn[french]!r} and {english!r}")
        if len(drawn) == number:
            break
    return drawn

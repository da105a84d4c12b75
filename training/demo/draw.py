"""Random choices from the lexicon, all from one seeded generator."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from . import adjectives, people
from .clauses import noun_phrase
from .determiners import NOT_A, NOT_SOME, NUMBERS, POSSESSIVES, SOME, THE, THIS, A
from .nouns import OBJECTS
from .places import TIMES
from .verbs import PAS
from .words import NOTHING, Adjective, Determiner, Middle, Noun, NounPhrase, Phrase, Subject, Verb

# Wild animals belong to nobody.
_NOBODYS = "wild"
_Item = TypeVar("_Item")


class Draw:
    """Draws words and phrases; the same seed draws the same ones on every machine."""

    def __init__(self, seed: str) -> None:
        # A string seeds through SHA-512, whatever PYTHONHASHSEED is.
        self._random = Random(seed)

    def one(self, items: Sequence[_Item]) -> _Item:
        """One of the items, each as likely as the others."""
        return items[int(self._random.random() * len(items))]

    def chance(self, share: float) -> bool:
        """True in this share of the calls."""
        return self._random.random() < share

    def tense(self, present: float = 0.45, past: float = 0.35) -> str:
        """The tense: "present", "past", or else "future"."""
        number = self._random.random()
        if number < present:
            return "present"
        return "past" if number < present + past else "future"

    def negation(self, share: float = 0.25) -> Middle | None:
        """The word "pas" in this share of the calls."""
        return PAS if self.chance(share) else None

    def time(self, tense: str, share: float = 0.3) -> Phrase:
        """When, to suit the tense, in this share of the calls."""
        return self.one(TIMES[tense]) if self.chance(share) else NOTHING

    def pronoun(self) -> Subject:
        """A subject pronoun, the six slots as likely as each other."""
        return self.one(self.one(people.PRONOUNS))

    def relative(self) -> Subject:
        """Someone of a family or circle: "mon amie", "leurs voisins"."""
        noun = self.one(people.FAMILY)
        return noun_phrase(self.one(POSSESSIVES), noun, self.plural(noun)).subject

    def person(self) -> Subject:
        """Someone who is not a pronoun: a name, a relative, "le médecin", "une fille"."""
        kind = self._random.random()
        if kind < 0.25:
            return self.one(people.NAMES)
        if kind < 0.6:
            return self.relative()
        if kind < 0.8:
            noun = self.one(self.one(people.PROFESSIONS))
            return noun_phrase(THE, noun, self.plural(noun)).subject
        return noun_phrase(THE, noun := self.one(people.PEOPLE), self.plural(noun)).subject

    def subject(self, pronouns: float = 0.6) -> Subject:
        """Whoever does it: a pronoun in this share of the calls, or else a person."""
        return self.pronoun() if self.chance(pronouns) else self.person()

    def inversion(self, subject: Subject, share: float = 0.4) -> bool:
        """Whether to ask by inversion: in this share of the calls, with a pronoun but "je"."""
        return subject.is_pronoun and subject.slot != 0 and self.chance(share)

    def plural(self, noun: Noun, share: float = 0.3) -> bool:
        """Whether to use the plural, in this share of the calls if the noun has both numbers."""
        return noun.count == "plural" or (noun.count == "both" and self.chance(share))

    def adjective(self, kind: str, share: float) -> Adjective | None:
        """An adjective that suits a class of nouns, in this share of the calls."""
        fitting = adjectives.ADJECTIVES.get(kind)
        return self.one(fitting) if fitting and self.chance(share) else None

    def definite(self, kind: str) -> NounPhrase:
        """A thing one can point at: "le chat", "ma voiture", "ces fleurs"."""
        noun = self.one(OBJECTS[kind])
        word = self.one((THE, THE, THIS, THE if kind == _NOBODYS else self.one(POSSESSIVES)))
        return noun_phrase(word, noun, self.plural(noun))

    def thing(self, kind: str, negated: bool = False, adjective: float = 0.15) -> NounPhrase:
        """Any object of a verb: "le chat", "des pommes", "deux livres", "de pain" if negated."""
        noun = self.one(OBJECTS[kind])
        plural = self.plural(noun)
        quality = self.adjective(kind, adjective)
        if plural and quality and quality.before:
            # "des petits chats" and "de petits chats" are both said; we say neither.
            word = self.one((THE, THIS) if kind == _NOBODYS else (THE, THIS, *POSSESSIVES))
        else:
            word = self._determiner(noun, plural, negated, owned=kind != _NOBODYS)
        return noun_phrase(word, noun, plural, quality)

    def _determiner(self, noun: Noun, plural: bool, negated: bool, owned: bool) -> Determiner:
        kind = self._random.random()
        if kind < 0.3:
            return THE
        if kind < 0.5:
            return self.one(POSSESSIVES) if owned else THE
        if kind < 0.58:
            return THIS
        if noun.count == "mass":
            return NOT_SOME if negated else SOME
        if plural and not negated and kind < 0.75:
            return self.one(NUMBERS[:6])
        return NOT_A if negated else A

    def object_of(self, verb: Verb, negated: bool = False) -> Phrase:
        """Something or someone the verb acts on."""
        kind = self.one(verb.objects)
        if kind == "people":
            return self.person().phrase
        if kind == "transport":
            return noun_phrase(self.one((THE, THIS)), self.one(OBJECTS[kind])).phrase
        return self.thing(kind, negated).phrase

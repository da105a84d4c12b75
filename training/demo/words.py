"""The kinds of words the demo grammar is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Phrase(NamedTuple):
    """The same words in both languages; the French is not yet elided ("de eau")."""

    french: str
    english: str

    def then(self, *others: Phrase) -> Phrase:
        """This phrase with others behind it, empty ones left out."""
        phrases = (self, *others)
        return Phrase(
            " ".join(phrase.french for phrase in phrases if phrase.french),
            " ".join(phrase.english for phrase in phrases if phrase.english),
        )


NOTHING = Phrase("", "")


@dataclass(frozen=True)
class Noun:
    """A noun; `count` is "both", "mass" (bread), "singular" or "plural" (the only number used)."""

    french: str
    english: str
    feminine: bool = False
    count: str = "both"


@dataclass(frozen=True)
class Adjective:
    """An adjective in its masculine singular; `before` puts it in front of the French noun."""

    french: str
    english: str
    before: bool = False


@dataclass(frozen=True)
class Verb:
    """A verb in its two infinitives, with the small word it governs ("jouer à", "wait for").

    `objects` names the classes of nouns (keys of `nouns.OBJECTS`, or "people") it acts on.
    """

    french: str
    english: str
    objects: tuple[str, ...] = ()


class Middle(NamedTuple):
    """A word that stands after the French finite verb and before the English main verb.

    With `negative` the French verb takes "ne" as well: "pas", "jamais", "plus".
    """

    french: str
    english: str
    negative: bool = False


class Determiner(NamedTuple):
    """An article, a possessive, a number: its French forms and its two English ones.

    A form left empty is the one before it; `vowel` gives the masculine and the feminine
    singular before a vowel ("cet arbre", "mon amie") where elision does not see to it.
    """

    masculine: str
    feminine: str
    plural: str
    english: str
    english_plural: str
    vowel: tuple[str, str] | None = None
    feminine_plural: str = ""


@dataclass(frozen=True)
class NounPhrase:
    """Determiner, noun and adjective in both languages, with what agrees with them."""

    french: str
    english: str
    feminine: bool
    plural: bool

    @property
    def phrase(self) -> Phrase:
        """The words alone."""
        return Phrase(self.french, self.english)

    @property
    def subject(self) -> Subject:
        """The same as the subject of a verb."""
        return Subject(
            self.french, self.english, 5 if self.plural else 2, self.plural, self.feminine
        )


@dataclass(frozen=True)
class Subject:
    """Whoever does it; `slot` is the row of the paradigm, 0 (je) to 5 (ils, elles).

    `plural` is apart from the slot because "vous" may be one person ("vous êtes étudiant").
    """

    french: str
    english: str
    slot: int
    plural: bool
    feminine: bool
    is_pronoun: bool = False

    @property
    def phrase(self) -> Phrase:
        """The words alone."""
        return Phrase(self.french, self.english)

    @property
    def pronoun(self) -> Subject:
        """What takes the subject up again: "il" for "mon frère", a pronoun for itself."""
        if self.is_pronoun:
            return self
        if self.plural:
            return Subject(
                "elles" if self.feminine else "ils", "they", 5, True, self.feminine, True
            )
        if self.feminine:
            return Subject("elle", "she", 2, False, True, True)
        return Subject("il", "he", 2, False, False, True)

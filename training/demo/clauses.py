"""Whole clauses in both languages: noun phrases, statements, questions, commands."""

from __future__ import annotations

from . import english, french, french_verbs
from .determiners import THE
from .words import NOTHING, Adjective, Determiner, Middle, Noun, NounPhrase, Phrase, Subject, Verb


def noun_phrase(
    word: Determiner, noun: Noun, plural: bool = False, adjective: Adjective | None = None
) -> NounPhrase:
    """Determiner, noun and adjective, agreed in French: "une vieille voiture" = "an old car"."""
    return NounPhrase(
        french.noun_phrase(word, noun, plural, adjective),
        english.noun_phrase(word, noun, plural, adjective),
        noun.feminine,
        plural,
    )


def owned(noun: Noun, owner: Subject, plural: bool = False) -> NounPhrase:
    """What belongs to someone: "le livre de marie" = "marie's book"."""
    whose = english.possessive(owner.english, owner.plural)
    return NounPhrase(
        f"{french.noun_phrase(THE, noun, plural)} de {owner.french}",
        english.noun_phrase(Determiner("", "", "", whose, whose), noun, plural),
        noun.feminine,
        plural,
    )


def agreed(adjective: Adjective, subject: Subject | NounPhrase) -> Phrase:
    """An adjective said of a subject: "fatiguées" = "tired"."""
    form = french.agree(adjective.french, subject.feminine, subject.plural)
    return Phrase(form, adjective.english)


def statement(
    subject: Subject,
    verb: Verb,
    complement: Phrase = NOTHING,
    tense: str = "present",
    middle: Middle | None = None,
    pronoun: str = "",
) -> Phrase:
    """Subject, verb, complement: "je ne ai pas vu le chat" = "i did not see the cat".

    `pronoun` is a French object pronoun, whose English then stands in the complement.
    """
    group = french_verbs.verb_group(verb.french, subject, tense, middle, pronoun)
    english_middle = middle.english if middle else ""
    return subject.phrase.then(
        Phrase(group, english.verb_group(verb.english, subject.slot, tense, english_middle)),
        complement,
    )


def question(
    subject: Subject,
    verb: Verb,
    complement: Phrase = NOTHING,
    tense: str = "present",
    middle: Middle | None = None,
    asking: Phrase = NOTHING,
    inversion: bool = False,
) -> Phrase:
    """A question with "est-ce que" or, for a pronoun, by inversion; `asking` is "où", "quand"..."""
    if inversion:
        asked = french_verbs.inverted(verb.french, subject, tense, middle)
    else:
        group = french_verbs.verb_group(verb.french, subject, tense, middle)
        asked = f"est-ce que {subject.french} {group}"
    english_middle = middle.english if middle else ""
    return asking.then(
        Phrase(
            asked,
            english.question(verb.english, subject.english, subject.slot, tense, english_middle),
        ),
        complement,
        Phrase("?", "?"),
    )


def command(verb: Verb, complement: Phrase, slot: int, middle: Middle | None = None) -> Phrase:
    """An order to "tu" (slot 1) or "vous" (slot 4): "ne mange pas" = "do not eat"."""
    form = french_verbs.imperative(verb.french, slot)
    if middle is None:
        return Phrase(form, verb.english).then(complement)
    return Phrase(f"ne {form} {middle.french}", f"do {middle.english} {verb.english}").then(
        complement
    )


def infinitive(verb: Verb, complement: Phrase = NOTHING) -> Phrase:
    """The infinitive behind another verb: "manger une pomme" = "eat an apple"."""
    return Phrase(verb.french, verb.english).then(complement)


def finish(phrase: Phrase) -> Phrase:
    """A sentence as it is written: French elided and contracted, English "?" close to its word."""
    return Phrase(
        french.finish(phrase.french).replace(" ,", ","),
        phrase.english.replace(" ?", "?").replace(" ,", ","),
    )

"""French spelling and agreement: elision, contraction, plurals, feminines, noun phrases."""

from __future__ import annotations

import re

from .words import Adjective, Determiner, Noun

_VOWELS = "aeiouàâéèêëîïôûœ"
# Words that sound as if they began with a consonant although they are spelt otherwise.
_NO_ELISION = ("haricot", "hibou", "hamster", "héros", "homard", "huit", "onze", "oui", "yaourt")
_ELIDED = re.compile(r"(?<![^\s'])(je|ne|que|de|le|la|me|te|ce) (?=(\S+))")
_CONTRACTED = {"à le": "au", "à les": "aux", "de le": "du", "de les": "des"}
_CONTRACTION = re.compile(r"(?<!\S)(à|de) (les?) ")

_PLURALS = {
    "grand-mère": "grands-mères",
    "grand-père": "grands-pères",
    "hibou": "hiboux",
    "pomme de terre": "pommes de terre",
}
_FEMININES = {
    "beau": "belle",
    "blanc": "blanche",
    "bon": "bonne",
    "frais": "fraîche",
    "gentil": "gentille",
    "inquiet": "inquiète",
    "long": "longue",
    "marron": "marron",
    "nouveau": "nouvelle",
    "vieux": "vieille",
}
_BEFORE_VOWEL = {"beau": "bel", "nouveau": "nouvel", "vieux": "vieil"}
_FEMININE_ENDINGS = {"er": "ère", "eux": "euse", "if": "ive", "en": "enne"}


def begins_with_vowel(word: str) -> bool:
    """Whether a word elides the one before it: "arbre" and "hôtel" do, "hibou" does not."""
    if word.startswith(_NO_ELISION):
        return False
    return word == "y" or word[0] in _VOWELS or word[0] == "h"


def finish(text: str) -> str:
    """Elides and contracts: "je ne ai pas" -> "je n'ai pas", "à le marché" -> "au marché"."""
    text = _ELIDED.sub(
        lambda match: f"{match[1][:-1]}'" if begins_with_vowel(match[2]) else f"{match[1]} ",
        text,
    )
    text = re.sub(r"(?<!\S)si (?=ils?\b)", "s'", text)
    return _CONTRACTION.sub(lambda match: f"{_CONTRACTED[f'{match[1]} {match[2]}']} ", text)


def plural(word: str) -> str:
    """The plural of a noun or of a masculine adjective: "oiseau" -> "oiseaux"."""
    if word in _PLURALS:
        return _PLURALS[word]
    if word.endswith(("s", "x", "z")) or word == "marron":
        return word
    if word.endswith("al"):
        return f"{word[:-2]}aux"
    return f"{word}x" if word.endswith(("eau", "eu")) and word != "bleu" else f"{word}s"


def feminine(adjective: str) -> str:
    """The feminine singular of an adjective: "heureux" -> "heureuse", "léger" -> "légère"."""
    if adjective in _FEMININES:
        return _FEMININES[adjective]
    if adjective.endswith("e"):
        return adjective
    for ending, replacement in _FEMININE_ENDINGS.items():
        if adjective.endswith(ending):
            return adjective.removesuffix(ending) + replacement
    return f"{adjective}e"


def agree(adjective: str, is_feminine: bool, is_plural: bool) -> str:
    """An adjective (or past participle) in the gender and number of its noun."""
    form = feminine(adjective) if is_feminine else adjective
    return plural(form) if is_plural else form


def determiner(word: Determiner, is_feminine: bool, is_plural: bool, following: str) -> str:
    """The form of a determiner before the word that follows it."""
    if is_plural:
        return (word.feminine_plural if is_feminine else "") or word.plural
    if word.vowel and begins_with_vowel(following):
        return word.vowel[is_feminine]
    return word.feminine if is_feminine else word.masculine


def noun_phrase(
    word: Determiner, noun: Noun, is_plural: bool = False, adjective: Adjective | None = None
) -> str:
    """Determiner, noun and adjective in French order: "un bel arbre", "une robe rouge"."""
    words = [plural(noun.french) if is_plural else noun.french]
    if adjective is not None:
        form = agree(adjective.french, noun.feminine, is_plural)
        if adjective.before and not (noun.feminine or is_plural) and begins_with_vowel(words[0]):
            form = _BEFORE_VOWEL.get(form, form)
        words.insert(0 if adjective.before else 1, form)
    return " ".join([determiner(word, noun.feminine, is_plural, words[0]), *words]).strip()

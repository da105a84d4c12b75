"""English spelling and verbs: a or an, plurals, third person, past, do-support, comparatives."""

from __future__ import annotations

import re

from .words import Adjective, Determiner, Noun

_PLURALS = {
    "child": "children",
    "knife": "knives",
    "man": "men",
    "scarf": "scarves",
    "shelf": "shelves",
    "wolf": "wolves",
    "woman": "women",
}
_PASTS = {
    "bring": "brought",
    "buy": "bought",
    "choose": "chose",
    "come": "came",
    "cut": "cut",
    "drink": "drank",
    "drive": "drove",
    "eat": "ate",
    "fall": "fell",
    "draw": "drew",
    "find": "found",
    "forget": "forgot",
    "give": "gave",
    "go": "went",
    "have": "had",
    "leave": "left",
    "lend": "lent",
    "lose": "lost",
    "meet": "met",
    "read": "read",
    "run": "ran",
    "see": "saw",
    "sell": "sold",
    "send": "sent",
    "sing": "sang",
    "sleep": "slept",
    "speak": "spoke",
    "swim": "swam",
    "take": "took",
    "understand": "understood",
    "wear": "wore",
    "write": "wrote",
}
_SILENT_H = ("hour", "honest")
_CONSONANT_U = ("uni", "euro", "use")
_MODALS = ("can", "must")


def article(following: str) -> str:
    """The article, "a" or "an", by the sound that follows: "an hour", "a university"."""
    if following.startswith(_SILENT_H):
        return "an"
    if following.startswith(_CONSONANT_U):
        return "a"
    return "an" if following[0] in "aeiou" else "a"


def _sibilant(word: str) -> bool:
    return word.endswith(("s", "x", "z", "ch", "sh"))


def _consonant_y(word: str) -> bool:
    return re.search(r"[^aeiou]y$", word) is not None


def _with_s(word: str) -> str:
    if _consonant_y(word):
        return f"{word[:-1]}ies"
    return f"{word}es" if _sibilant(word) or word.endswith(("to", "go", "do")) else f"{word}s"


def plural(noun: str) -> str:
    """The plural of a noun: "box" -> "boxes", "child" -> "children"."""
    return _PLURALS.get(noun) or _with_s(noun)


def possessive(owner: str, is_plural: bool) -> str:
    """The owner before what is owned: "my brother's", "my brothers'", "the children's"."""
    return f"{owner}'" if is_plural and owner.endswith("s") else f"{owner}'s"


def third_person(verb: str) -> str:
    """The present with he, she or it: "study" -> "studies", "look for" -> "looks for"."""
    head, space, rest = verb.partition(" ")
    return ("has" if head == "have" else _with_s(head)) + space + rest


def past(verb: str) -> str:
    """The simple past: "play" -> "played", "study" -> "studied", "go out" -> "went out"."""
    head, space, rest = verb.partition(" ")
    if head in _PASTS:
        form = _PASTS[head]
    elif _consonant_y(head):
        form = f"{head[:-1]}ied"
    else:
        form = f"{head}d" if head.endswith("e") else f"{head}ed"
    return form + space + rest


def comparative(adjective: str) -> str:
    """The comparative: "younger", "bigger", "happier", "more tired"."""
    syllables = len(re.findall(r"[aeiouy]+", adjective.removesuffix("e")))
    if _consonant_y(adjective):
        return f"{adjective[:-1]}ier"
    if syllables > 1:
        return f"more {adjective}"
    if re.search(r"[^aeiou][aeiou][bdgnt]$", adjective):
        return f"{adjective}{adjective[-1]}er"
    return f"{adjective.removesuffix('e')}er"


def be(slot: int, tense: str = "present") -> str:
    """The form of "to be": slot 0 (i) to 5 (they), present or past."""
    if tense == "present":
        return {0: "am", 2: "is"}.get(slot, "are")
    return "was" if slot in (0, 2) else "were"


def _auxiliary(verb: str, slot: int, tense: str) -> tuple[str, str] | None:
    """The auxiliary and the rest, for a group that has one without "do"."""
    if tense == "future":
        return be(slot), f"going to {verb}"
    if verb == "be":
        return be(slot, tense), ""
    return (verb, "") if verb in _MODALS else None


def verb_group(verb: str, slot: int, tense: str, middle: str = "") -> str:
    """The verb of a statement: "does not eat", "never ate", "is not going to eat".

    `tense` is "present", "past", "imperfect" (the simple past as well) or "future".
    """
    auxiliary = _auxiliary(verb, slot, tense)
    if auxiliary is not None:
        text = " ".join(word for word in (auxiliary[0], middle, auxiliary[1]) if word)
        return text.replace("can not", "cannot")
    if middle == "not":
        return f"{_do(slot, tense)} not {verb}"
    if tense != "present":
        form = past(verb)
    else:
        form = third_person(verb) if slot == 2 else verb
    return f"{middle} {form}" if middle else form


def question(verb: str, subject: str, slot: int, tense: str, middle: str = "") -> str:
    """The verb of a question around its subject: "does he eat", "is she going to eat"."""
    first, rest = _auxiliary(verb, slot, tense) or (_do(slot, tense), verb)
    return " ".join(word for word in (first, subject, middle, rest) if word)


def _do(slot: int, tense: str) -> str:
    if tense != "present":
        return "did"
    return "does" if slot == 2 else "do"


def noun_phrase(
    word: Determiner, noun: Noun, is_plural: bool = False, adjective: Adjective | None = None
) -> str:
    """Determiner, adjective and noun: "an old car", "two black cats"."""
    words = [plural(noun.english) if is_plural else noun.english]
    if adjective is not None:
        words.insert(0, adjective.english)
    first = word.english_plural if is_plural else word.english
    if first == "a":
        first = article(words[0])
    return " ".join([first, *words]).strip()

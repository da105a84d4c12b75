"""Articles, demonstratives, possessives and numbers, each in both languages."""

from __future__ import annotations

from .words import Determiner, Phrase

THE = Determiner("le", "la", "les", "the", "the")
A = Determiner("un", "une", "des", "a", "")
SOME = Determiner("de le", "de la", "de les", "", "")
# What "un", "du" and "des" become behind a negated verb: "je n'ai pas de chien".
NOT_A = Determiner("de", "de", "de", "a", "")
NOT_SOME = Determiner("de", "de", "de", "", "")
# "j'aime les chats noirs" is about black cats in general, and English then has no article.
GENERIC = Determiner("le", "la", "les", "", "")
THIS = Determiner("ce", "cette", "ces", "this", "these", vowel=("cet", "cette"))
NONE = Determiner("de", "de", "de", "no", "no")
BARE = Determiner("", "", "", "", "")
LOTS_OF = Determiner("beaucoup de", "beaucoup de", "beaucoup de", "a lot of", "a lot of")
HOW_MANY = Determiner("combien de", "combien de", "combien de", "how much", "how many")
WHICH = Determiner("quel", "quelle", "quels", "which", "which", feminine_plural="quelles")

POSSESSIVES = (
    Determiner("mon", "ma", "mes", "my", "my", vowel=("mon", "mon")),
    Determiner("ton", "ta", "tes", "your", "your", vowel=("ton", "ton")),
    Determiner("notre", "notre", "nos", "our", "our"),
    Determiner("votre", "votre", "vos", "your", "your"),
    Determiner("leur", "leur", "leurs", "their", "their"),
)

_NUMBERS = {
    "deux": "two",
    "trois": "three",
    "quatre": "four",
    "cinq": "five",
    "six": "six",
    "sept": "seven",
    "huit": "eight",
    "neuf": "nine",
    "dix": "ten",
    "onze": "eleven",
    "douze": "twelve",
}
NUMBERS = tuple(Determiner("", "", french, "", english) for french, english in _NUMBERS.items())
HOURS = (
    *(
        Phrase(f"{french} heures", f"{english} o'clock")
        for french, english in _NUMBERS.items()
        if french != "douze"
    ),
    Phrase("midi", "noon"),
    Phrase("minuit", "midnight"),
)
AGES = (
    *list(_NUMBERS.items())[3:],
    ("quinze", "fifteen"),
    ("vingt", "twenty"),
    ("trente", "thirty"),
    ("quarante", "forty"),
    ("cinquante", "fifty"),
)

"""Where and when: places, towns and countries, prepositions, times."""

from __future__ import annotations

from .words import Phrase


def _rows(*rows: str) -> tuple[Phrase, ...]:
    return tuple(Phrase(*row.split(" = ")) for row in rows)


# Behind "à" in French, behind "at" or "to" in English.
PLACES = _rows(
    "la gare = the station",
    "la plage = the beach",
    "la bibliothèque = the library",
    "la banque = the bank",
    "la piscine = the swimming pool",
    "la boulangerie = the bakery",
    "la université = the university",
    "la école = school",
    "le hôpital = the hospital",
    "le hôtel = the hotel",
    "le aéroport = the airport",
    "le bureau = the office",
    "le marché = the market",
    "le musée = the museum",
    "le parc = the park",
    "le restaurant = the restaurant",
    "le cinéma = the cinema",
    "le supermarché = the supermarket",
)
CITIES = _rows(
    "paris = paris", "lyon = lyon", "rome = rome", "berlin = berlin", "madrid = madrid",
    "londres = london", "genève = geneva", "bruxelles = brussels",
)  # fmt: skip
_FEMININE_COUNTRIES = _rows(
    "france = france", "espagne = spain", "italie = italy", "allemagne = germany",
    "angleterre = england", "chine = china",
)  # fmt: skip
_MASCULINE_COUNTRIES = _rows(
    "japon = japan", "canada = canada", "brésil = brazil", "mexique = mexico"
)
_PLURAL_COUNTRIES = _rows("états-unis = the united states")


def _behind(preposition: str, names: tuple[Phrase, ...]) -> tuple[Phrase, ...]:
    return tuple(Phrase(f"{preposition} {name.french}", name.english) for name in names)


# In or to a town or country, and from it; English puts its own preposition in front.
LANDS = (
    *_behind("à", CITIES),
    *_behind("en", _FEMININE_COUNTRIES),
    *_behind("à le", _MASCULINE_COUNTRIES),
    *_behind("à les", _PLURAL_COUNTRIES),
)
FROM_LANDS = (
    *_behind("de", CITIES),
    *_behind("de", _FEMININE_COUNTRIES),
    *_behind("de le", _MASCULINE_COUNTRIES),
    *_behind("de les", _PLURAL_COUNTRIES),
)

BESIDE = _rows("devant = in front of", "derrière = behind", "près de = near", "à côté de = next to")
ON = _rows("sur = on", "sous = under")
INSIDE = Phrase("dans", "in")

_DAYS = _rows(
    "lundi = monday", "mardi = tuesday", "mercredi = wednesday", "jeudi = thursday",
    "vendredi = friday", "samedi = saturday", "dimanche = sunday",
)  # fmt: skip

TIMES: dict[str, tuple[Phrase, ...]] = {
    "present": (
        *_rows("tous les jours = every day", "le matin = in the morning"),
        *_rows("le soir = in the evening", "aujourd'hui = today"),
        *(Phrase(f"le {day.french}", f"on {day.english}s") for day in _DAYS),
    ),
    "past": (
        *_rows("hier = yesterday", "hier soir = last night", "ce matin = this morning"),
        *_rows("la semaine dernière = last week"),
        *(Phrase(f"{day.french} dernier", f"last {day.english}") for day in _DAYS),
    ),
    "future": (
        *_rows("demain = tomorrow", "demain matin = tomorrow morning", "ce soir = tonight"),
        *_rows("dans une heure = in an hour", "la semaine prochaine = next week"),
        *(Phrase(f"{day.french} prochain", f"next {day.english}") for day in _DAYS),
    ),
}

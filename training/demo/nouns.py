"""Things, food and animals, in classes by what can be done with them.

One meaning a word: "le bureau" is an office here and never a desk.
"""

from __future__ import annotations

from .words import Noun


def nouns(*rows: str, feminine: bool = False, count: str = "both") -> tuple[Noun, ...]:
    """Nouns from rows of "french = english"."""
    pairs = (row.split(" = ") for row in rows)
    return tuple(Noun(french, english, feminine, count) for french, english in pairs)


FOOD = (
    *nouns("gâteau = cake", "citron = lemon", "œuf = egg", "haricot = bean"),
    *nouns("pomme = apple", "orange = orange", "salade = salad", "soupe = soup", feminine=True),
    *nouns("pain = bread", "fromage = cheese", "poisson = fish", "riz = rice", count="mass"),
    *nouns("viande = meat", "confiture = jam", feminine=True, count="mass"),
)
DRINKS = (
    *nouns("café = coffee", "thé = tea", "lait = milk", "jus = juice", count="mass"),
    *nouns("eau = water", "limonade = lemonade", feminine=True, count="mass"),
)
BOOKS = (
    *nouns("livre = book", "roman = novel", "poème = poem"),
    *nouns("lettre = letter", "histoire = story", feminine=True),
)
NEWS = nouns("journal = newspaper")
THINGS = (
    *nouns("téléphone = phone", "parapluie = umbrella", "ordinateur = computer"),
    *nouns("stylo = pen", "couteau = knife"),
    *nouns("clé = key", "montre = watch", "lampe = lamp", feminine=True),
    *nouns("assiette = plate", "bouteille = bottle", "photo = picture", feminine=True),
)
BAGS = (*nouns("sac = bag"), *nouns("valise = suitcase", "boîte = box", feminine=True))
CLOTHES = (
    *nouns("chapeau = hat", "manteau = coat", "uniforme = uniform"),
    *nouns("robe = dress", "chemise = shirt", "écharpe = scarf", "cravate = tie", feminine=True),
)
CARS = (*nouns("camion = truck"), *nouns("voiture = car", feminine=True))
TRANSPORT = nouns("train = train", "taxi = taxi", "avion = plane")
DOORS = (
    *nouns("porte = door", "fenêtre = window", "boîte = box", feminine=True),
    *nouns("magasin = store"),
)
SHOWS = nouns("film = movie", "match = game")
SONGS = nouns("chanson = song", feminine=True)
MUSIC = nouns("musique = music", feminine=True, count="mass")
PETS = (
    *nouns("chat = cat", "chien = dog", "cheval = horse", "oiseau = bird", "lapin = rabbit"),
    *nouns("âne = donkey", "canard = duck"),
    *nouns("vache = cow", "poule = hen", "tortue = turtle", feminine=True),
)
WILD = nouns("hibou = owl", "loup = wolf", "singe = monkey", "éléphant = elephant")
FLOWERS = nouns("fleur = flower", "rose = rose", "tulipe = tulip", feminine=True)
HOMES = (
    *nouns("appartement = apartment", "jardin = garden"),
    *nouns("maison = house", feminine=True),
)
SIGHTS = (
    *nouns("pont = bridge", "château = castle"),
    *nouns("église = church", "ville = city", feminine=True),
)
LESSONS = (*nouns("leçon = lesson", feminine=True), *nouns("exercice = exercise"))

# Where things and people are, by the preposition that goes with it.
ROOMS = (
    *nouns("jardin = garden", "salon = living room"),
    *nouns("maison = house", "cuisine = kitchen", "chambre = bedroom", feminine=True),
)
CONTAINERS = (*BAGS, *ROOMS, *nouns("voiture = car", feminine=True))
SUPPORTS = (
    *nouns("lit = bed", "canapé = sofa"),
    *nouns("table = table", "chaise = chair", "étagère = shelf", feminine=True),
)
LANDMARKS = (
    *nouns("arbre = tree", "pont = bridge", "château = castle"),
    *nouns("porte = door", "fenêtre = window", "maison = house", "église = church", feminine=True),
)

OBJECTS: dict[str, tuple[Noun, ...]] = {
    "food": FOOD,
    "drinks": DRINKS,
    "books": BOOKS,
    "news": NEWS,
    "things": THINGS,
    "bags": BAGS,
    "clothes": CLOTHES,
    "cars": CARS,
    "transport": TRANSPORT,
    "doors": DOORS,
    "shows": SHOWS,
    "songs": SONGS,
    "music": MUSIC,
    "pets": PETS,
    "wild": WILD,
    "flowers": FLOWERS,
    "homes": HOMES,
    "sights": SIGHTS,
    "lessons": LESSONS,
}

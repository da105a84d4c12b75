"""Verbs, by what can stand behind them. One meaning a verb: "porter" is to wear."""

from __future__ import annotations

from .words import Middle, Phrase, Verb

ETRE = Verb("être", "be")
AVOIR = Verb("avoir", "have")
# "avoir faim", "il fait froid": another verb in English.
AVOIR_BE = Verb("avoir", "be")
FAIRE_BE = Verb("faire", "be")
ALLER = Verb("aller", "go")

PAS = Middle("pas", "not", negative=True)
JAMAIS = Middle("jamais", "never", negative=True)
PLUS = Middle("plus", "no longer", negative=True)
FREQUENCIES = (
    Middle("souvent", "often"),
    Middle("parfois", "sometimes"),
    Middle("rarement", "rarely"),
    JAMAIS,
)

ON_THINGS = (
    Verb("manger", "eat", ("food",)),
    Verb("boire", "drink", ("drinks",)),
    Verb("lire", "read", ("books", "news")),
    Verb("écrire", "write", ("books",)),
    Verb("acheter", "buy", ("food", "drinks", "things", "clothes", "cars", "flowers", "news")),
    Verb("vendre", "sell", ("things", "cars", "homes", "flowers")),
    Verb("trouver", "find", ("things", "bags", "pets")),
    Verb("perdre", "lose", ("things", "bags", "clothes")),
    Verb("oublier", "forget", ("things", "bags", "clothes")),
    Verb("choisir", "choose", ("clothes", "bags", "books")),
    Verb("ouvrir", "open", ("doors",)),
    Verb("fermer", "close", ("doors",)),
    Verb("laver", "wash", ("clothes", "cars")),
    Verb("porter", "wear", ("clothes",)),
    Verb("regarder", "watch", ("shows", "wild")),
    Verb("chanter", "sing", ("songs",)),
    Verb("prendre", "take", ("transport",)),
    Verb("conduire", "drive", ("cars",)),
    Verb("finir", "finish", ("lessons", "books")),
    Verb("dessiner", "draw", ("pets", "wild", "flowers", "sights")),
)
ON_BOTH = (
    Verb("voir", "see", ("pets", "wild", "sights", "people")),
    Verb("chercher", "look for", ("things", "bags", "pets", "people")),
    Verb("attendre", "wait for", ("transport", "people")),
    Verb("écouter", "listen to", ("songs", "music", "people")),
    Verb("comprendre", "understand", ("lessons", "books", "people")),
)
ON_PEOPLE = (
    Verb("aider", "help", ("people",)),
    Verb("inviter", "invite", ("people",)),
    Verb("appeler", "call", ("people",)),
    Verb("rencontrer", "meet", ("people",)),
)
TRANSITIVE = (*ON_THINGS, *ON_BOTH, *ON_PEOPLE)
# Its compound past means another thing ("j'ai connu": i met), so that it is apart.
CONNAITRE = Verb("connaître", "know", ("people",))

GIVING = (
    Verb("donner", "give", ("things", "books", "flowers")),
    Verb("montrer", "show", ("things", "clothes", "homes", "pets")),
    Verb("envoyer", "send", ("things", "books", "flowers")),
    Verb("prêter", "lend", ("things", "clothes", "cars")),
)
INTRANSITIVE = (
    Verb("travailler", "work"),
    Verb("étudier", "study"),
    Verb("dormir", "sleep"),
    Verb("chanter", "sing"),
    Verb("danser", "dance"),
    Verb("nager", "swim"),
    Verb("courir", "run"),
    Verb("marcher", "walk"),
    Verb("cuisiner", "cook"),
    Verb("voyager", "travel"),
)
# With être in the compound past.
LEAVING = (
    Verb("partir", "leave"),
    Verb("arriver", "arrive"),
    Verb("sortir", "go out"),
    Verb("revenir", "come back"),
)
RESTER = Verb("rester", "stay")
HABITER = Verb("habiter", "live")
VENIR_DE = Verb("venir", "come from")
PARLER = Verb("parler", "speak")
LEARNING = (
    Verb("apprendre", "learn"),
    Verb("étudier", "study"),
    Verb("comprendre", "understand"),
)
JOUER_A = Verb("jouer à", "play")
JOUER_DE = Verb("jouer de", "play")
SAYING = (Verb("penser", "think"), Verb("savoir", "know"), Verb("croire", "believe"))

VOULOIR = Verb("vouloir", "want to")
POUVOIR = Verb("pouvoir", "can")
DEVOIR = Verb("devoir", "must")
TRYING = (Verb("essayer de", "try to"), Verb("espérer", "hope to"))
LIKING = (Verb("aimer", "like"), Verb("préférer", "prefer"), Verb("détester", "hate"))

MANNERS = (
    Phrase("bien", "well"),
    Phrase("mal", "badly"),
    Phrase("vite", "fast"),
    Phrase("lentement", "slowly"),
    Phrase("beaucoup", "a lot"),
)
NEEDS = (
    Phrase("faim", "hungry"),
    Phrase("soif", "thirsty"),
    Phrase("froid", "cold"),
    Phrase("chaud", "hot"),
    Phrase("peur", "afraid"),
    Phrase("sommeil", "sleepy"),
    Phrase("raison", "right"),
    Phrase("tort", "wrong"),
)
# "j'ai très raison" is not said: very goes with what can be felt.
FELT = NEEDS[:6]
SPORTS = (
    Phrase("le tennis", "tennis"),
    Phrase("le basket", "basketball"),
    Phrase("le rugby", "rugby"),
    Phrase("les échecs", "chess"),
    Phrase("les cartes", "cards"),
)
INSTRUMENTS = (
    Phrase("le piano", "the piano"),
    Phrase("le violon", "the violin"),
    Phrase("la guitare", "the guitar"),
)
LANGUAGES = (
    Phrase("français", "french"),
    Phrase("anglais", "english"),
    Phrase("espagnol", "spanish"),
    Phrase("italien", "italian"),
    Phrase("allemand", "german"),
    Phrase("japonais", "japanese"),
    Phrase("chinois", "chinese"),
)

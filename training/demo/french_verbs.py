"""French verbs: the present, the imperfect, the compound past, the near future, the imperative."""

from __future__ import annotations

from .french import agree
from .words import Middle, Subject

_PRESENT = {
    "aller": "vais vas va allons allez vont",
    "avoir": "ai as a avons avez ont",
    "boire": "bois bois boit buvons buvez boivent",
    "conduire": "conduis conduis conduit conduisons conduisez conduisent",
    "connaître": "connais connais connaît connaissons connaissez connaissent",
    "courir": "cours cours court courons courez courent",
    "croire": "crois crois croit croyons croyez croient",
    "devoir": "dois dois doit devons devez doivent",
    "dormir": "dors dors dort dormons dormez dorment",
    "écrire": "écris écris écrit écrivons écrivez écrivent",
    "être": "suis es est sommes êtes sont",
    "faire": "fais fais fait faisons faites font",
    "lire": "lis lis lit lisons lisez lisent",
    "offrir": "offre offres offre offrons offrez offrent",
    "ouvrir": "ouvre ouvres ouvre ouvrons ouvrez ouvrent",
    "partir": "pars pars part partons partez partent",
    "pouvoir": "peux peux peut pouvons pouvez peuvent",
    "prendre": "prends prends prend prenons prenez prennent",
    "savoir": "sais sais sait savons savez savent",
    "sortir": "sors sors sort sortons sortez sortent",
    "venir": "viens viens vient venons venez viennent",
    "voir": "vois vois voit voyons voyez voient",
    "vouloir": "veux veux veut voulons voulez veulent",
}
# Conjugated as another verb behind a prefix: "revenir" as "venir".
_PREFIXED = {"apprendre": "prendre", "comprendre": "prendre", "revenir": "venir"}
_PARTICIPLES = {
    "boire": "bu",
    "conduire": "conduit",
    "courir": "couru",
    "écrire": "écrit",
    "lire": "lu",
    "offrir": "offert",
    "ouvrir": "ouvert",
    "prendre": "pris",
    "venir": "venu",
    "voir": "vu",
    "vouloir": "voulu",
}
# Stems of -er verbs that change where the ending is silent: "j'achète", "nous achetons".
_SILENT_STEMS = {
    "acheter": "achèt",
    "appeler": "appell",
    "envoyer": "envoi",
    "espérer": "espèr",
    "essayer": "essai",
    "préférer": "préfèr",
}
_WITH_ETRE = ("aller", "arriver", "partir", "rester", "revenir", "sortir", "tomber", "venir")
_IMPERFECT_ENDINGS = ("ais", "ais", "ait", "ions", "iez", "aient")


def _base(infinitive: str) -> tuple[str, str]:
    """The prefix and the model verb: "apprendre" -> ("ap", "prendre")."""
    model = _PREFIXED.get(infinitive, infinitive)
    return infinitive.removesuffix(model), model


def present(infinitive: str, slot: int) -> str:
    """The present tense, slot 0 (je) to 5 (ils): ("manger", 3) -> "mangeons"."""
    prefix, model = _base(infinitive)
    if model in _PRESENT:
        return prefix + _PRESENT[model].split()[slot]
    stem = infinitive[:-2]
    if infinitive.endswith("ir"):
        return stem + ("is", "is", "it", "issons", "issez", "issent")[slot]
    if infinitive.endswith("re"):
        return stem + ("s", "s", "", "ons", "ez", "ent")[slot]
    if slot in (0, 1, 2, 5):
        stem = _SILENT_STEMS.get(infinitive, stem)
    elif slot == 3 and stem.endswith("g"):
        stem += "e"
    elif slot == 3 and stem.endswith("c"):
        stem = f"{stem[:-1]}ç"
    return stem + ("e", "es", "e", "ons", "ez", "ent")[slot]


def imperfect(infinitive: str, slot: int) -> str:
    """The imperfect, from the stem of "nous": ("vouloir", 0) -> "voulais"."""
    stem = "ét" if infinitive == "être" else present(infinitive, 3).removesuffix("ons")
    return stem + _IMPERFECT_ENDINGS[slot]


def participle(infinitive: str) -> str:
    """The past participle, masculine singular: "lire" -> "lu"."""
    prefix, model = _base(infinitive)
    if model in _PARTICIPLES:
        return prefix + _PARTICIPLES[model]
    return infinitive[:-2] + {"er": "é", "ir": "i", "re": "u"}[infinitive[-2:]]


def imperative(infinitive: str, slot: int) -> str:
    """The command to "tu" (1) or "vous" (4): ("manger", 1) -> "mange", without the s."""
    form = present(infinitive, slot)
    return form[:-1] if slot == 1 and form.endswith("es") else form


def conjugate(infinitive: str, subject: Subject, tense: str) -> tuple[str, str]:
    """The finite verb and what follows it: ("suis", "allée"), ("vais", "manger"), ("mange", "")."""
    if tense == "present":
        return present(infinitive, subject.slot), ""
    if tense == "imperfect":
        return imperfect(infinitive, subject.slot), ""
    if tense == "future":
        return present("aller", subject.slot), infinitive
    if infinitive in _WITH_ETRE:
        agreed = agree(participle(infinitive), subject.feminine, subject.plural)
        return present("être", subject.slot), agreed
    return present("avoir", subject.slot), participle(infinitive)


def verb_group(
    verb: str, subject: Subject, tense: str, middle: Middle | None = None, pronoun: str = ""
) -> str:
    """The verb with its negation or adverb and an object pronoun: "ne ai pas mangé", "te voit".

    `verb` may carry a preposition ("jouer à"); `pronoun` goes before the verb it belongs to.
    """
    infinitive, _, governed = verb.partition(" ")
    finite, rest = conjugate(infinitive, subject, tense)
    if tense == "future":
        return _assemble(finite, middle, pronoun, rest, governed)
    return _assemble(f"{pronoun} {finite}".strip(), middle, rest, governed)


def inverted(verb: str, subject: Subject, tense: str, middle: Middle | None = None) -> str:
    """Verb and pronoun as a question: "a-t-il mangé", "ne voulez-vous pas"."""
    infinitive, _, governed = verb.partition(" ")
    finite, rest = conjugate(infinitive, subject, tense)
    link = "-t-" if subject.slot == 2 and finite.endswith(("a", "e")) else "-"
    return _assemble(f"{finite}{link}{subject.french}", middle, rest, governed)


def _assemble(finite: str, middle: Middle | None, *rest: str) -> str:
    words = [finite, middle.french if middle else "", *rest]
    if middle and middle.negative:
        words.insert(0, "ne")
    return " ".join(word for word in words if word)

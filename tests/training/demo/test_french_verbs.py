"""French conjugation, against what any grammar says."""

import pytest

from training.demo import french_verbs


@pytest.mark.parametrize(
    ("infinitive", "forms"),
    [
        ("parler", "parle parles parle parlons parlez parlent"),
        ("manger", "mange manges mange mangeons mangez mangent"),
        ("acheter", "achète achètes achète achetons achetez achètent"),
        ("appeler", "appelle appelles appelle appelons appelez appellent"),
        ("préférer", "préfère préfères préfère préférons préférez préfèrent"),
        ("envoyer", "envoie envoies envoie envoyons envoyez envoient"),
        ("commencer", "commence commences commence commençons commencez commencent"),
        ("finir", "finis finis finit finissons finissez finissent"),
        ("vendre", "vends vends vend vendons vendez vendent"),
        ("apprendre", "apprends apprends apprend apprenons apprenez apprennent"),
        ("revenir", "reviens reviens revient revenons revenez reviennent"),
        ("ouvrir", "ouvre ouvres ouvre ouvrons ouvrez ouvrent"),
        ("être", "suis es est sommes êtes sont"),
        ("aller", "vais vas va allons allez vont"),
        ("boire", "bois bois boit buvons buvez boivent"),
    ],
)
def test_french_present(infinitive: str, forms: str) -> None:
    assert [french_verbs.present(infinitive, slot) for slot in range(6)] == forms.split()


def test_other_french_forms() -> None:
    assert [french_verbs.imperfect("être", slot) for slot in (0, 3, 5)] == [
        "étais", "étions", "étaient",
    ]  # fmt: skip
    assert [french_verbs.imperfect("vouloir", slot) for slot in (0, 4)] == ["voulais", "vouliez"]
    participles = {
        "manger": "mangé", "choisir": "choisi", "perdre": "perdu", "comprendre": "compris",
        "lire": "lu", "écrire": "écrit", "ouvrir": "ouvert", "revenir": "revenu", "courir": "couru",
        "dormir": "dormi", "boire": "bu", "voir": "vu",
    }  # fmt: skip
    assert {verb: french_verbs.participle(verb) for verb in participles} == participles
    assert french_verbs.imperative("manger", 1) == "mange"
    assert french_verbs.imperative("ouvrir", 1) == "ouvre"
    assert french_verbs.imperative("prendre", 1) == "prends"
    assert french_verbs.imperative("finir", 4) == "finissez"

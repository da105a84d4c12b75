"""French spelling and agreement, against what any grammar says."""

import pytest

from training.demo import french


@pytest.mark.parametrize(
    ("raw", "written"),
    [
        ("je ai un chat", "j'ai un chat"),
        ("je ne ai pas de eau", "je n'ai pas d'eau"),
        ("je habite à le hôtel", "j'habite à l'hôtel"),
        ("je pense que elle a le haricot", "je pense qu'elle a le haricot"),
        ("le homme voit le hibou", "l'homme voit le hibou"),
        ("il ne y a pas de onze", "il n'y a pas de onze"),
        ("ce est la école de antoine", "c'est l'école d'antoine"),
        ("si il vient", "s'il vient"),
        ("si elle vient", "si elle vient"),
        ("que est-ce que il te achète", "qu'est-ce qu'il t'achète"),
        ("il va à le marché", "il va au marché"),
        ("il va à les états-unis", "il va aux états-unis"),
        ("il va à la gare", "il va à la gare"),
        ("le chien de le médecin", "le chien du médecin"),
        ("le chien de les enfants", "le chien des enfants"),
        ("le chien de le enfant", "le chien de l'enfant"),
        ("à côté de leur maison", "à côté de leur maison"),
    ],
)
def test_elision_and_contraction(raw: str, written: str) -> None:
    assert french.finish(raw) == written


@pytest.mark.parametrize(
    ("singular", "plural"),
    [
        ("chat", "chats"),
        ("oiseau", "oiseaux"),
        ("journal", "journaux"),
        ("cheval", "chevaux"),
        ("hibou", "hiboux"),
        ("fils", "fils"),
        ("heureux", "heureux"),
        ("français", "français"),
        ("bleu", "bleus"),
        ("beau", "beaux"),
        ("grand-mère", "grands-mères"),
    ],
)
def test_french_plurals(singular: str, plural: str) -> None:
    assert french.plural(singular) == plural


@pytest.mark.parametrize(
    ("adjective", "feminine", "feminine_plural"),
    [
        ("petit", "petite", "petites"),
        ("rouge", "rouge", "rouges"),
        ("cher", "chère", "chères"),
        ("heureux", "heureuse", "heureuses"),
        ("sportif", "sportive", "sportives"),
        ("canadien", "canadienne", "canadiennes"),
        ("italien", "italienne", "italiennes"),
        ("beau", "belle", "belles"),
        ("vieux", "vieille", "vieilles"),
        ("nouveau", "nouvelle", "nouvelles"),
        ("blanc", "blanche", "blanches"),
        ("long", "longue", "longues"),
        ("gentil", "gentille", "gentilles"),
        ("bon", "bonne", "bonnes"),
        ("inquiet", "inquiète", "inquiètes"),
        ("marron", "marron", "marron"),
        ("poli", "polie", "polies"),
        ("français", "française", "françaises"),
    ],
)
def test_french_feminines(adjective: str, feminine: str, feminine_plural: str) -> None:
    assert french.agree(adjective, True, False) == feminine
    assert french.agree(adjective, True, True) == feminine_plural

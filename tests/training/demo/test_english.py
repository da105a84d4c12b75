"""English spelling and verbs, against what any grammar says."""

import pytest

from training.demo import english, verbs


@pytest.mark.parametrize(
    ("word", "article"),
    [
        ("student", "a"), ("apple", "an"), ("hour", "an"), ("honest", "an"), ("house", "a"),
        ("university", "a"), ("uniform", "a"), ("umbrella", "an"), ("european", "a"), ("old", "an"),
    ],
)  # fmt: skip
def test_a_or_an(word: str, article: str) -> None:
    assert english.article(word) == article


@pytest.mark.parametrize(
    ("verb", "third", "past"),
    [
        ("eat", "eats", "ate"),
        ("go", "goes", "went"),
        ("have", "has", "had"),
        ("watch", "watches", "watched"),
        ("wash", "washes", "washed"),
        ("study", "studies", "studied"),
        ("try to", "tries to", "tried to"),
        ("play", "plays", "played"),
        ("look for", "looks for", "looked for"),
        ("go out", "goes out", "went out"),
        ("come back", "comes back", "came back"),
        ("close", "closes", "closed"),
        ("read", "reads", "read"),
        ("forget", "forgets", "forgot"),
    ],
)
def test_english_verbs(verb: str, third: str, past: str) -> None:
    assert english.third_person(verb) == third
    assert english.past(verb) == past


def test_english_irregular_verbs_of_the_lexicon() -> None:
    """A verb without its irregular past would be "drived" and nobody would see it."""
    irregular = {
        "eat": "ate", "drink": "drank", "read": "read", "write": "wrote", "buy": "bought",
        "sell": "sold", "find": "found", "lose": "lost", "forget": "forgot", "choose": "chose",
        "wear": "wore", "sing": "sang", "take": "took", "drive": "drove", "draw": "drew",
        "see": "saw", "understand": "understood", "meet": "met", "give": "gave", "send": "sent",
        "lend": "lent", "sleep": "slept", "swim": "swam", "run": "ran", "leave": "left",
        "come": "came", "go": "went", "speak": "spoke",
    }  # fmt: skip
    regular = {
        "arrive": "arrived", "call": "called", "close": "closed", "cook": "cooked",
        "dance": "danced", "finish": "finished", "help": "helped", "invite": "invited",
        "learn": "learned", "listen": "listened", "live": "lived", "look": "looked",
        "open": "opened", "play": "played", "show": "showed", "stay": "stayed",
        "study": "studied", "travel": "traveled", "wait": "waited", "walk": "walked",
        "wash": "washed", "watch": "watched", "work": "worked",
    }  # fmt: skip
    groups = (
        verbs.TRANSITIVE, verbs.GIVING, verbs.INTRANSITIVE, verbs.LEAVING, verbs.LEARNING,
        (verbs.PARLER, verbs.RESTER, verbs.HABITER, verbs.ALLER, verbs.VENIR_DE, verbs.JOUER_A),
    )  # fmt: skip
    lexicon = {verb.english.split()[0] for group in groups for verb in group}
    assert {verb: english.past(verb) for verb in lexicon} == irregular | regular


def test_english_nouns_and_adjectives() -> None:
    plurals = {
        "box": "boxes", "watch": "watches", "scarf": "scarves", "city": "cities", "key": "keys",
        "child": "children", "woman": "women", "story": "stories", "actress": "actresses",
        "wolf": "wolves", "monkey": "monkeys", "dress": "dresses", "knife": "knives",
    }  # fmt: skip
    assert {noun: english.plural(noun) for noun in plurals} == plurals
    comparatives = {
        "young": "younger", "strong": "stronger", "rich": "richer", "brave": "braver",
        "funny": "funnier", "kind": "kinder", "big": "bigger", "honest": "more honest",
        "famous": "more famous", "polite": "more polite", "serious": "more serious",
        "intelligent": "more intelligent", "poor": "poorer", "athletic": "more athletic",
    }  # fmt: skip
    assert {word: english.comparative(word) for word in comparatives} == comparatives
    assert english.possessive("my brother", False) == "my brother's"
    assert english.possessive("my brothers", True) == "my brothers'"
    assert english.possessive("the children", True) == "the children's"
    assert english.possessive("the actress", False) == "the actress's"

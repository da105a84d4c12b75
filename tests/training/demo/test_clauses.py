"""Whole clauses in both languages."""

import pytest

from training.demo import people, verbs
from training.demo.clauses import command, finish, question, statement
from training.demo.words import Phrase, Subject

JE, ELLE, ILS = people.JE, people.PRONOUNS[2][1], people.PRONOUNS[5][0]
IL, NOUS, ELLES = people.PRONOUNS[2][0], people.PRONOUNS[3][0], people.PRONOUNS[5][1]
VOUS_MADAME = people.PRONOUNS[4][1]
APPLE = Phrase("la pomme", "the apple")
EAT, GO = verbs.ON_THINGS[0], verbs.ALLER
BEACH, FAIM = Phrase("à la plage", "to the beach"), Phrase("faim", "hungry")
BROTHERS = Subject("mes frères", "my brothers", 5, plural=True, feminine=False)


@pytest.mark.parametrize(
    ("clause", "said", "translated"),
    [
        (statement(ELLE, EAT, APPLE), "elle mange la pomme", "she eats the apple"),
        (
            statement(ELLE, EAT, APPLE, middle=verbs.PAS),
            "elle ne mange pas la pomme",
            "she does not eat the apple",
        ),
        (
            statement(JE, EAT, APPLE, "past", verbs.PAS),
            "je n'ai pas mangé la pomme",
            "i did not eat the apple",
        ),
        (
            statement(NOUS, EAT, APPLE, "future", verbs.PAS),
            "nous n'allons pas manger la pomme",
            "we are not going to eat the apple",
        ),
        (
            statement(IL, EAT, APPLE, middle=verbs.JAMAIS),
            "il ne mange jamais la pomme",
            "he never eats the apple",
        ),
        (
            statement(ELLES, GO, BEACH, "past"),
            "elles sont allées à la plage",
            "they went to the beach",
        ),
        (
            statement(BROTHERS, GO, BEACH, "past"),
            "mes frères sont allés à la plage",
            "my brothers went to the beach",
        ),
        (
            statement(VOUS_MADAME, GO, BEACH, "past", verbs.PAS),
            "vous n'êtes pas allée à la plage",
            "you did not go to the beach",
        ),
        (
            statement(JE, verbs.AVOIR_BE, FAIM, middle=verbs.PLUS),
            "je n'ai plus faim",
            "i am no longer hungry",
        ),
        (
            statement(ILS, verbs.AVOIR_BE, FAIM, "imperfect"),
            "ils avaient faim",
            "they were hungry",
        ),
        (
            statement(IL, verbs.POUVOIR, Phrase("nager", "swim"), middle=verbs.PAS),
            "il ne peut pas nager",
            "he cannot swim",
        ),
        (
            statement(IL, verbs.VOULOIR, Phrase("nager", "swim"), "imperfect"),
            "il voulait nager",
            "he wanted to swim",
        ),
        (
            statement(ELLE, verbs.ON_BOTH[1], Phrase("", "you"), "future", verbs.PAS, "te"),
            "elle ne va pas te chercher",
            "she is not going to look for you",
        ),
        (
            statement(ELLE, verbs.ON_PEOPLE[0], Phrase("", "me"), middle=verbs.PAS, pronoun="me"),
            "elle ne m'aide pas",
            "she does not help me",
        ),
        (
            statement(IL, verbs.JOUER_A, Phrase("les échecs", "chess"), "past"),
            "il a joué aux échecs",
            "he played chess",
        ),
        (question(ELLE, EAT, APPLE), "est-ce qu'elle mange la pomme ?", "does she eat the apple?"),
        (
            question(ELLE, EAT, APPLE, inversion=True),
            "mange-t-elle la pomme ?",
            "does she eat the apple?",
        ),
        (
            question(ILS, EAT, APPLE, "past", verbs.PAS, inversion=True),
            "n'ont-ils pas mangé la pomme ?",
            "did they not eat the apple?",
        ),
        (
            question(IL, verbs.AVOIR_BE, FAIM, inversion=True),
            "a-t-il faim ?",
            "is he hungry?",
        ),
        (
            question(IL, EAT, tense="past", asking=Phrase("que", "what")),
            "qu'est-ce qu'il a mangé ?",
            "what did he eat?",
        ),
        (
            question(ELLE, GO, tense="past", asking=Phrase("où", "where"), inversion=True),
            "où est-elle allée ?",
            "where did she go?",
        ),
        (command(EAT, APPLE, 1), "mange la pomme", "eat the apple"),
        (command(EAT, APPLE, 4, verbs.PAS), "ne mangez pas la pomme", "do not eat the apple"),
    ],
)  # fmt: skip
def test_clauses(clause: Phrase, said: str, translated: str) -> None:
    assert finish(clause) == (said, translated)

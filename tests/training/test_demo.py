"""The demo corpus: right French, right English, one translation a sentence, honest splits."""

import hashlib
import os
import re
import subprocess
import sys
from collections import Counter
from itertools import chain
from pathlib import Path

import pytest

from tf_transformer.errors import InputError
from training.demo import DemoCorpus, demo_corpus, write_demo_corpus
from training.demo.corpus import all_pairs
from training.demo.grammar import CONSTRUCTIONS, sentences, words

ROOT = Path(__file__).resolve().parents[2]
SEEDS = range(4)

# Written and checked by hand, from no run of ours.
KNOWN = Path(__file__).with_name("demo") / "known_sentences.txt"


@pytest.fixture(scope="module")
def corpus() -> DemoCorpus:
    return demo_corpus()


@pytest.fixture(scope="module")
def drawn() -> dict[str, str]:
    """What several seeds draw, all in one: this too must be a function of the French."""
    pairs: dict[str, str] = {}
    for seed in SEEDS:
        for french, english in all_pairs(seed).items():
            assert pairs.setdefault(french, english) == english, french
    return pairs


def test_size(corpus: DemoCorpus) -> None:
    pairs = [*corpus.train, *corpus.valid, *corpus.test]
    assert len(set(pairs)) == len(pairs) >= 12_000
    assert 450 <= len(corpus.test) <= 550
    assert 250 <= len(corpus.valid) <= 350


def test_no_french_sentence_has_two_translations(corpus: DemoCorpus) -> None:
    french = [pair[0] for pair in chain(corpus.train, corpus.valid, corpus.test)]
    assert len(set(french)) == len(french)


@pytest.mark.parametrize("side", [0, 1], ids=["french", "english"])
def test_held_out_sentences_are_new_on_either_side(corpus: DemoCorpus, side: int) -> None:
    train, valid, test = (
        {pair[side] for pair in split} for split in (corpus.train, corpus.valid, corpus.test)
    )
    assert not train & valid
    assert not train & test
    assert not valid & test


@pytest.mark.parametrize("side", [0, 1], ids=["french", "english"])
def test_held_out_words_are_known(corpus: DemoCorpus, side: int) -> None:
    seen = Counter(word for pair in corpus.train for word in words(pair[side]))
    rare = {
        word
        for pair in chain(corpus.valid, corpus.test)
        for word in words(pair[side])
        if seen[word] < 5
    }
    assert not rare


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_the_shown_sentence_is_held_out(seed: int) -> None:
    corpus = demo_corpus(seed)
    assert ("je suis étudiant", "i am a student") in corpus.test
    for french, english in chain(corpus.train, corpus.valid):
        assert french not in ("je suis étudiant", "je suis étudiante")
        assert english != "i am a student"


def test_sentences_are_clean_and_short(drawn: dict[str, str]) -> None:
    french_sign = re.compile(r"[a-zàâçèéêëîïôùûœ'-]+(,? [a-zàâçèéêëîïôùûœ'-]+)*( \?)?")
    english_sign = re.compile(r"[a-z']+(,? [a-z']+)*\??")
    for french, english in drawn.items():
        assert french_sign.fullmatch(french), french
        assert english_sign.fullmatch(english), english
        assert french.endswith("?") == english.endswith("?"), french
        for sentence in (french, english):
            assert 3 <= len(re.findall(r"\w+", sentence)) <= 12, sentence


def test_french_is_elided_and_contracted_everywhere(drawn: dict[str, str]) -> None:
    vowel = "(?:[aeiouyàâéèêîôœ]|h(?!ibou|aricot))(?!nze)"
    hiatus = re.compile(rf"\b(je|ne|que|de|le|la|me|te|ce|ma|ta) {vowel}")
    idle_elision = re.compile(rf"\b(j|n|qu|d|l|m|t|c)'(?!{vowel})")
    uncontracted = re.compile(r"(?<!\S)(à|de) les? ")
    for french in drawn:
        for fault in (hiatus, idle_elision, uncontracted):
            assert not fault.search(french.replace("aujourd'hui", "")), french


def test_english_articles_everywhere(drawn: dict[str, str]) -> None:
    for english in drawn.values():
        for article, following in re.findall(r"\b(an?) (\w+)", english):
            sounds_like_a_vowel = following not in ("uniform", "uniforms") and (
                following[0] in "aeiou" or following in ("hour", "honest")
            )
            assert (article == "an") == sounds_like_a_vowel, english


def test_known_sentences(drawn: dict[str, str]) -> None:
    known = dict(line.split(" = ") for line in KNOWN.read_text("utf-8").splitlines())
    met = {french: drawn[french] for french in known if french in drawn}
    assert met == {french: known[french] for french in met}
    assert len(met) >= 30


@pytest.mark.parametrize("construction", CONSTRUCTIONS, ids=lambda function: function.__name__)
def test_every_construction_gives_its_share(construction) -> None:
    number = CONSTRUCTIONS[construction]
    assert len(sentences(construction, number, seed=0)) >= 0.9 * number


def test_the_example_of_a_construction_is_in_its_words(drawn: dict[str, str]) -> None:
    """A docstring shows what its construction draws; a word of it may have gone since."""
    vocabulary = {word for french in drawn for word in words(french)}
    for construction in CONSTRUCTIONS:
        example = (construction.__doc__ or "").split(":")[0]
        assert set(words(example)) <= vocabulary, construction.__name__


def test_other_seeds_draw_other_sentences(corpus: DemoCorpus) -> None:
    assert demo_corpus() == corpus
    assert set(demo_corpus(1).train) != set(corpus.train)


def test_the_corpus_does_not_depend_on_hash_seeds() -> None:
    program = (
        "import hashlib; from training.demo import demo_corpus;"
        "print(hashlib.sha256(repr(demo_corpus(3)).encode()).hexdigest())"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
            cwd=ROOT,
        )
        for hash_seed in ("0", "12345")
    ]
    digests = {process.communicate(timeout=120)[0].strip() for process in processes}
    assert digests == {hashlib.sha256(repr(demo_corpus(3)).encode()).hexdigest()}


def test_files(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "corpus"
    write_demo_corpus(folder)
    corpus = demo_corpus()
    names = {f"{split}.{side}" for split in ("train", "valid", "test") for side in ("src", "tgt")}
    assert {path.name for path in folder.iterdir()} == names
    for split in ("train", "valid", "test"):
        source, target = (
            (folder / f"{split}.{side}").read_bytes().decode().split("\n")
            for side in ("src", "tgt")
        )
        assert source.pop() == target.pop() == ""
        assert list(zip(source, target, strict=True)) == getattr(corpus, split)


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "corpus").write_text("mine")
    with pytest.raises(InputError, match="needs a folder"):
        write_demo_corpus(tmp_path / "corpus")
    assert (tmp_path / "corpus").read_text() == "mine"

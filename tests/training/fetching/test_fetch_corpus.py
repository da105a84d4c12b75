"""`tf-transformer data`: from a catalogue to a folder of splits, whole or not at all."""

import gzip
import hashlib
import io
import itertools
import re
import tarfile
import zipfile

import pytest
from rich.console import Console
from typer.testing import CliRunner

from tests.tiny_run import digest
from tf_transformer import cli
from tf_transformer.errors import InputError
from training.corpora.reading import read_split
from training.fetching import catalogue, fetch_corpus
from training.fetching.catalogue import SPLITS, Entry, RemoteFile, find, read_catalogue
from training.fetching.holding_out import _key, hold_out
from training.recipe import bundled_recipes, load_recipe

SGM = (
    '<srcset setid="x" srclang="any">\n<doc docid="d">\n<p>\n<seg id="1">Fish &amp;\n chips</seg>\n'
    '<seg id="2"> zwei </seg>\n</p>\n</doc>\n</srcset>\n'
)


def tgz(path, **texts):
    """An archive; `train__en` is its member dir/train.en."""
    with tarfile.open(path, "w:gz") as archive:
        for name, text in texts.items():
            member = tarfile.TarInfo(f"dir/{name.replace('__', '.')}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))


def remote(path, **options):
    """The catalogue's account of a file that was made."""
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    return RemoteFile(f"http://nowhere/{path.name}", sha256=sha256, **options)


@pytest.fixture
def mirror(tmp_path):
    folder = tmp_path / "mirror"
    folder.mkdir()
    return folder


@pytest.fixture
def entry(mirror):
    """Of two archives, which both have text for train, and single files for valid."""
    tgz(mirror / "one.tgz", x__en="unused\n", train__en="a\nb\n", train__de="A\nB\n")
    tgz(mirror / "two.tgz", more__de="C\r\n", more__en="c", test__sgm=SGM, ref__sgm=SGM)
    (mirror / "valid.en.gz").write_bytes(gzip.compress(b"v\n\xe2\x80\xa8w\n"))
    (mirror / "valid.de").write_bytes(b"\xef\xbb\xbfV\nW\n")
    files = (
        remote(mirror / "one.tgz", to={"dir/train.en": "train.src", "dir/train.de": "train.tgt"}),
        remote(
            mirror / "two.tgz",
            to={
                "dir/more.en": "train.src",
                "dir/more.de": "train.tgt",
                "dir/test.sgm": "test.src",
                "dir/ref.sgm": "test.tgt",
            },
        ),
        remote(mirror / "valid.en.gz", to={"": "valid.src"}),
        remote(mirror / "valid.de", to={"": "valid.tgt"}),
    )
    return Entry("made-up", "Made up", "demo", "https://nowhere", "Free as [air].", files)


def fetch(entry, folder, mirror, **options):
    screen = io.StringIO()
    console = Console(file=screen, width=200)
    fetch_corpus.fetch_corpus(entry, folder, console, mirror.as_uri(), **options)
    return screen.getvalue()


def test_a_corpus_of_many_kinds_of_files(entry, mirror, tmp_path):
    folder = tmp_path / "new" / "corpus"
    printed = fetch(entry, folder, mirror)
    texts = {path.name: path.read_bytes().decode() for path in folder.iterdir()}
    about = texts.pop("ABOUT.txt")
    assert texts == {
        "train.src": "a\nb\nc\n",
        "train.tgt": "A\nB\nC\n",
        "valid.src": "v\n\u2028w\n",
        "valid.tgt": "V\nW\n",
        "test.src": "Fish & chips\nzwei\n",
        "test.tgt": "Fish & chips\nzwei\n",
    }
    assert f"{folder}/train.src and .tgt: 3 lines" in printed
    for said in ("Made up", "https://nowhere", "Free as [air].", "http://nowhere/two.tgz"):
        assert said in about
    for name, text in texts.items():
        assert f"{hashlib.sha256(text.encode()).hexdigest()}  {name}  " in about
    for split in SPLITS:
        assert len(read_split(folder, split)) in (2, 3)


def test_a_complete_folder_is_left_alone(entry, mirror, tmp_path):
    fetch(entry, tmp_path / "c", mirror, keep=True)
    before = digest(tmp_path / "c")
    assert "downloads/one.tgz" in before
    assert "is complete: see ABOUT.txt" in fetch(entry, tmp_path / "c", tmp_path / "nowhere")
    assert digest(tmp_path / "c") == before


def test_what_broke_off_goes_on(entry, mirror, tmp_path):
    """Nothing is there before all is; what was fetched and checked is not fetched again."""
    (mirror / "valid.de").rename(mirror / "away")
    with pytest.raises(InputError, match="valid.de can't be fetched: No such file"):
        fetch(entry, tmp_path / "c", mirror)
    assert sorted(digest(tmp_path / "c")) == [
        "downloads",
        *(f"downloads/{name}" for name in ("one.tgz", "two.tgz", "valid.en.gz")),
    ]
    (mirror / "away").rename(mirror / "valid.de")
    (mirror / "one.tgz").unlink()
    fetch(entry, tmp_path / "c", mirror)
    assert (tmp_path / "c" / "train.src").read_text() == "a\nb\nc\n"


def test_a_person_who_stops_it_is_told_that_it_goes_on(entry, mirror, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    screen = io.StringIO()
    monkeypatch.setattr(fetch_corpus, "download", stop)
    with pytest.raises(KeyboardInterrupt):
        fetch_corpus.fetch_corpus(entry, tmp_path / "c", Console(file=screen), mirror.as_uri())
    assert "Stopped: the same command goes on" in screen.getvalue()


def test_another_file_than_it_was_is_refused_and_gone(entry, mirror, tmp_path):
    tgz(mirror / "two.tgz", more__en="c", more__de="X")
    with pytest.raises(InputError, match="two.tgz is not the file that it was"):
        fetch(entry, tmp_path / "c", mirror)
    assert sorted(digest(tmp_path / "c")) == ["downloads", "downloads/one.tgz"]


@pytest.mark.case("33")
def test_sides_of_unequal_lengths_leave_nothing(mirror, tmp_path):
    tgz(mirror / "x.tgz", a__en="a\nb\n", a__de="A\n")
    to = {"dir/a.en": "train.src", "dir/a.de": "train.tgt"}
    entry = Entry("x", "", "", "", "", (remote(mirror / "x.tgz", to=to),))
    with pytest.raises(InputError, match="x: train has 2 source and 1 target lines"):
        fetch(entry, tmp_path / "c", mirror)
    assert sorted(digest(tmp_path / "c")) == ["downloads", "downloads/x.tgz"]


@pytest.mark.parametrize("kind", ["lacking", "cut", "no archive"])
def test_an_archive_that_cannot_be_read_leaves_nothing(mirror, tmp_path, kind):
    path = mirror / "x.tgz"
    tgz(path, a__en="a\n" * 9000, b__en="b\n")
    whole = path.read_bytes()
    path.write_bytes({"lacking": whole, "cut": whole[:-40], "no archive": b"<html>"}[kind])
    to = {"dir/a.en": "train.src", "dir/b.en": "train.tgt"}
    if kind == "lacking":
        to = {"dir/a.en": "train.src", "dir/c.en": "train.tgt"}
    entry = Entry("x", "", "", "", "", (remote(path, to=to),))
    message = {
        "lacking": r"x\.tgz has no dir/c\.en inside",
        "cut": r"x\.tgz (can't be unpacked|has no dir/b\.en inside)",
        "no archive": r"x\.tgz can't be unpacked",
    }[kind]
    with pytest.raises(InputError, match=message):
        fetch(entry, tmp_path / "c", mirror)
    assert sorted(digest(tmp_path / "c")) == ["downloads", "downloads/x.tgz"]


def test_an_archive_writes_nothing_by_itself(mirror, tmp_path):
    tgz(mirror / "x.tgz", **{"../../evil__en": "e\n", "/evil__de": "E\n"})
    to = {"dir/../../evil.en": "train.src", "dir//evil.de": "train.tgt"}
    entry = Entry("x", "", "", "", "", (remote(mirror / "x.tgz", to=to),))
    fetch(entry, tmp_path / "c", mirror)
    assert sorted(digest(tmp_path / "c")) == ["ABOUT.txt", "train.src", "train.tgt"]
    assert not list(tmp_path.rglob("*evil*"))


def test_text_that_is_there_is_not_written_over(entry, mirror, tmp_path):
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "valid.src").write_text("mine")
    with pytest.raises(InputError, match="holds valid.src already: name another folder"):
        fetch(entry, tmp_path / "c", mirror)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="file/c can't be made"):
        fetch(entry, tmp_path / "file" / "c", mirror)


def test_too_small_a_disk_is_said_before(entry, mirror, tmp_path):
    big = RemoteFile("http://nowhere/big.tgz", to={"a": "train.src"}, bytes=10**18)
    large = Entry("x", "", "", "", "", (*entry.files, big))
    with pytest.raises(InputError, match=r"MB free, but x needs 1,000,000,000,000 MB"):
        fetch(large, tmp_path / "c", mirror)


# Pairs without splits.


def everyday(number):
    """Sentences of few words, so that many share a side."""
    words = list(itertools.product("abcdefgh", repeat=3))[:number]
    pairs = [(f"I {''.join(word)}.", f"Ich {''.join(word[:2])}!") for word in words]
    return [*pairs, ("I aaa.", "Ich anders."), ("i AAA", "Ich anders."), ("I aaa.", "Ich aa!")]


def test_no_sentence_is_in_two_splits():
    pairs = everyday(400)
    found = hold_out(pairs, number=20)
    assert [len(found[split]) for split in ("valid", "test")] == [20, 20]
    for side in (0, 1):
        keys = [{_key(pair[side]) for pair in found[split]} for split in SPLITS]
        for one, other in itertools.combinations(keys, 2):
            assert not one & other
    assert set(found["train"]) < set(pairs)
    assert len(found["train"]) == len(set(found["train"])) >= 400 - 40 * 20
    assert hold_out(pairs, number=20) == found
    tests = {pair for pair in hold_out(everyday(300), number=20)["test"]}
    assert len(tests & {pair for split in SPLITS for pair in found[split]}) > 10


def test_large_groups_stay_in_train():
    pairs = [("Hi!", f"Hallo {n}") for n in range(21)] + [(f"a{n}", f"b{n}") for n in range(10)]
    found = hold_out(pairs, number=6)  # more than there are other groups
    assert found["train"] == pairs[:21]
    assert len(found["test"]) == 6 and len(found["valid"]) == 4


def test_a_zip_of_pairs_becomes_three_splits(mirror, tmp_path):
    pairs = [(f"{n} a.", f"{n} A.") for n in range(4100)]
    lines = "".join(f"{a}\t{b}\tCC-BY 2.0 (a) #1\n" for a, b in pairs)
    with zipfile.ZipFile(mirror / "x.zip", "w") as archive:
        archive.writestr("fra-eng/fra.txt", lines + "alone\n")
        archive.writestr("_about.txt", "x")
    entry = Entry("x", "", "", "", "", (remote(mirror / "x.zip", pairs="fra-eng/fra.txt"),))
    fetch(entry, tmp_path / "c", mirror)
    expected = hold_out(pairs)
    assert [len(expected[split]) for split in SPLITS] == [100, 2000, 2000]
    for split in SPLITS:
        for side, end in enumerate(("src", "tgt")):
            text = (tmp_path / "c" / f"{split}.{end}").read_text()
            assert text == "".join(f"{pair[side]}\n" for pair in expected[split])


# The catalogue.


def test_every_entry_is_whole():
    entries = read_catalogue()
    assert len(entries) == 5
    for name, entry in entries.items():
        assert entry.recipe in bundled_recipes() and entry.licence.strip() and entry.title
        test = load_recipe(entry.recipe).data.test or ["test.src", "test.tgt"]
        needed = ["train.src", "train.tgt", "valid.src", "valid.tgt", *test]
        assert set(needed) <= set(entry.results), name
        assert len({file.name for file in entry.files}) == len(entry.files)
        for file in entry.files:
            (checksum,) = filter(None, (file.sha256, file.text_sha256))
            assert re.fullmatch(r"[0-9a-f]{64}", checksum)
            assert re.match(r"https?://\S+\.(gz|tgz|zip)$", file.url)
            assert bool(file.to) != bool(file.pairs)
    with pytest.raises(InputError, match="no corpus mulit30k: it is one of multi30k-en-de, mul"):
        find("mulit30k")


@pytest.mark.parametrize("language", ["de", "fr"])
def test_multi30k_is_what_the_catalogue_says(shared_data, mirror, tmp_path, language):
    """Our copy of the text, served under upstream's names, passes all twelve checksums."""
    there = shared_data(f"multi30k-en-{language}")
    entry = find(f"multi30k-en-{language}")
    for file in entry.files:
        (name,) = file.to.values()
        plain, packed = there / name, there / f"{name}.gz"
        text = plain.read_bytes() if plain.exists() else gzip.decompress(packed.read_bytes())
        (mirror / file.name).write_bytes(gzip.compress(text, 1))
    fetch(entry, tmp_path / "c", mirror)
    assert len(list((tmp_path / "c").iterdir())) == 13
    assert (tmp_path / "c" / "valid.src").read_bytes() == (there / "valid.src").read_bytes()


# The command.


@pytest.fixture
def command(monkeypatch, entry, mirror, tmp_path):
    """`command(*arguments, input="y")`, with the made-up corpus as the catalogue."""
    monkeypatch.setattr(catalogue, "read_catalogue", lambda: {"made-up": entry})
    monkeypatch.chdir(tmp_path)

    def run(*arguments, **options):
        options = {"mirror": mirror.as_uri(), **options}
        given = [text for name, value in options.items() for text in (f"--{name}", str(value))]
        return CliRunner().invoke(cli.app, ["data", *arguments, *given])

    return run


def test_the_licence_is_shown_and_must_be_accepted(command, tmp_path):
    refused = command("made-up")
    assert "Free as [air]." in refused.output
    assert isinstance(refused.exception, InputError) and "--yes" in str(refused.exception)
    assert not (tmp_path / "data").exists()
    done = command("made-up", "--yes")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "data" / "made-up" / "train.src").exists()


@pytest.mark.parametrize("answer", ["y", "n"])
def test_a_person_is_asked(command, tmp_path, monkeypatch, answer):
    monkeypatch.setattr("tf_transformer.data_verb._somebody_is_here", lambda: True)
    monkeypatch.setattr("typer.confirm", lambda question: answer == "y")
    assert command("made-up", to=tmp_path / "here").exit_code == 0
    assert (tmp_path / "here" / "train.src").exists() == (answer == "y")


def test_the_corpora_are_listed():
    listed = CliRunner().invoke(cli.app, ["data"], env={"COLUMNS": "160"})
    assert listed.exit_code == 0
    for name, entry in read_catalogue().items():
        assert name in listed.output and entry.recipe in listed.output
    assert "1,695 MB" in listed.output

"""`tf-transformer tokenize` and `vocabulary`: what a person types and what comes back."""

import gzip
import re

import pytest
from typer.testing import CliRunner

from tests.tiny_translator import (
    ENGLISH,
    FRENCH,
    export_unchecked,
    make_config,
    make_translator,
    tokenizers,
)
from tests.tokenizers.texts import NASTY, SENTENCES, trained
from tf_transformer import InputError
from tf_transformer.cli import app
from tf_transformer.lines import clean_line
from tf_transformer.run_files import TRANSLATOR_FILE
from tf_transformer.tokenizer_files import read_tokenizer


def call(*arguments, stdin: str | bytes = b"") -> list[str]:
    """The lines that the command prints; the error that ends it."""
    text = stdin.encode() if isinstance(stdin, str) else stdin
    done = CliRunner().invoke(app, [*map(str, arguments)], input=text)
    if done.exception is not None:
        raise done.exception
    return done.stdout_bytes.decode("utf-8").split("\n")[:-1]


def lines(texts) -> str:
    return "".join(f"{text}\n" for text in texts)


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """One translator as a run, as a run that is not finished, and as an export; two tokenizers."""
    folder = tmp_path_factory.mktemp("places")
    translator = make_translator()
    translator.save(folder / "run", make_config())
    translator.save(folder / "begun", make_config())
    (folder / "begun" / TRANSLATOR_FILE).unlink()
    export_unchecked(translator, folder / "models")
    return folder


# tokenize


@pytest.mark.parametrize("place", ["run", "begun", "models", "models/1"])
def test_pieces_and_ids_of_each_side(places, place):
    for side, tokenizer, texts in zip(
        ("source", "target"), tokenizers(), (FRENCH, ENGLISH), strict=True
    ):
        options = ["--side", side]
        found = call("tokenize", places / place, *options, stdin=lines(texts))
        assert found == [" ".join(tokenizer.pieces(text)) for text in texts]
        back = call("tokenize", places / place, *options, "--detokenize", stdin=lines(found))
        assert back == texts
        ids = call("tokenize", places / place, *options, "--ids", stdin=lines(texts))
        assert [list(map(int, line.split())) for line in ids] == tokenizer.encode(texts)
        options.append("--ids")
        assert call("tokenize", places / place, "--detokenize", *options, stdin=lines(ids)) == texts
    assert call("tokenize", places / place, stdin=lines(FRENCH)) == [
        " ".join(tokenizers()[0].pieces(text))
        for text in FRENCH  # the source is the default
    ]


@pytest.mark.parametrize("kind", ["unigram", "bpe, bytes", "wordpiece", "bytes"])
def test_a_tokenizers_own_file_does_the_same(kind, tmp_path):
    tokenizer = trained(kind)
    path = tmp_path / f"mine{tokenizer.suffix}"
    tokenizer.save(path)
    texts = [clean_line(text) for text in [*SENTENCES, *NASTY]]
    pieces = call("tokenize", path, stdin=lines(texts))
    assert pieces == [" ".join(tokenizer.pieces(text)) for text in texts]
    ids = call("tokenize", path, "--ids", stdin=lines(texts))
    assert [list(map(int, line.split())) for line in ids] == tokenizer.encode(texts)
    back = call("tokenize", path, "--detokenize", stdin=lines(pieces))
    assert back == call("tokenize", path, "--detokenize", "--ids", stdin=lines(ids))
    assert back[: len(SENTENCES)] == SENTENCES and len(back) == len(texts)


def test_files_in_and_out(tmp_path):
    trained().save(tmp_path / "a.model")
    (tmp_path / "in.txt").write_bytes(b"\xef\xbb\xbfthe cat\r\n\nthe\xe9 \x01dog")
    options = ["--input", tmp_path / "in.txt", "--output", tmp_path / "out.txt"]
    assert call("tokenize", tmp_path / "a.model", *options) == []
    texts = ["the cat", "", "the\ufffd dog"]
    written = (tmp_path / "out.txt").read_text(encoding="utf-8")
    assert written == lines(" ".join(trained().pieces(text)) for text in texts)
    many = lines(["the cat", "", "dog"] * 600)  # more than a window
    (tmp_path / "in.txt").write_text(lines(call("tokenize", tmp_path / "a.model", stdin=many)))
    options = ["--input", tmp_path / "in.txt", "--detokenize"]
    assert lines(call("tokenize", tmp_path / "a.model", *options)) == many


def test_a_terminal_shows_pieces_ids_and_what_comes_back(tmp_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    trained().save(tmp_path / "a.model")
    texts = ["the cat [bold]t", "the \U0001f600", ""]
    found = call("tokenize", tmp_path / "a.model", stdin=lines(texts))
    plain = [re.sub("\x1b[^m]*m", "", line).rstrip() for line in found]
    assert any("\x1b" in line for line in found) and len(plain) == 9
    for place, text in enumerate(texts):
        pieces, ids, back = plain[3 * place : 3 * place + 3]
        assert pieces == " ".join(trained().pieces(text))
        assert ids == " ".join(map(str, trained().encode([text])[0]))
        shown = {0: "≠ the cat ⁇ bold ⁇ t", 1: "≠ the ⁇", 2: "="}[place]
        assert re.sub(" +", " ", back) == shown
    assert "\x1b" in found[5] and "\x1b" not in found[8]  # red where it differs


@pytest.mark.parametrize("line", ["4 x", "4.0", "1e3", "99999999999", "--4"])
def test_what_is_no_id_is_refused_by_line(line, tmp_path):
    trained().save(tmp_path / "a.model")
    with pytest.raises(InputError, match="Line 2 must be ids"):
        call("tokenize", tmp_path / "a.model", "--ids", "--detokenize", stdin=f"4 5\n{line}\n")


def test_ids_outside_the_vocabulary_are_skipped(tmp_path):
    trained().save(tmp_path / "a.model")
    the = " ".join(map(str, trained().encode(["the"])[0]))
    text = f"{the} -1 0 2 99999 {the} 3 {the}\n\n"
    options = ["--ids", "--detokenize"]
    assert call("tokenize", tmp_path / "a.model", *options, stdin=text) == ["the the", ""]


def test_where_there_is_no_tokenizer_is_said(places, tmp_path):
    (tmp_path / "a.bin").touch()
    (tmp_path / "a.model").touch()
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "saved_model.pb").touch()
    for path, message in (
        (tmp_path / "no", "no is no run, no SavedModel and no tokenizer's file"),
        (tmp_path / "a.bin", r"a.bin must be a tokenizer's file, .* \.model, \.txt, \.bytes"),
        (tmp_path / "a.model", "a.model: These bytes are no SentencePiece model"),
        (tmp_path, "1 has no files of its tokenizers: export the run again"),
    ):
        with pytest.raises(InputError, match=message):
            call("tokenize", path, stdin="a\n")
    with pytest.raises(InputError, match="--side must be source or target. Received: 'both'"):
        call("tokenize", places / "run", "--side", "both", stdin="a\n")


# vocabulary


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "a.src").write_text(lines(SENTENCES), encoding="utf-8")
    with gzip.open(tmp_path / "a.tgt.gz", "wt", encoding="utf-8") as file:
        file.write(lines(["zebra zebra quagga"] * 9))
    return tmp_path


def test_a_vocabulary_of_two_files(corpus):
    for name, options in (
        ("a.model", ["--size", 90]),
        ("b.model", ["--size", 400, "--model-type", "bpe", "--byte-fallback", "--symbol", "<br>"]),
        ("c.model", ["--size", 90, "--normalization", "identity"]),
        ("d.vocab.txt", ["--size", 250, "--type", "wordpiece"]),
    ):
        output = corpus / name
        files = [corpus / "a.src", corpus / "a.tgt.gz"]
        assert call("vocabulary", *files, "--output", output, *options) == []
        found = read_tokenizer(output)
        assert found.vocabulary_size <= options[1]
        assert 1 not in found.encode(["zebra quagga 我爱北京"])[0]
        words = {
            "b.model": "bpe, normalization nmt_nfkc, byte pieces, 1 symbols",
            "c.model": "iden",
        }
        assert words.get(name, "") in found.description
    assert sorted(path.suffix for path in corpus.iterdir()).count(".writing") == 0


def test_it_says_how_well_it_cuts(corpus):
    (corpus / "few.txt").write_text("aa aa aa aab\n" * 25, encoding="utf-8")
    options = ["--output", corpus / "a.vocab.txt", "--type", "wordpiece", "--size", 7]
    done = CliRunner().invoke(
        app,
        ["vocabulary", str(corpus / "few.txt"), *map(str, options), "--character-coverage", "0.98"],
    )
    # 25 of 225 letters are b, so that 98 % of them are a and b, in both forms, beside our four.
    assert isinstance(done.exception, InputError) and "need 8" in str(done.exception)
    options[-1] = 9
    done = CliRunner().invoke(app, ["vocabulary", str(corpus / "few.txt"), *map(str, options)])
    # aa aa aa aa ##b: five tokens for four words.
    assert "WordPiece, 9 ids; 1.25 tokens a word, 0.00% of them unknown" in done.stderr


@pytest.mark.case("31")
@pytest.mark.parametrize("name", ["x.model", "x.vocab.txt"])
def test_what_cannot_be_learnt_names_the_files_and_leaves_nothing(corpus, name):
    (corpus / "empty").touch()
    (corpus / "latin").write_bytes(b"caf\xe9\n")
    (corpus / "kept").mkdir()
    type_ = ["--type", "sentencepiece" if name == "x.model" else "wordpiece"]
    output = ["--output", corpus / "kept" / name, *type_]
    for arguments, message in (
        ([corpus / "empty"], "empty: No vocabulary of 8000 .* no letter"),
        ([corpus / "a.src", "--size", 10], r"a\.src: No vocabulary of 10 .* alone need \d+"),
        ([corpus / "a.src", corpus / "no"], "There is no file .*no"),
        ([corpus / "latin"], "^[^:]*latin must be UTF-8, but line 1"),
        ([corpus / "a.src", "--encoding-errors", "ignore"], "strict or replace"),
    ):
        with pytest.raises(InputError, match=message):
            call("vocabulary", *arguments, *output)
    assert not list((corpus / "kept").iterdir())
    call("vocabulary", corpus / "latin", *output, "--encoding-errors", "replace")
    assert "caf" in "".join(read_tokenizer(corpus / "kept" / name).pieces("caf"))


@pytest.mark.case("83")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--type", "byte"], 'nothing to learn for type = "byte"'),
        (["--type", "words"], "`type` must be 'sentencepiece', 'wordpiece' or 'byte'"),
        (["--type", "wordpiece", "--byte-fallback"], "`byte_fallback` has no meaning"),
        (["--type", "wordpiece", "--model-type", "bpe"], "`model_type` has no meaning"),
        (["--type", "byte", "--size", "300"], "`vocabulary_size` has no meaning"),
        (["--type", "wordpiece"], r"x\.model must end in \.txt"),
        (["--normalization", "nfd"], "`normalization` must be 'nmt_nfkc'"),
        (["--symbol", "a b"], "`user_symbols` must be texts without blanks"),
        (["--character-coverage", "0.5"], "`character_coverage` must be from 0.98 to 1"),
    ],
)
def test_an_option_without_effect_is_refused(corpus, options, message):
    with pytest.raises(InputError, match=message):
        call("vocabulary", corpus / "a.src", "--output", corpus / "x.model", *options)
    assert not (corpus / "x.model").exists()

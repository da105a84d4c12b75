"""WordPiece: the ids of another implementation and of the definition; vocabulary files."""

import logging
import random
import re

import pytest
import tokenizers as hugging_face
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tokenizers.texts import SENTENCES, back, in_graph, nasty_texts, round_trip, trained
from tf_transformer import UNK_ID, InputError
from tf_transformer.tokenizers import WordPieceTokenizer
from tf_transformer.tokenizers.tokenizer import SPECIALS


def lines_of(tokenizer) -> list[str]:
    return tokenizer.content.decode().split("\n")[:-1]


@pytest.fixture(scope="module")
def tokenizer():
    """It knows the sign of its own file format as a letter."""
    return WordPieceTokenizer.train([*SENTENCES, "a ## b #c ##d [PAD] <s>"] * 3, 300)


def letters_of(tokenizer) -> list[str]:
    return [line for line in lines_of(tokenizer)[4:] if len(line) == 1]


def test_the_ids_are_those_of_hugging_face(tokenizer):
    """On text of known letters; it gives up on a whole word where one is unknown."""
    # "##" is written as a sign that no text has, or it would take the text "##d" for a piece.
    vocabulary = {re.sub("^##(?=.)", "\x01", line): n for n, line in enumerate(lines_of(tokenizer))}
    model = hugging_face.models.WordPiece(
        vocabulary,
        unk_token="[UNK]",
        continuing_subword_prefix="\x01",
        max_input_chars_per_word=1 << 30,
    )
    theirs = hugging_face.Tokenizer(model)
    theirs.pre_tokenizer = hugging_face.pre_tokenizers.WhitespaceSplit()

    draw = random.Random(1)
    parts = [*" ".join(SENTENCES).split(), *letters_of(tokenizer), "##", "a" * 300]
    known = set(letters_of(tokenizer))
    parts = [part for part in parts if set(part) <= known]
    texts = ["".join(draw.choices([*parts, " "], k=draw.randint(0, 12))) for _ in range(2_000)]
    expected = [encoding.ids for encoding in theirs.encode_batch(texts)]
    assert in_graph(tokenizer, texts) == tokenizer.encode(texts) == expected


BLANK = re.compile(r"[\s\x00-\x1f\x7f-\x9f\ufeff]+")


def by_definition(lines: list[str], text: str) -> list[int]:
    """The longest piece first, letter by letter; a letter that is no piece is UNK."""
    ids = {line: n for n, line in enumerate(lines) if n > 3}
    found = []
    for word in BLANK.split(text):
        at = 0
        while at < len(word):
            ends = range(len(word), at, -1)
            pieces = ((end, ("##" if at else "") + word[at:end]) for end in ends)
            hits = ((end, ids[piece]) for end, piece in pieces if piece in ids)
            # As the start of a word "##d" is text.
            at, token = next(
                (hit for hit in hits if at or not lines[hit[1]].startswith("##")), (at + 1, UNK_ID)
            )
            found.append(token)
    return found


def test_the_ids_are_those_of_the_definition(tokenizer):
    texts = [text[:400] for text in nasty_texts(2_000, seed=1)]
    expected = [by_definition(lines_of(tokenizer), text) for text in texts]
    assert in_graph(tokenizer, texts) == expected
    assert tokenizer.encode(texts) == expected


def test_what_comes_back(tokenizer):
    """The words with one blank between them; " ⁇ " for each letter that is no piece."""
    known = set(letters_of(tokenizer))

    def expected(text: str) -> str:
        words = [word for word in BLANK.split(text) if word]
        spelt = ["".join(x if x in known else " ⁇" for x in word).strip() for word in words]
        return " ".join(spelt)

    texts = [text[:400] for text in nasty_texts(1_000, seed=2)]
    assert back(tokenizer, tokenizer.encode(texts)) == [expected(text) for text in texts]


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.data())
def test_text_of_known_letters_with_single_blanks_comes_back(data):
    letters = st.sampled_from(letters_of(trained("wordpiece")))
    words = data.draw(st.lists(st.text(letters, min_size=1, max_size=30), max_size=9))
    assert round_trip(trained("wordpiece"), " ".join(words)) == " ".join(words)


def test_a_text_that_begins_inside_a_word_shows_no_mark(tokenizer):
    ids = tokenizer.piece_ids(["##he", "##e", "the", "##e"])
    assert UNK_ID not in ids
    assert back(tokenizer, [ids, ids[1:]]) == ["hee thee", "e thee"]


def test_punctuation_has_pieces_of_its_own():
    """ "mat." is made of the pieces of "mat", which also stands without a dot."""
    texts = ["the mat. the mat, (the mat) l'mat: mat", "mat the"] * 9
    found = WordPieceTokenizer.train(texts, 60)
    assert found.pieces("mat mat. (mat) l'mat") == [
        *("mat", "mat", "##.", "(", "##mat", "##)", "l", "##'", "##mat")
    ]


def test_rare_letters_are_left_out_by_their_share():
    """Of 1000 letters, 985 a, 10 b, 5 c: a is 98.5 % and both 99.5 %."""
    text = ["a" * 985 + "b" * 10 + "c" * 5]
    for coverage, letters in ((1.0, "abc"), (0.995, "ab"), (0.985, "a"), (0.99, "ab")):
        found = WordPieceTokenizer.train(text, 100, character_coverage=coverage)
        assert "".join(letters_of(found)) == letters
    with pytest.raises(InputError, match=r"`character_coverage`.*0.98 to 1.*99"):
        WordPieceTokenizer.train(text, 100, character_coverage=99)


# Files


@pytest.mark.case("37")
def test_line_ends_and_a_mark_make_no_difference(tokenizer, tmp_path):
    plain = tokenizer.content
    crlf = plain.replace(b"\n", b"\r\n")
    for content in (plain, crlf, b"\xef\xbb\xbf" + crlf, plain.removesuffix(b"\n")):
        path = tmp_path / "target.vocab.txt"
        path.write_bytes(content)
        for read in (WordPieceTokenizer.load, WordPieceTokenizer.adopt):
            assert read(path).content == plain


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["a", "##a"], r"begins with \[PAD\], \[UNK\], \[START\], \[END\]"),
        ([*SPECIALS, "a", "##a", "a"], "different pieces .*'a' in line 7"),
        ([*SPECIALS, "a", "##a", ""], "'' in line 7"),
        ([*SPECIALS, "a", "##a", "##"], "'##' in line 7"),
        ([*SPECIALS, "a", "##a", "[PAD]"], r"'\[PAD\]' in line 7"),
        ([*SPECIALS, "a", "##a", "a a"], "'a a' in line 7"),
        ([*SPECIALS, "a", "##a", "a\t9"], r"without blanks.*'a\\t9'"),
        ([*SPECIALS, "a", "##a", "ab", "##b"], "One is missing of: 'b'"),
        ([*SPECIALS, "a", "##a", "##ba", "b"], "One is missing of: 'b'"),
    ],
)
def test_what_is_no_vocabulary_is_refused_by_line(lines, message, tmp_path):
    path = tmp_path / "source.vocab.txt"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    with pytest.raises(InputError, match=rf"source\.vocab\.txt: .*{message}"):
        WordPieceTokenizer.load(path)


BERT = ["[PAD]", *(f"[unused{n}]" for n in range(5)), "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
BERT += ["!", "The", "the", "##s", "cat", "##ca", "t", "##t", "dog", "sat", "##!", "é"]


def test_a_vocabulary_of_bert_is_taken(tmp_path, caplog):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(BERT), encoding="utf-8")
    with caplog.at_level(logging.INFO):
        found = WordPieceTokenizer.adopt(path)
    lines = lines_of(found)
    kept = ["[MASK]", "!", "The", "the", "##s", "cat", "##ca", "t", "##t", "dog", "sat", "##!", "é"]
    assert lines[: 4 + len(kept)] == [*SPECIALS, *kept]
    letters = set("!Thescatdogsaté[MASK]")
    added = {form for letter in letters for form in (letter, f"##{letter}")} - set(kept)
    assert lines[4 + len(kept) :] == sorted(added)
    assert "Of 22 lines 13 are pieces" in caplog.text
    assert found.pieces("The cats sat!") == ["The", "cat", "##s", "sat", "##!"]
    assert found.pieces("thecat [CLS] [MASK]")[:3] == ["the", "##ca", "##t"]
    assert found.piece_ids(["[MASK]"]) == [4]  # text, like any other
    found.save(tmp_path / "ours.vocab.txt")
    assert WordPieceTokenizer.load(tmp_path / "ours.vocab.txt").content == found.content


@pytest.mark.parametrize(
    "names", [SPECIALS, ("[PAD]", "[UNK]", "[CLS]", "[SEP]"), ("<pad>", "<unk>", "<s>", "</s>")]
)
def test_specials_go_to_the_front_wherever_they_stand(names):
    lines = ["the", *names[::-1], "cat"]
    found = WordPieceTokenizer.from_foreign("\n".join(lines).encode())
    assert lines_of(found)[:6] == [*SPECIALS, "the", "cat"]
    assert not {0, 2, 3} & set(found.encode([" ".join(names)])[0])


def test_a_vocabulary_in_lower_case_is_taken_with_a_warning(caplog):
    WordPieceTokenizer.from_foreign(b"[UNK]\nthe\ncat\n")
    assert "no capital letter" in caplog.text
    caplog.clear()
    WordPieceTokenizer.from_foreign(b"[UNK]\nThe\n")
    WordPieceTokenizer.from_foreign("[UNK]\n我\n".encode())
    assert "no capital letter" not in caplog.text


@pytest.mark.parametrize("content", [b"", b"the\ncat\n", b"\xff\xfe", b"\0\1\2"])
def test_what_is_no_vocabulary_of_anybody_is_refused(content, tmp_path):
    (tmp_path / "vocab.txt").write_bytes(content)
    with pytest.raises(InputError, match=r"vocab\.txt: A WordPiece vocabulary"):
        WordPieceTokenizer.adopt(tmp_path / "vocab.txt")

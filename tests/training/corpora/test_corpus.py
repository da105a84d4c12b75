"""Parallel text: which pairs arrive, what is counted, what is refused before any work."""

import gzip
import logging
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tf_transformer.errors import InputError
from tf_transformer.lines import write_lines
from training.corpora.corpus import Corpus
from training.corpora.reading import find_split, read_pairs, read_split, read_tsv

Pairs = list[tuple[str, str]]


def write(folder: Path, **files: str | bytes) -> Path:
    """Writes `train_src="..."` as train.src and `train_src_gz` as train.src.gz."""
    for name, content in files.items():
        data = content.encode() if isinstance(content, str) else content
        path = folder / name.replace("_", ".")
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return folder


def pairs_of(corpus: Corpus) -> Pairs:
    return list(zip(corpus.source, corpus.target, strict=True))


def as_two_files(folder: Path, pairs: Pairs) -> Corpus:
    write_lines(folder / "train.src", [source for source, _ in pairs])
    write_lines(folder / "train.tgt", [target for _, target in pairs])
    return read_split(folder)


def as_tsv(folder: Path, pairs: Pairs) -> Corpus:
    write_lines(folder / "train.tsv.gz", [f"{source}\t{target}" for source, target in pairs])
    return read_split(folder)


READERS = pytest.mark.parametrize("read", [as_two_files, as_tsv])
Reader = Callable[[Path, Pairs], Corpus]


@READERS
def test_pairs_arrive_in_order(tmp_path, read: Reader):
    corpus = read(tmp_path, [("ein", "one"), ("zwei é", "two"), ("ein", "one")])
    assert pairs_of(corpus) == [("ein", "one"), ("zwei é", "two"), ("ein", "one")]
    assert len(corpus) == 3 and corpus.dropped == {} and corpus.repaired == {}
    assert "train" in corpus.name


@READERS
@given(
    pairs=st.lists(
        st.tuples(*[st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1)] * 2),
        min_size=1,
    )
)
def test_visible_text_is_verbatim(tmp_path_factory, read: Reader, pairs: Pairs):
    assert pairs_of(read(tmp_path_factory.mktemp("data"), pairs)) == pairs


@pytest.mark.case("33")
@pytest.mark.parametrize("longer", ["a\nb\n\nc\n", "a\nb\nc\nd\n"])
@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_unequal_files_are_refused(tmp_path, longer, split):
    write(tmp_path, **{f"{split}_src": "A\nB\nC\n", f"{split}_tgt_gz": longer})
    message = rf"{split}\.src has 3 and \S*{split}\.tgt\.gz has 4"
    with pytest.raises(InputError, match=message):
        read_split(tmp_path, split)
    with pytest.raises(InputError, match=message):
        read_split(tmp_path, files=[f"{split}.src", f"{split}.tgt.gz"])


@pytest.mark.case("33")
def test_a_missing_last_newline_is_no_difference(tmp_path):
    write(tmp_path, train_src="a\nb", train_tgt="A\nB\n")
    assert pairs_of(read_split(tmp_path)) == [("a", "A"), ("b", "B")]


@pytest.mark.case("35")
@pytest.mark.parametrize(
    "lines, cleaned",
    [
        (["a\u2028b", "c"], ["a b", "c"]),
        (["a\vb", "c\fd"], ["a b", "c d"]),
        (["a\x85b", "c"], ["a b", "c"]),
        (["a\x1cb", "c"], ["a b", "c"]),
        (["a\u2029b", "c\x1d\x1ed"], ["a b", "c d"]),
    ],
)
@READERS
def test_a_separator_inside_a_sentence_is_a_blank(tmp_path, read: Reader, lines, cleaned):
    corpus = read(tmp_path, [(line, "x") for line in lines])
    assert corpus.source == cleaned and corpus.target == ["x", "x"]
    corpus = read(tmp_path, [("x", line) for line in lines])
    assert corpus.source == ["x", "x"] and corpus.target == cleaned
    assert corpus.repaired == {"control characters": sum(" " in line for line in cleaned)}


@pytest.mark.case("37")
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_windows_files_give_the_same_pairs(tmp_path, mark, end):
    pairs = [(f"Wort {n}.", f"Word {n}.") for n in range(20)]
    source, target = (
        mark + "".join(side + end for side in sides) for sides in zip(*pairs, strict=True)
    )
    write(tmp_path, train_src=source, train_tgt=target, valid_src_gz=source, valid_tgt=target)
    write(tmp_path, test_tsv=mark + "".join(f"{one}\t{two}{end}" for one, two in pairs))
    for split in ("train", "valid", "test"):
        corpus = read_split(tmp_path, split)
        assert pairs_of(corpus) == pairs and corpus.repaired == {}


@pytest.mark.case("39")
def test_quotation_marks_are_text(tmp_path, caplog):
    write(
        tmp_path,
        train_tsv='ein\tone\n"zwei\ttwo\ndrei\tthree\nvier\tfour\nfuenf "Wort"\tfive\nsechs\tsix\n'
        "a\tb\tc\nalone\nblank\t\n",
    )
    with caplog.at_level(logging.WARNING):
        corpus = read_tsv(tmp_path / "train.tsv")
    assert pairs_of(corpus) == [
        ("ein", "one"),
        ('"zwei', "two"),
        ("drei", "three"),
        ("vier", "four"),
        ('fuenf "Wort"', "five"),
        ("sechs", "six"),
    ]
    assert corpus.dropped == {"not two fields": 2, "blank on one side": 1}
    assert "line 7 has 3, line 8 has 1." in caplog.text


def test_a_tsv_of_the_wrong_shape_is_refused_and_not_listed_line_by_line(tmp_path, caplog):
    write(tmp_path, train_tsv="a\tb\tCC-BY\n" * 1000)
    with pytest.raises(InputError, match=r"train\.tsv: no pair is left: 1000 \(not two fields\)"):
        read_tsv(tmp_path / "train.tsv")
    assert "line 5 has 3, ..." in caplog.text and "line 6" not in caplog.text


@READERS
def test_what_is_dropped_and_repaired_is_counted_and_logged_once(tmp_path, caplog, read: Reader):
    pairs = [
        ("fine", "fine"),
        ("", "blank source"),
        ("blank target", " \u00a0 "),
        ("", ""),
        (" outer", "outer "),
        ("N\0UL", "one\x07 two\x07"),
        ("\x00", "nothing but NUL"),
    ]
    with caplog.at_level(logging.INFO, logger="training.corpora.corpus"):
        corpus = read(tmp_path, pairs)
    assert pairs_of(corpus) == [("fine", "fine"), ("outer", "outer"), ("N UL", "one  two")]
    assert corpus.dropped == {"blank on one side": 4}
    assert corpus.repaired == {"outer blanks": 2, "control characters": 2}
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().endswith(
        "3 pairs; pairs dropped: 4 (blank on one side); "
        "sentences repaired: 2 (outer blanks), 2 (control characters)"
    )


def test_tabs_in_a_pair_of_files_are_blanks(tmp_path):
    write(tmp_path, train_src="a\tb\n", train_tgt="A\t\tB\t\n")
    assert pairs_of(read_split(tmp_path)) == [("a b", "A B")]


@pytest.mark.parametrize("end", ["src", "tgt"])
def test_bad_bytes_stop_or_are_replaced(tmp_path, end):
    write(tmp_path, train_src="a\nb\n", train_tgt="A\nB\n", valid_tsv=b"a\tA\nb\xe9\tB\n")
    (tmp_path / f"train.{end}").write_bytes(b"a\nb\xe9\n")
    with pytest.raises(InputError, match=rf"train\.{end} must be UTF-8, but line 2 .* 0xE9"):
        read_split(tmp_path)
    with pytest.raises(InputError, match=r"valid\.tsv must be UTF-8, but line 2 .* 0xE9"):
        read_split(tmp_path, "valid")
    corpus = read_split(tmp_path, errors="replace")
    assert (corpus.source if end == "src" else corpus.target) == ["a", "b\ufffd"]
    assert read_split(tmp_path, "valid", errors="replace").source == ["a", "b\ufffd"]


@pytest.mark.parametrize(
    "files",
    [
        ["train.src", "train.tgt"],
        ["train.src.gz", "train.tgt"],
        ["train.src.gz", "train.tgt.gz"],
        ["train.tsv"],
        ["train.tsv.gz"],
    ],
)
def test_find_split(tmp_path, files):
    for name in [*files, "valid.src", "valid.tgt", "train.refs.tsv", "train.src.bak"]:
        (tmp_path / name).touch()
    assert find_split(tmp_path, "train") == tuple(tmp_path / name for name in files)
    assert find_split(str(tmp_path), "train") == find_split(tmp_path, "train")


@pytest.mark.parametrize(
    "files, message",
    [
        ([], r"must hold train\.src and train\.tgt, or train\.tsv \(plain or \.gz\), but has none"),
        (["train.src"], r"has train\.src, but no train\.tgt \(plain or \.gz\)"),
        (["train.tgt.gz"], r"has train\.tgt\.gz, but no train\.src \(plain or \.gz\)"),
        (["train.src", "train.src.gz", "train.tgt"], r"holds train\.src, train\.src\.gz, train"),
        (["train.src", "train.src.gz"], r"holds train\.src, train\.src\.gz, and which of them"),
        (["train.src", "train.tgt", "train.tsv"], r"holds train\.src, train\.tgt, train\.tsv,"),
        (["train.tsv", "train.tsv.gz"], r"holds train\.tsv, train\.tsv\.gz, and which of them"),
    ],
)
def test_a_split_that_is_not_clear_is_refused(tmp_path, files, message):
    for name in files:
        (tmp_path / name).touch()
    with pytest.raises(InputError, match=message):
        find_split(tmp_path, "train")


def test_a_missing_folder_or_named_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="There is no data folder .*nowhere"):
        find_split(tmp_path / "nowhere", "train")
    write(tmp_path, a_src="a\n", a_tgt="A\n")
    assert pairs_of(read_split(tmp_path, files=["a.src", "a.tgt"])) == [("a", "A")]
    with pytest.raises(InputError, match=r"There is no file .*b\.tgt"):
        read_split(tmp_path, files=["a.src", "b.tgt"])
    with pytest.raises(InputError, match=r"must be a source and a target, or one TSV.*\['a', 'b'"):
        read_split(tmp_path, files=["a", "b", "c"])


@pytest.mark.parametrize(
    "source, target, message",
    [
        ("", "", r"train\.src \+ \S*train\.tgt: the corpus is empty"),
        ("\n\n", "a\nb\n", r"no pair is left: 2 \(blank on one side\)"),
        ("", "a\n", r"train\.src has 0 and \S*train\.tgt has 1"),
        (b"\xef\xbb\xbf", "", "the corpus is empty"),
    ],
)
def test_an_empty_corpus_is_refused(tmp_path, source, target, message):
    write(tmp_path, train_src=source, train_tgt=target)
    with pytest.raises(InputError, match=message):
        read_pairs(tmp_path / "train.src", tmp_path / "train.tgt")


def test_an_empty_tsv_is_refused(tmp_path):
    write(tmp_path, train_tsv="", valid_tsv="\n \n")
    with pytest.raises(InputError, match=r"train\.tsv: the corpus is empty"):
        read_split(tmp_path)
    with pytest.raises(InputError, match=r"valid\.tsv: no pair is left: 2 \(blank on one side\)"):
        read_split(tmp_path, "valid")


def test_sides_of_a_corpus_are_equally_long():
    with pytest.raises(InputError, match="mine: .* equally long. Received: 1 and 2 sentences"):
        Corpus(["a"], ["A", "B"], name="mine")
    assert len(Corpus(["a"], ["A"])) == 1


def test_real_pairs_arrive_complete_and_fast(shared_data):
    folder = shared_data("multi30k-en-de")
    start = time.process_time()
    train = read_split(folder)
    assert time.process_time() - start < 1
    assert len(train) == 29_000 and train.dropped == {}
    # Its README counts 40 German lines with blanks at their ends; one more has a tab inside.
    assert train.repaired == {"outer blanks": 40, "control characters": 1}
    assert len(read_split(folder, "valid")) == 1014
    assert len(read_split(folder, "test", ["test2016.src", "test2016.tgt"])) == 1000


@pytest.mark.parametrize(
    "name", ["demo-fr-en", "multi30k-en-fr", "python-docs-en-es", "tatoeba-en-de", "tatoeba-en-fr"]
)
def test_real_splits_have_the_counts_of_their_readmes(shared_data, name):
    folder = shared_data(name)
    readme = (folder / "README.md").read_text()
    for split in ("train", "valid"):
        (count,) = re.findall(rf"^\| `{split}\.src(?:\.gz)?` \|.*?\| (\d+) \|", readme, re.M)
        corpus = read_split(folder, split)
        assert len(corpus) == int(count) and corpus.dropped == {}

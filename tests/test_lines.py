"""Reading and writing lines: where a line ends, what is repaired, what is refused."""

import gzip
import hashlib
import io
import logging
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tf_transformer import lines as lines_module
from tf_transformer.errors import InputError
from tf_transformer.lines import clean_line, iter_lines, read_aligned, read_lines, write_lines

# What str.splitlines takes for a line break, besides "\n", "\r" and "\r\n".
SEPARATORS = ["\u2028", "\u2029", "\x85", "\v", "\f", "\x1c", "\x1d", "\x1e"]

texts = st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"])))


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize(
    "data, expected",
    [
        (b"", []),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\nb", ["a", "b"]),
        (b"a\nb\n", ["a", "b"]),
        (b"a\n\nb\n", ["a", "", "b"]),
        (b"\n", [""]),
        (b"a\n\n", ["a", ""]),
        (b"a\rb\r\n", ["a\rb"]),
        (b"\xef\xbb\xbf", []),
        (b"\xef\xbb\xbf\n", [""]),
        (b"a\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
        ("é €\n𝄞\n".encode(), ["é €", "𝄞"]),
    ],
)
@pytest.mark.parametrize("name", ["text", "text.gz"])
def test_read_lines(tmp_path, name, data, expected):
    assert read_lines(write(tmp_path / name, data)) == expected
    assert read_lines(io.BytesIO(data)) == expected


@pytest.mark.case("35")
@pytest.mark.parametrize(
    "data, expected",
    [
        ("a \u2028 b\nc\n", ["a \u2028 b", "c"]),
        ("a \v b\nc \f d\n", ["a \v b", "c \f d"]),
        ("a \x85 b\nc\n", ["a \x85 b", "c"]),
        ("a \x1c b\nc\n", ["a \x1c b", "c"]),
    ],
)
def test_separators_inside_a_sentence_end_no_line(tmp_path, data, expected):
    assert read_lines(write(tmp_path / "text", data.encode())) == expected


@pytest.mark.case("35")
@pytest.mark.parametrize("separator", [*SEPARATORS, "\t", "\0", "\r", "\x7f", "\ufeff"])
def test_a_separator_is_a_blank(separator):
    assert clean_line(f"a{separator}b") == "a b"
    assert clean_line(f"{separator} a{separator}{separator}b{separator}") == "a b"


@pytest.mark.parametrize("text", ["", "a", "a  b", "naïve 'x' \"y\"", "a\u00a0b", "a\u200db"])
def test_clean_line_leaves_text_alone(text):
    assert clean_line(text) == text


@given(st.text())
def test_a_clean_line_is_one_line_for_everybody(text):
    cleaned = clean_line(text)
    assert len(cleaned.splitlines()) <= 1
    assert "\t" not in cleaned and cleaned == cleaned.strip()
    assert clean_line(cleaned) == cleaned


@pytest.mark.case("37")
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("last", [b"", None])
def test_windows_files_have_the_same_lines(tmp_path, mark, end, last):
    words = [f"wort{n} é" for n in range(20)]
    data = mark + end.join(word.encode() for word in words) + (end if last is None else last)
    assert read_lines(write(tmp_path / "text", data)) == words
    assert read_lines(write(tmp_path / "text.gz", data)) == words
    assert read_lines(io.BytesIO(data)) == words


@given(texts)
def test_what_is_written_is_read(tmp_path_factory, lines):
    expected = [line.removesuffix("\r") for line in lines]
    if lines:  # a mark at the start of the file is the file's, not the text's
        expected[0] = lines[0].removeprefix("\ufeff").removesuffix("\r")
    folder = tmp_path_factory.mktemp("lines")
    for name in ("text", "text.gz"):
        assert write_lines(folder / name, lines) == len(lines)
        assert read_lines(folder / name) == expected
    assert sorted(path.name for path in folder.iterdir()) == ["text", "text.gz"]


@given(st.binary())
def test_any_bytes_give_as_many_lines_as_they_have(data):
    data = b"x" + data  # no mark of another encoding at the start
    lines = read_lines(io.BytesIO(data), errors="replace")
    assert len(lines) == data.count(b"\n") + (not data.endswith(b"\n"))
    for line in lines:
        line.encode("utf-8")


@pytest.mark.parametrize(
    "bad, expected",
    [
        (b"hello \xe9 the", "hello \ufffd the"),
        (b"\xff\xfe hello", "\ufffd\ufffd hello"),
        (b"a \xff b \xe9", "a \ufffd b \ufffd"),
        (b"cut \xe2\x82", "cut \ufffd"),
    ],
)
def test_bad_bytes(tmp_path, caplog, bad, expected):
    path = write(tmp_path / "latin1", b"clean\n" + bad + b"\nclean\n" + bad)
    byte = next(byte for byte in bad if byte > 127)
    where = re.escape(f"line 2 has the byte 0x{byte:02X} at its byte {bad.index(byte) + 1}")
    with pytest.raises(InputError, match=f"latin1 must be UTF-8, but {where}"):
        read_lines(path)
    with caplog.at_level(logging.WARNING):
        assert read_lines(path, errors="replace") == ["clean", expected, "clean", expected]
    assert "latin1: 2 line(s)" in caplog.text and "the first is line 2" in caplog.text
    assert read_lines(io.BytesIO(bad), errors="replace") == [expected]


def test_clean_files_are_read_without_a_word(tmp_path, caplog):
    with caplog.at_level(logging.INFO):
        read_lines(write(tmp_path / "text", b"a\nb\n"), errors="replace")
    assert caplog.text == ""


def test_errors_is_checked(tmp_path):
    with pytest.raises(ValueError, match='must be "strict" or "replace".*ignore'):
        iter_lines(tmp_path, errors="ignore")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
@pytest.mark.parametrize("errors", ["strict", "replace"])
def test_utf16_is_refused(tmp_path, encoding, errors):
    path = write(tmp_path / "text", "hello\nthere\n".encode(encoding))
    with pytest.raises(
        InputError, match="text must be UTF-8, but it starts with the mark of UTF-16"
    ):
        read_lines(path, errors=errors)


@pytest.mark.parametrize("damage", ["truncated", "flipped", "plain"])
def test_unsound_gzip_is_refused(tmp_path, damage):
    whole = gzip.compress(b"".join(b"line %d\n" % n for n in range(10_000)), mtime=0)
    half = len(whole) // 2
    data = {
        "truncated": whole[:half],
        "flipped": whole[:half] + bytes([whole[half] ^ 0xFF]) + whole[half + 1 :],
        "plain": b"line 1\nline 2\n",
    }[damage]
    path = tmp_path / "train.src.gz"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"train\.src\.gz is not sound gzip"):
        read_lines(path)


def test_gzip_of_another_name_is_refused(tmp_path):
    path = tmp_path / "train.src"
    path.write_bytes(gzip.compress(b"a\n"))
    for errors in ("strict", "replace"):
        with pytest.raises(InputError, match=r"train\.src is gzip, so its name must end in \.gz"):
            read_lines(path, errors=errors)


@pytest.mark.parametrize("name", ["nowhere", "nowhere.gz"])
def test_a_missing_file_or_a_folder_is_refused_before_reading(tmp_path, name):
    with pytest.raises(InputError, match=f"There is no file .*{name}"):
        iter_lines(tmp_path / name)
    (tmp_path / name).mkdir()
    with pytest.raises(InputError, match=f"{name} must be a text file, but it is a folder"):
        iter_lines(tmp_path / name)


@pytest.mark.parametrize("data", [b"x" * 100, b"short\n" + b"x" * 100 + b"\n"])
def test_a_binary_file_does_not_fill_the_memory(tmp_path, monkeypatch, data):
    monkeypatch.setattr(lines_module, "MAX_LINE_BYTES", 64)
    number = 1 + data.count(b"\n", 0, 50)
    with pytest.raises(InputError, match=f"image must be lines of text, but line {number} is too"):
        read_lines(write(tmp_path / "image", data))
    fits = b"x" * 63 + b"\n"
    assert read_lines(io.BytesIO(fits * 2)) == ["x" * 63] * 2


def test_a_stream_is_named_and_stays_open():
    stream = io.BytesIO(b"a\n\xe9\n")
    with pytest.raises(InputError, match="^standard input must be UTF-8, but line 2 "):
        read_lines(stream, name="standard input")
    assert not stream.closed


def test_a_pipe_is_read_line_by_line():
    reader, writer = os.pipe()
    with open(reader, "rb") as source, open(writer, "wb", buffering=0) as sink:
        lines = iter_lines(source)
        for text in ("one", "two"):  # would hang if more than the line were waited for
            sink.write(f"{text}\n".encode())
            assert next(lines) == text


def test_a_dropped_iterator_closes_its_file(tmp_path, monkeypatch):
    opened = []
    open_file = lines_module._open
    monkeypatch.setattr(
        lines_module, "_open", lambda path: opened.append(open_file(path)) or opened[-1]
    )
    path = write(tmp_path / "text", b"a\nb\n")
    lines = iter_lines(path)
    assert not opened[0].closed
    del lines
    assert opened[0].closed
    read_lines(path)
    assert opened[1].closed


@pytest.mark.case("33")
@pytest.mark.parametrize("longer", ["a\nb\n\nc\n", "a\nb\nc\nd\n"])
def test_files_that_are_not_aligned_are_refused_with_names_and_counts(tmp_path, longer):
    source = write(tmp_path / "hypothesis", b"A\nB\nC\n")
    target = write(tmp_path / "reference", longer.encode())
    with pytest.raises(InputError, match=r"\S+hypothesis has 3 and \S+reference has 4"):
        read_aligned(source, target)
    with pytest.raises(InputError, match=r"reference has 4 and \S+hypothesis has 3 and"):
        read_aligned(target, source, source)


@pytest.mark.case("33")
def test_a_missing_last_newline_is_no_difference(tmp_path):
    source, target = write(tmp_path / "a", b"a\nb"), write(tmp_path / "b", b"A\nB\n")
    assert read_aligned(source, target) == [["a", "b"], ["A", "B"]]


def test_aligned_lines_keep_blanks_and_refuse_bad_bytes(tmp_path):
    source, target = write(tmp_path / "a", b" a\n\n"), write(tmp_path / "b", b"A\n\xe9\n")
    assert read_aligned(source, target, errors="replace") == [[" a", ""], ["A", "\ufffd"]]
    with pytest.raises(InputError, match="b must be UTF-8, but line 2"):
        read_aligned(source, target)
    with pytest.raises(InputError, match="There is no file .*nowhere"):
        read_aligned(target, tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["text", "text.gz"])
def test_a_stopped_writer_harms_nothing(tmp_path, name):
    def stops():
        yield "new"
        raise KeyboardInterrupt

    path = write(tmp_path / name, b"old\n")
    for broken, error in ((stops(), KeyboardInterrupt), (["new", "two\nlines"], ValueError)):
        with pytest.raises(error):
            write_lines(path, broken)
        assert read_lines(path) == ["old"]
        assert list(tmp_path.iterdir()) == [path]


def test_a_line_break_inside_a_line_is_refused():
    stream = io.BytesIO()
    with pytest.raises(ValueError, match=r"line break. Received: line 2, 'two\\nlines'"):
        write_lines(stream, ["one", "two\nlines"])


def test_gzip_has_neither_name_nor_time(tmp_path):
    write_lines(tmp_path / "a.gz", ["x"])
    write_lines(tmp_path / "b.gz", iter(["x"]))
    first, second = (tmp_path / "a.gz").read_bytes(), (tmp_path / "b.gz").read_bytes()
    assert first == second and gzip.decompress(first) == b"x\n"


def test_where_nothing_can_be_written(tmp_path):
    with pytest.raises(InputError, match="out must be a file, but it is a folder"):
        (tmp_path / "out").mkdir()
        write_lines(tmp_path / "out", ["x"])
    with pytest.raises(InputError, match="nowhere/out can't be written: No such file"):
        write_lines(tmp_path / "nowhere" / "out", ["x"])
    (tmp_path / "plain").touch()
    with pytest.raises(InputError, match="plain/out can't be written: Not a directory"):
        write_lines(tmp_path / "plain" / "out", ["x"])


@pytest.mark.skipif(sys.platform == "win32", reason="links and pipes of POSIX")
def test_links_and_pipes_stay_what_they_are(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(write(tmp_path / "text", b"old\n"))
    write_lines(link, ["new"])
    assert link.is_symlink() and read_lines(tmp_path / "text") == ["new"]

    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.extend(read_lines(pipe)))
    reader.start()
    write_lines(pipe, ["a", "b"])
    reader.join(timeout=10)
    assert got == ["a", "b"] and pipe.is_fifo()


def test_a_stream_gets_each_line_at_once():
    class Counter(io.BytesIO):
        flushed = 0

        def flush(self):
            self.flushed += 1

    stream = Counter()
    assert write_lines(stream, ["a", "é"]) == 2
    assert stream.getvalue() == "a\né\n".encode() and stream.flushed == 2


def test_lines_need_no_tensorflow():
    program = (
        "import sys; sys.argv[0] = 'tf-transformer'\n"  # the command line's own import
        "import tf_transformer.lines, training.recipe\n"
        "print([name for name in ('tensorflow', 'keras', 'numpy') if name in sys.modules])\n"
        "import training.corpora.corpus\n"
        "print([name for name in ('tensorflow', 'keras') if name in sys.modules])"
    )
    root = Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True)
    assert done.stdout == "[]\n[]\n", done.stderr


def test_real_text_is_read_whole(shared_data):
    """The digest of the text inside each file is in the README that came with the data."""
    folder = shared_data("multi30k-en-de")
    rows = re.findall(
        r"^\| `(\S+)` \|.*?\| (\d+) \|.*`(\w+)` \| `(\w+)` \|$",
        (folder / "README.md").read_text(),
        re.M,
    )
    assert len(rows) == 12
    for name, count, of_file, of_text in rows:
        lines = read_lines(folder / name)
        assert len(lines) == int(count)
        digest = hashlib.sha256("".join(line + "\n" for line in lines).encode()).hexdigest()
        assert digest == (of_file if of_text == "same" else of_text), name

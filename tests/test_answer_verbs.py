"""tf_transformer/answer_verbs.py: what `translate` and `score` tell beside the translation."""

import io
import json
import math
import re

import pytest
import rich.console
import tensorflow as tf

from tests.command import assert_refused, in_process
from tests.tiny_translator import ENGLISH, FRENCH, save_module
from tests.trained_translator import trained_config, trained_translator
from tf_transformer import progress, saved
from tf_transformer.answer_verbs import _batching
from tf_transformer.cli_options import cores
from tf_transformer.translator import Translator

LONG = "le chat dort " * 7_700  # 100,100 letters
SOURCES = [FRENCH[0], "", FRENCH[3], LONG, "le chat", " ", FRENCH[5]]


@pytest.fixture(scope="module")
def known() -> Translator:
    return trained_translator()


@pytest.fixture(scope="module")
def folder(known, tmp_path_factory):
    """Its run directory."""
    directory = tmp_path_factory.mktemp("run")
    known.save(directory, trained_config())
    return directory


@pytest.fixture
def run(monkeypatch, capsysbinary, known):
    """The command, on graphs that are traced once for all tests."""

    def opened(path, **changes):
        return known.with_options(**changes) if changes else known

    monkeypatch.setattr(saved, "open_translator", opened)
    return in_process(monkeypatch, capsysbinary)


@pytest.fixture(scope="module")
def expected(known):
    """All that the graph itself gives for SOURCES."""
    cut = [source.strip() for source in SOURCES]
    return list(known.stream(cut, known.translate_with_alignments))


def stdin(lines):
    return "".join(f"{line}\n" for line in lines).encode()


def place(found, k, name):
    return [(int(s), t) for t, s in enumerate(found[name][k]) if s >= 0]


def test_columns_of_n_best(run, expected):
    """Best first, as many lines as hypotheses; numbers, scores and links are those of the graph."""
    flags = ["--n-best", "4", "--scores", "--alignments"]
    done = run("translate", "known", *flags, stdin=stdin(SOURCES))
    rows = [line.split("\t") for line in done.lines]
    assert done.code == 0 and {len(row) for row in rows} == {6}
    assert [int(row[0]) for row in rows] == [1] * 4 + [2] + [3] * 4 + [4] * 4 + [5] * 4 + [6] + [
        7
    ] * 4
    for number, found in enumerate(expected, 1):
        mine = [row for row in rows if int(row[0]) == number]
        for k, (_, text, score, log_prob, length, links) in enumerate(mine):
            assert text == found["texts"][k].decode()
            assert float(score) == pytest.approx(found["scores"][k], abs=1e-4)
            assert float(log_prob) == pytest.approx(found["log_probs"][k], abs=1e-4)
            assert int(length) == found["lengths"][k]
            pairs = place(found, k, "word_alignment")
            assert links == " ".join(f"{s}-{t}" for s, t in pairs)
            assert [t for _, t in pairs] == list(range(len(text.split())))
            source_words = len(SOURCES[number - 1].split())
            assert all(0 <= s < source_words for s, _ in pairs)
        scores = [float(row[2]) for row in mine]
        assert scores == sorted(scores, reverse=True)
    assert rows[0][1] == ENGLISH[0] and rows[4][1:] == ["", "0.000000", "0.000000", "0", ""]


def test_fewer_hypotheses_are_the_first_ones(run, expected):
    done = run("translate", "known", "--n-best", "2", stdin=stdin(SOURCES[:3]))
    texts = [found["texts"] for found in expected[:3]]
    assert done.lines == [
        f"1\t{texts[0][0].decode()}",
        f"1\t{texts[0][1].decode()}",
        "2\t",
        f"3\t{texts[2][0].decode()}",
        f"3\t{texts[2][1].decode()}",
    ]


def test_one_line_a_line_with_pieces(run, expected):
    """Without --n-best there is no number; pieces can be counted against their links."""
    done = run("translate", "known", "--pieces", stdin=stdin(SOURCES))
    rows = [line.split("\t") for line in done.lines]
    assert len(rows) == len(SOURCES) and {len(row) for row in rows} == {4}
    for row, found in zip(rows, expected, strict=True):
        text, source, target, links = row
        assert text == found["texts"][0].decode()
        assert len(target.split()) == found["lengths"][0]
        assert target.replace(" ", "").replace("▁", " ").removesuffix("</s>").strip() == text
        pairs = [tuple(map(int, link.split("-"))) for link in links.split()]
        assert pairs == place(found, 0, "piece_alignment")
        assert all(s < len(source.split()) - 1 for s, _ in pairs)  # never END


def test_json_has_all_of_it(run, expected, caplog):
    flags = ["--json", "--n-best", "3", "--alignments"]
    done = run("translate", "known", *flags, stdin=stdin(SOURCES))
    told = [json.loads(line) for line in done.lines]
    assert len(told) == len(SOURCES)
    for one, source, found in zip(told, SOURCES, expected, strict=True):
        assert list(one) == ["source", "truncated", "source_tokens", "hypotheses"]
        assert one["source"] == source.strip() and one["truncated"] == (source == LONG)
        assert len(one["hypotheses"]) == (3 if source.strip() else 1)
        for k, hypothesis in enumerate(one["hypotheses"]):
            assert list(hypothesis) == [
                *("text", "score", "log_prob", "length", "tokens", "token_log_probs"),
                *("finished", "alignment"),
            ]
            assert hypothesis["text"] == found["texts"][k].decode()
            assert len(hypothesis["tokens"]) == hypothesis["length"] == found["lengths"][k]
            assert sum(hypothesis["token_log_probs"]) == pytest.approx(
                hypothesis["log_prob"], abs=1e-3
            )
            assert hypothesis["finished"] is bool(found["finished"][k])
            assert hypothesis["alignment"] == [
                list(pair) for pair in place(found, k, "word_alignment")
            ]
    warnings = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert len(warnings) == 1 and warnings[0].startswith("Line 4: the source has ")


def test_a_line_of_100_000_letters_harms_no_other(run, known):
    done = run("translate", "known", stdin=stdin(SOURCES))
    others = [line for line, source in zip(done.lines, SOURCES, strict=True) if source != LONG]
    assert others == known([source for source in SOURCES if source != LONG])


def test_more_hypotheses_than_beams(run):
    done = run("translate", "known", "--n-best", "6", stdin=stdin(FRENCH[:1]))
    assert len(done.lines) == 6 and len(set(done.lines)) == 6
    assert_refused(
        run("translate", "known", "--n-best", "3", "--beam", "2"),
        "--n-best must be at most --beam. Received: 3 and 2",
    )
    for wrong in ("0", "many"):
        assert run("translate", "known", "--n-best", wrong).code == 2


def test_the_layer_that_aligns_can_be_asked_for(run, known):
    done = run("translate", "known", "--pieces", "--alignment-layer", "0", stdin=stdin(FRENCH[:1]))
    again = run("translate", "known", "--pieces", stdin=stdin(FRENCH[:1]))
    assert done.lines == again.lines  # it has one layer only


# score


def scored(run, tmp_path, pairs, *flags):
    for name, side in (("s", 0), ("t", 1)):
        (tmp_path / name).write_bytes(stdin([pair[side] for pair in pairs]))
    return run("score", "known", "--source", tmp_path / "s", "--target", tmp_path / "t", *flags)


PAIRS = [
    (FRENCH[0], ENGLISH[0]),
    ("", ""),
    (FRENCH[1], ""),
    (FRENCH[3], ENGLISH[3]),
    (LONG, ENGLISH[4]),
    (FRENCH[2], "the " * 700),
]


def test_scores_of_a_file(run, known, tmp_path, caplog):
    done = scored(run, tmp_path, PAIRS)
    rows = [line.split("\t") for line in done.lines]
    found = list(known.score((s.strip(), t.strip()) for s, t in PAIRS))
    assert done.code == 0 and {len(row) for row in rows} == {3}
    for (log_prob, tokens, score), one in zip(rows, found, strict=True):
        assert float(log_prob) == pytest.approx(one["log_prob"], abs=1e-3)
        assert int(tokens) == one["length"]
        assert float(score) == pytest.approx(one["score"], abs=1e-3)
        if int(tokens):
            again = float(log_prob) / ((5 + int(tokens)) / 6) ** 0.6
            assert float(score) == pytest.approx(again, rel=1e-4)
    assert rows[1] == ["0.000000", "0", "0.000000"]
    total, tokens = sum(float(row[0]) for row in rows), sum(int(row[1]) for row in rows)
    pattern = r"6 pairs, ([\d,]+) tokens, log P (-[\d,.]+), perplexity ([\d,.]+) a token"
    said = [part.replace(",", "") for part in re.fullmatch(pattern, done.err.strip()).groups()]
    assert int(said[0]) == tokens and float(said[1]) == pytest.approx(total, abs=0.1)
    assert float(said[2]) == pytest.approx(math.exp(-total / tokens), rel=1e-3)
    warnings = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"][:2]
    assert [" ".join(text.split()[:4]) for text in warnings] == [
        "Line 5: the source",
        "Line 6: the target",
    ]


def test_tokens_and_alignments_of_given_pairs(run, known, tmp_path):
    rows = [
        line.split("\t")
        for line in scored(run, tmp_path, PAIRS[:4], "--tokens", "--alignments").lines
    ]
    told = [
        json.loads(line) for line in scored(run, tmp_path, PAIRS[:4], "--json", "--pieces").lines
    ]
    aligned = list(known.score(PAIRS[:4], known.align_pairs))
    for row, one, found, (source, target) in zip(rows, told, aligned, PAIRS, strict=False):
        _, tokens, _, pieces, log_probs, links = row
        assert len(pieces.split()) == len(log_probs.split()) == int(tokens)
        assert sum(map(float, log_probs.split())) == pytest.approx(float(row[0]), abs=1e-3)
        pairs = [tuple(map(int, link.split("-"))) for link in links.split()]
        assert [t for _, t in pairs] == (list(range(len(target.split()))) if source else [])
        assert (one["source"], one["target"]) == (source, target)
        assert one["tokens"] == pieces.split() and one["length"] == int(tokens)
        assert one["alignment"] == [
            [int(s), t] for t, s in enumerate(found["piece_alignment"]) if s >= 0
        ]
        assert len(one["source_tokens"]) == len(known.tokenizers.source.pieces(source)) + 1


def test_files_that_do_not_belong_together_are_refused(run, tmp_path):
    (tmp_path / "s").write_text("a\nb\n")
    (tmp_path / "t").write_text("a\nb\nc\n")
    output = tmp_path / "out"
    flags = ["--source", tmp_path / "s", "--target", tmp_path / "t", "--output", output]
    assert_refused(run("score", "known", *flags), r"s has 2 and \S+t has 3")
    assert_refused(run("score", "known", *flags[:3], tmp_path / "none"), "There is no file .*none")
    assert not output.exists()


def test_nothing_to_score(run, tmp_path):
    done = scored(run, tmp_path, [])
    assert (done.code, done.text) == (0, "")
    assert done.err.strip() == "0 pairs, 0 tokens, log P 0.000"


# A real run, an export without these signatures, a stop


def test_a_run_directory_is_scored_and_aligned(monkeypatch, capsysbinary, folder, known, tmp_path):
    """Nothing patched: options of the run, in a file, with threads."""
    run = in_process(monkeypatch, capsysbinary)
    (tmp_path / "in").write_bytes(stdin(FRENCH))
    flags = ["--input", tmp_path / "in", "--output", tmp_path / "out", "--threads", "2"]
    done = run("translate", folder, *flags, "--scores", "--batch-tokens", "60")
    assert (done.code, done.text, done.err) == (0, "", "")
    rows = [line.split("\t") for line in (tmp_path / "out").read_text("utf-8").splitlines()]
    assert [row[0] for row in rows] == ENGLISH and {len(row) for row in rows} == {4}


def test_an_export_that_lacks_the_signature_says_so(monkeypatch, capsysbinary, tmp_path):
    spec = tf.TensorSpec([None], tf.string, name="text")

    def shout(text):
        return {"text": tf.strings.upper(text), "score": tf.zeros(tf.shape(text))}

    save_module(tf.Module(), tmp_path, serving_default=tf.function(shout, input_signature=[spec]))
    run = in_process(monkeypatch, capsysbinary)
    assert run("translate", tmp_path, stdin=b"a\nb\n").lines == ["A", "B"]
    assert_refused(
        run("translate", tmp_path, "--scores", stdin=b"a\n"),
        "no signature translate_n_best: give the run directory",
    )


@pytest.mark.parametrize("to_file", [False, True])
def test_ctrl_c_leaves_whole_lines_or_no_file(run, known, monkeypatch, tmp_path, to_file):
    """Standard output has the answers so far, a file is not there at all."""

    def interrupted(texts, answer=None, **options):
        for number, _ in enumerate(texts):
            if number == 3:
                raise KeyboardInterrupt
            yield {"texts": [f"answer {number}".encode()], "lengths": [2], "finished": [True]}

    monkeypatch.setattr(known, "stream", interrupted)
    output = tmp_path / "out"
    flags = ["--output", output] if to_file else []
    done = run("translate", "known", "--n-best", "1", *flags, stdin=stdin("abcdef"))
    assert done.code == 130
    assert list(tmp_path.iterdir()) == []
    assert done.lines == ([] if to_file else ["1\tanswer 0", "2\tanswer 1", "3\tanswer 2"])


def test_who_types_is_answered_line_by_line():
    assert _batching(None, None, typed=True).window == 1
    assert _batching(None, None).window > 1000
    assert _batching(99, 3).batch_tokens == 99 and _batching(99, 3).workers == 3
    assert _batching(None, None).workers == cores() >= 1


@pytest.mark.parametrize("terminal", [True, False])
def test_a_bar_on_terminals_only(monkeypatch, terminal):
    screen = io.StringIO()

    def console(**_):
        return rich.console.Console(
            file=screen, force_terminal=terminal, width=100, color_system=None
        )

    monkeypatch.setattr(progress, "Console", console)
    asked = []
    with progress.LineProgress(True, lambda: asked.append(1) or 1_200) as bar:
        bar.advance(1_000, 20_000)
        bar.advance(200, 5_000)
    said = screen.getvalue()
    if terminal:
        assert "1200/1200" in said and "1,200 lines in 0." in said
        assert re.search(r"[\d,.]+ lines/s, [\d,]+ tokens/s", said)
    assert bool(said) == terminal and len(asked) == terminal

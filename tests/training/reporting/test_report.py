"""training/reporting/report.py: a page that says what a run was, and needs nothing from outside."""

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tf_transformer.errors import InputError
from training.keeping.provenance import PROVENANCE_FILE, read_provenance
from training.keeping.run_state import RunState
from training.reporting import plots, report
from training.reporting.plots import draw_history
from training.reporting.report import LiveReport, write_report

VOID = {"meta", "br", "hr", "img", "input", "link", "base"}
OUTSIDE = {"src", "href", "xlink:href", "srcset", "action", "data", "poster", "background"}


class Page(HTMLParser):
    """What is on a page: words by tag, tags, attributes; an AssertionError if tags don't match."""

    def __init__(self, path: Path) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(path.read_text(encoding="utf-8"))
        self.close()
        assert self.open == []
        self.words = " ".join(self.text.split())

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.text += f"{data} "


@pytest.fixture
def run(tiny_run, tmp_path):
    """A finished run, to be changed."""
    return Path(
        shutil.copytree(tiny_run.run, tmp_path / "run", ignore=shutil.ignore_patterns("*.h5"))
    )


@pytest.fixture(scope="module")
def history(tiny_run):
    return [json.loads(line) for line in (tiny_run.run / "history.jsonl").read_text().splitlines()]


def test_a_finished_run_has_a_report_that_tells_all(tiny_run, history):
    words = Page(tiny_run.run / "report.html").words
    for said in (
        "A Transformer of 6,368 parameters",  # embeddings and all, as in test_train.py
        "trained on 60 sentence pairs",
        "Finished: 30 updates, 3 passes",
        "holds the mean of step-20.weights.h5, step-30.weights.h5",
        "validation: ",
        "valid.src",
        "vocabulary_size = 50",
        "each of 1",
        "tensorflow 2.",
        "At the end, on sentence pairs that it was not trained on",
        "The training was started 1 time:",
        history[-1]["bleu_signature"],
    ):
        assert said in words, said
    for line in history:
        assert f"{line['val_nll']:.3f}" in words
        for sample in line["samples"]:
            for text in sample.values():
                assert " ".join(text.split()) in words


def test_it_needs_nothing_from_outside(tiny_run):
    page = Page(tiny_run.run / "report.html")
    assert page.tags.count("svg") == 1
    assert not {"script", "link", "iframe", "object", "embed", "img", "base", "form"} & set(
        page.tags
    )
    assert [value for name, value in page.attributes if name in OUTSIDE and value[:1] != "#"] == []
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    text = (tiny_run.run / "report.html").read_text()
    assert "@import" not in text
    assert {place[:1] for place in re.findall(r"url\(['\"]?(.)", text)} == {"#"}
    named = {value for name, value in page.attributes if "//" in value}
    assert named <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}  # namespaces


NASTY = """</td></table><script>alert("1")</script> & 'quoted' <b>{{ 7 * 7 }}{% raw %}"""


def test_all_that_people_wrote_is_escaped(run):
    lines = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    for line in lines:
        line["samples"] = [dict.fromkeys(("source", "reference", "translation"), NASTY)]
        line["bleu_signature"] = NASTY
    (run / "history.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    recipe = run / "config.toml"
    escaped = json.dumps(NASTY)
    recipe.write_text(
        recipe.read_text().replace('"source"', escaped, 1).replace('"target"', escaped, 1)
    )
    known = read_provenance(run)
    known["corpora"]["train"] |= {"name": NASTY, "left_out": {NASTY: 3}}
    known["starts"][-1]["machine"] = {NASTY: NASTY}
    known["final_weights"]["files"] = [NASTY]
    (run / PROVENANCE_FILE).write_text(json.dumps(known))
    page = Page(write_report(run))
    assert "script" not in page.tags and "b" not in page.tags
    # Title twice, summary twice, a sample: heading, reference and three rows, signature, corpus,
    # reason, machine twice, weights.
    assert page.text.count(NASTY) >= 14


def test_without_matplotlib_the_numbers_stay(run, history, monkeypatch):
    monkeypatch.setattr(report, "can_draw", lambda: False)
    page = Page(write_report(run))
    assert "svg" not in page.tags
    assert "No curves: they need matplotlib (pip install 'tf_transformer[plots]')" in page.words
    assert f"{history[-1]['val_nll']:.3f}" in page.words


def test_a_run_that_has_only_begun(run):
    for name in ("history.jsonl", PROVENANCE_FILE):
        (run / name).unlink()
    words = Page(write_report(run)).words
    assert "Nothing was measured yet" in words and "There are no final weights yet" in words


def test_a_run_that_goes_on(run):
    lines = (run / "history.jsonl").read_text().splitlines()
    more = {**json.loads(lines[-1]), "step": 40, "epoch": 4}
    (run / "history.jsonl").write_text("\n".join([*lines, json.dumps(more)]) + "\n")
    words = Page(write_report(run)).words
    assert "Not finished: 40 updates, 4 passes" in words
    assert "Until now, on sentence pairs" in words
    assert "The training has gone on since." in words


def test_it_tells_from_which_update_each_process_went_on(run):
    known = read_provenance(run)
    again = {**known["starts"][0], "at": "2026-02-03T04:05:06+00:00", "update": 1234}
    (run / PROVENANCE_FILE).write_text(json.dumps({**known, "starts": [*known["starts"], again]}))
    words = Page(write_report(run)).words
    first = known["starts"][0]["at"]
    assert "The training was started 2 times: at from update" in words
    assert f"at from update {first} 0 2026-02-03T04:05:06+00:00 1,234 The recipe" in words


def test_the_best_line_is_marked_and_early_stopping_told(run):
    recipe = run / "config.toml"
    recipe.write_text(recipe.read_text().replace("[training]", "[training]\npatience = 2", 1))
    lines = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    for line, nll in zip(lines, (1.5, 2.5, 2.0), strict=True):
        line["val_nll"] = nll
    (run / "history.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    text = write_report(run).read_text()
    (best,) = re.findall(r'<tr class="best">(.*?)</tr>', text, re.DOTALL)
    assert "1.500" in best
    assert "2 evaluations in a row had no better NLL than update 10" in text


def test_what_is_no_run_is_refused(tmp_path, run):
    with pytest.raises(InputError, match="config.toml is missing"):
        write_report(tmp_path)
    (run / "history.jsonl").write_text("{")
    with pytest.raises(InputError, match="history.jsonl is broken"):
        write_report(run)


def test_a_report_that_fails_stops_no_training(run, caplog, monkeypatch):
    clock = iter([0.0, 10.0, 20.0, 21.0, 30.0, 42.0, 43.0])
    monkeypatch.setattr(report.time, "monotonic", lambda: next(clock))
    made = []
    monkeypatch.setattr(report, "write_report", made.append)
    live = LiveReport(run)
    live()  # 10 s after the start: too early
    assert not made
    live()  # at 20 s; it takes 1 s, so the next is due after 40 s
    live()  # at 30 s
    assert made == [run]
    monkeypatch.setattr(report, "write_report", lambda run: 1 / 0)
    live()  # at 42 s
    assert "report.html is not written: ZeroDivisionError" in caplog.text


def test_equal_histories_have_equal_pictures():
    lines = [{"step": n, "nll": 2.0 / n, "val_nll": 3.0 / n} for n in range(1, 5)]
    assert draw_history(lines) == draw_history(lines) != draw_history(lines[:-1])
    assert plots.can_draw()
    assert RunState(history=lines).ranked("nll") == [4, 3, 2, 1]

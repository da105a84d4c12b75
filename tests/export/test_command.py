"""The command on an export: it tells of a line what it tells on the run directory."""

import re
from pathlib import Path

import pytest

from tests.command import Done, assert_refused, in_process
from tests.tiny_translator import ENGLISH, FRENCH, make_config
from tf_transformer.translator import Translator

LINES = "".join(f"{text}\n" for text in [*FRENCH, "", "漢字"]).encode()


@pytest.fixture(scope="module")
def run_directory(translator: Translator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the export was made from, with K = 4 beams."""
    folder = tmp_path_factory.mktemp("run")
    translator.save(folder, make_config())
    return folder


def rounded(done: Done) -> list[str]:
    """The lines; of numbers with a point two digits, as graphs differ in the last of six."""
    assert done.code == 0, done.err
    return [
        re.sub(r"-?\d+\.\d+", lambda x: f"{float(x[0]) + 0.0:.2f}", line) for line in done.lines
    ]


@pytest.mark.parametrize("flags", ["--n-best 4 --scores", "--alignments --json"])
def test_an_export_tells_what_its_run_tells(
    flags: str,
    exported: Path,
    run_directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    run = in_process(monkeypatch, capsysbinary)
    found, expected = (
        rounded(run("translate", path, *flags.split(), stdin=LINES))
        for path in (exported, run_directory)
    )
    assert found == expected


def test_an_export_scores_as_its_run(
    exported: Path,
    run_directory: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    files = []
    for side, texts in (("source", FRENCH), ("target", ENGLISH)):
        (tmp_path / side).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        files += [f"--{side}", tmp_path / side]
    run = in_process(monkeypatch, capsysbinary)
    found, expected = (
        rounded(run("score", path, *files, "--tokens")) for path in (exported, run_directory)
    )
    assert found == expected


@pytest.mark.case("83")
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--n-best 5", "translate_n_best of .* gives 4 hypotheses .* Received: 5 hypotheses"),
        ("--n-best 2 --alignments", "translate_with_alignments of .* gives 1 hypotheses"),
    ],
)
def test_what_an_export_cannot_is_refused(
    flags: str,
    message: str,
    exported: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    run = in_process(monkeypatch, capsysbinary)
    assert_refused(run("translate", exported, *flags.split(), stdin=LINES), message)

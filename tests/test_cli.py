"""tf_transformer/cli.py: what a person types, what comes back, and what is said of wrong input."""

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf
import tensorflow_text as tf_text

from export import CheckResult
from tests.command import ROOT, Done, assert_refused, finished, in_process, process
from tests.tiny_run import TRAIN, VALID, digest, write_corpus, write_pairs
from tests.tiny_translator import export_unchecked, save_module
from tf_transformer.translator import Translator
from training.evaluate import score
from training.recipe import load_recipe

VERBS = "demo data train average translate score tokenize vocabulary evaluate export check".split()
VERBS += ["serve", "request", "report", "info"]
SOURCES = [pair[0] for pair in VALID]


@pytest.fixture
def run(monkeypatch, capsysbinary):
    """`run("translate", folder, stdin=b"...")`: the command in this process."""
    return in_process(monkeypatch, capsysbinary)


@pytest.fixture(scope="session")
def trained(tiny_run) -> Path:
    return tiny_run.run


@pytest.fixture(scope="session")
def models(tiny_run, tmp_path_factory) -> Path:
    """An export of the run, as version 1."""
    return export_unchecked(tiny_run.translator, tmp_path_factory.mktemp("models")).parent


# Help, and what Typer refuses.


def test_help_of_every_verb_takes_no_tensorflow():
    script = f"""
import contextlib, io, sys
sys.argv[0] = "tf-transformer"
from tf_transformer.cli import main
for verb in [[], *([verb] for verb in {VERBS})]:
    sys.argv[1:] = [*verb, "--help"]
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.suppress(SystemExit):
        main()
    assert "Usage: tf-transformer " + " ".join(verb) in said.getvalue(), said.getvalue()
assert not {{"tensorflow", "keras", "numpy"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)


def test_the_module_is_the_command():
    done = finished(process("--help", options=["-X", "importtime"]))
    assert done.code == 0 and all(verb in done.text for verb in VERBS)
    imported = {line.rpartition("|")[2].strip() for line in done.err.splitlines()}
    assert "tf_transformer.cli" in imported
    assert not {"tensorflow", "keras", "numpy"} & imported


def test_without_a_verb_there_is_help(run):
    done = run()
    assert "Usage" in done.text + done.err and "translate" in done.text + done.err


@pytest.mark.case("83")
@pytest.mark.parametrize(
    "arguments",
    [
        ["tranlate", "x"],
        ["translate"],
        ["translate", "x", "--beam_sise", "4"],
        ["translate", "x", "--num_layers", "3"],
        ["translate", "x", "--beam", "many"],
        ["translate", "x", "--beam", "1.5"],
        ["translate", "x", "--alpha", "big"],
        ["train", "demo"],
        ["train", "demo", "--data", "d", "--run", "r", "--d_model", "8"],
        ["evaluate", "x", "--source", "s"],
        ["export", "x"],
        ["export", "x", "--output", "o", "--version", "new"],
        ["export", "x", "--output", "o", "--signature", "translate"],
        ["check", "x", "--servers", "2.19"],
        ["demo", "now"],
    ],
)
def test_what_is_no_option_or_value_is_refused(run, arguments):
    done = run(*arguments)
    assert done.code == 2 and "Usage: tf-transformer" in done.err and "Error" in done.err


def test_ctrl_c_is_130(run, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("tf_transformer.info.show", interrupted)
    assert run("info", "demo").code == 130


# train


def train_arguments(place, run_dir, *settings, data=None):
    pairs = [part for setting in settings for part in ("--set", setting)]
    return ["train", place.recipe, "--data", data or place.data, "--run", run_dir, *pairs]


@pytest.mark.slow
def test_train_stopped_by_ctrl_c_and_gone_on_with(tiny_run, run, tmp_path):
    """The last `--set` wins; a stop is 130; the same command ends what was begun."""
    place, folder = tiny_run.place, tmp_path / "run"
    settings = ("training.epochs=1", "training.epochs=5000")
    started = process(*train_arguments(place, folder, *settings))
    seen = []
    for line in started.stdout:
        seen.append(line.decode())
        if line.startswith(b"epoch 2/5000"):
            started.send_signal(signal.SIGINT)
            break
    else:
        pytest.fail(f"no second epoch: {seen} {started.stderr.read().decode()}")
    done = finished(started)
    assert done.code == 130 and "Traceback" not in done.err
    stopped = re.search(r"Stopped after update (\d+)", done.text.replace("\n", " "))
    assert stopped and int(stopped[1]) >= 20
    assert not [line for line in done.err.splitlines() if re.match(r"[IWE]\d{4} ", line)]
    going_on = run(*train_arguments(place, folder, f"training.max_steps={stopped[1]}"))
    assert going_on.code == 0
    assert f"Going on from update {stopped[1]}." in going_on.text
    assert len(Translator.load(folder)(["le chat voit la maison ."])) == 1


MISTAKES = {
    "unknown key": (["model.hiden_dim=8"], "did you mean model.hidden_dim"),
    "unknown section": (["modle.hidden_dim=8"], "did you mean model.hidden_dim"),
    "wrong type": (["training.epochs=many"], "training.epochs must be a valid integer"),
    "out of range": (["training.epochs=0"], "training.epochs must be greater than or equal to 1"),
    "no value": (["training.epochs"], "--set must be section.key=value"),
    "sizes that do not fit": (["model.num_heads=3"], "hidden_dim.*num_heads"),
    "no such preset": (
        ["model.preset=huge"],
        "`preset` must be one of tiny, base, .*received 'huge'",
    ),
    "bad alpha": (["decoding.alpha=99"], "`alpha` must be a number from -10 to 10"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_wrong_recipe_is_one_sentence(tiny_run, run, tmp_path, mistake):
    settings, message = MISTAKES[mistake]
    done = run(*train_arguments(tiny_run.place, tmp_path / "run", *settings))
    assert_refused(done, message)
    assert not (tmp_path / "run").exists()


def test_a_recipe_that_is_none(tiny_run, run, tmp_path):
    arguments = ["--data", tiny_run.place.data, "--run", tmp_path / "run"]
    assert_refused(run("train", "demmo", *arguments), "no recipe demmo: .* one of demo, ")
    (tmp_path / "bad.toml").write_text("epochs = = 3")
    assert_refused(run("train", tmp_path / "bad.toml", *arguments), "bad.toml must be TOML")
    (tmp_path / "bad.toml").write_bytes(b"# caf\xe9")
    assert_refused(run("train", tmp_path / "bad.toml", *arguments), "bad.toml must be UTF-8.*0xE9")
    assert not (tmp_path / "run").exists()


def damage_missing_folder(data: Path) -> None:
    shutil.rmtree(data)


def damage_missing(data: Path) -> None:
    (data / "train.tgt").unlink()


def damage_no_validation(data: Path) -> None:
    (data / "valid.src").unlink()
    (data / "valid.tgt").unlink()


def damage_empty(data: Path) -> None:
    (data / "train.src").write_bytes(b"")
    (data / "train.tgt").write_bytes(b"")


def damage_blank(data: Path) -> None:
    (data / "train.src").write_bytes(b"\n \n\t\n")
    (data / "train.tgt").write_bytes(b"a\nb\nc\n")


def damage_unequal(data: Path) -> None:
    with open(data / "train.src", "ab") as file:
        file.write(b"encore\n")


def damage_latin(data: Path) -> None:
    lines = (data / "train.tgt").read_bytes().split(b"\n")
    lines[6] = b"caf\xe9"
    (data / "train.tgt").write_bytes(b"\n".join(lines))


def damage_utf16(data: Path) -> None:
    (data / "valid.src").write_text("le chat", encoding="utf-16")


def damage_twice(data: Path) -> None:
    (data / "train.tsv").write_text("a\tb\n")


BAD_DATA = {
    damage_missing_folder: "There is no data folder .*data",
    damage_missing: r"data has train.src, but no train.tgt",
    damage_no_validation: r"must hold valid.src and valid.tgt, or valid.tsv",
    damage_empty: r"train.src .*train.tgt: the corpus is empty",
    damage_blank: r"no pair is left: 3 \(blank on one side\)",
    damage_unequal: r"train.src has 61 and .*train.tgt has 60",
    damage_latin: r"train.tgt must be UTF-8, but line 7 has the byte 0xE9",
    damage_utf16: r"valid.src must be UTF-8, but it starts with the mark of UTF-16",
    damage_twice: r"train.src, train.tgt, train.tsv, and which of them",
}


@pytest.mark.case("33")
@pytest.mark.parametrize("damage", BAD_DATA, ids=lambda damage: damage.__name__)
def test_bad_data_is_one_sentence_and_nothing_is_written(tiny_run, run, tmp_path, damage):
    data = write_corpus(tmp_path / "data")
    damage(data)
    before = digest(tmp_path)
    done = run(*train_arguments(tiny_run.place, tmp_path / "run", data=data))
    assert_refused(done, BAD_DATA[damage])
    assert digest(tmp_path) == before


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["data.max_length=2"], "no pair is left, all 60 have more than 2 tokens"),
        (["tokenizer.vocabulary_size=9"], "No vocabulary of 9 can be learnt"),
    ],
)
def test_what_leaves_nothing_to_train_is_one_sentence(tiny_run, run, tmp_path, settings, message):
    assert_refused(run(*train_arguments(tiny_run.place, tmp_path / "run", *settings)), message)
    assert not (tmp_path / "run").exists()


def test_a_run_directory_of_something_else_is_one_sentence(tiny_run, trained, run, tmp_path):
    place = tiny_run.place
    (tmp_path / "letter.txt").write_text("dear")
    before = digest(trained), digest(tmp_path)
    refused = {
        tmp_path: ([], "not empty and holds no run"),
        tmp_path / "letter.txt": ([], "must be a directory"),
        trained: (["model.hidden_dim=8"], "model.hidden_dim = 16, now it is 8"),
    }
    for folder, (settings, message) in refused.items():
        assert_refused(run(*train_arguments(place, folder, *settings)), message)
    assert (digest(trained), digest(tmp_path)) == before


@pytest.mark.case("37")
def test_what_can_be_repaired_is_repaired_and_counted(tiny_run, run, tmp_path, caplog):
    """Mark, CRLF, NUL, tabs and blank sides: the corpus, so the vocabulary, is the clean one."""
    place, data = tiny_run.place, tmp_path / "data"
    write_corpus(data)
    pairs = [*TRAIN[:20], ("seul", ""), *TRAIN[20:], ("", "alone"), ("", "")]
    write_pairs(data, "train", pairs)
    for end in ("src", "tgt"):
        text = (data / f"train.{end}").read_bytes().replace(b"\n", b"\r\n")
        (data / f"train.{end}").write_bytes(b"\xef\xbb\xbf" + text.replace(b"le chat", b"le\0chat"))
    text = (data / "train.src").read_bytes()
    assert b"le\0chat" in text
    (data / "train.src").write_bytes(text.replace(b"un homme", b"un\thomme"))
    done = run(*train_arguments(place, tmp_path / "run", "training.max_steps=1", data=data))
    assert done.code == 0
    for file in ("source.model", "corpus.json"):
        assert (tmp_path / "run" / file).read_bytes() == (tiny_run.run / file).read_bytes()
    assert "60 pairs; pairs dropped: 3 (blank on one side); sentences repaired: " in caplog.text


# translate


def test_standard_input_to_standard_output(trained, run, tiny_run):
    done = run("translate", trained, stdin="".join(f"{line}\n" for line in SOURCES).encode())
    assert done.code == 0 and done.err == ""
    assert done.lines == tiny_run.translator(SOURCES)
    assert len(set(done.lines)) > 1


def test_file_to_file(trained, run, tiny_run, tmp_path):
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("\n".join(SOURCES), encoding="utf-8")  # no line end at the end
    done = run("translate", trained, "--input", source, "--output", output)
    assert done.code == 0 and done.text == ""
    lines = output.read_bytes().decode("utf-8").split("\n")
    assert lines == [*tiny_run.translator(SOURCES), ""]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "out.txt"]


@pytest.mark.slow
def test_a_process_writes_translations_and_nothing_else(trained, tiny_run, tmp_path):
    """Not a word of TensorFlow on either stream; the working directory does not matter."""
    text = "".join(f"{line}\n" for line in SOURCES).encode()
    done = finished(process("translate", trained, cwd=tmp_path), stdin=text)
    assert (done.code, done.err) == (0, "")
    assert done.lines == tiny_run.translator(SOURCES)


@pytest.mark.case("51")
@pytest.mark.parametrize("kind", ["run", "SavedModel"])
def test_blank_lines_stay_where_they_are(trained, models, run, tiny_run, kind):
    model = trained if kind == "run" else models
    first, second = SOURCES[0], SOURCES[5]
    done = run("translate", model, stdin=f"{first}\n\n \n\t\n{second}\n".encode())
    assert done.code == 0
    alone = tiny_run.translator([first, second])
    assert done.lines == [alone[0], "", "", "", alone[1]]


@pytest.mark.case("35")
@pytest.mark.case("37")
def test_lines_of_any_kind_give_as_many(trained, run, tiny_run, caplog):
    """A mark, CRLF, bytes that are not UTF-8, a separator, NUL, no last line end: five lines."""
    text = (
        b"\xef\xbb\xbfle chat voit la maison .\r\n"
        b"le ch\xe9at \xff voit\r\n"
        b"un homme\xe2\x80\xa8voit du pain .\n"
        b"le\0chat voit la maison .\n"
        b"le chien voit le jardin ."
    )
    done = run("translate", trained, stdin=text)
    assert done.code == 0
    clean = [
        "le chat voit la maison .",
        "le ch\ufffdat \ufffd voit",
        "un homme voit du pain .",
        "le chat voit la maison .",
        "le chien voit le jardin .",
    ]
    assert done.lines == tiny_run.translator(clean)
    message = "standard input: 1 line(s) have bytes that are not UTF-8, the first is line 2"
    assert message in caplog.text


def test_nothing_in_nothing_out(trained, run):
    done = run("translate", trained)
    assert (done.code, done.text, done.err) == (0, "", "")


@pytest.mark.case("53")
@pytest.mark.parametrize("kind", ["run", "SavedModel"])
def test_a_line_that_is_too_long_is_cut_with_its_number(trained, models, run, caplog, kind):
    model = trained if kind == "run" else models
    long = "le chat voit la maison . " * 200
    done = run("translate", model, stdin=f"{SOURCES[0]}\n{long}\n{SOURCES[1]}\n".encode())
    assert done.code == 0 and len(done.lines) == 3
    ours = [record for record in caplog.records if record.name.startswith("tf_transformer")]
    warnings = [record.getMessage() for record in ours if record.levelname == "WARNING"]
    assert len(warnings) == 1 and re.match(
        r"Line 2: the source has \d{4} tokens and is cut at 512", warnings[0]
    )
    alone = run("translate", model, stdin=f"{SOURCES[0]}\n{SOURCES[1]}\n".encode())
    assert [done.lines[0], done.lines[2]] == alone.lines


@pytest.mark.case("83")
def test_decoding_options_act(trained, run):
    """As they do in Python: more beams find another text, a higher exponent a longer one."""
    before = digest(trained)
    text = "".join(f"{line}\n" for line in SOURCES).encode()
    found = {}
    for options in ((), ("--beam", "1"), ("--beam", "6"), ("--beam", "6", "--alpha", "8")):
        done = run("translate", trained, *options, stdin=text)
        assert done.code == 0
        found[options] = done.lines
    assert found["--beam", "1"] == Translator.load(trained, search="greedy")(SOURCES)
    assert found["--beam", "6"] == Translator.load(trained, num_beams=6)(SOURCES)
    assert found["--beam", "1"] != found["--beam", "6"]
    long = found["--beam", "6", "--alpha", "8"]
    assert sum(map(len, long)) > sum(map(len, found["--beam", "6"]))
    assert digest(trained) == before


@pytest.mark.case("83")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--beam", "0"], "`num_beams` must be a whole number of at least 1.*num_beams=0"),
        (["--beam", "-3"], "num_beams=-3"),
        (["--alpha", "nan"], "`alpha` must be a number from -10 to 10.*alpha=nan"),
        (["--alpha", "inf"], "alpha=inf"),
        (["--alpha", "-10.5"], "alpha=-10.5"),
    ],
)
@pytest.mark.parametrize("verb", ["translate", "export"])
def test_bad_decoding_options_are_one_sentence(trained, run, tmp_path, options, message, verb):
    more = ["--output", tmp_path / "out"]
    assert_refused(run(verb, trained, *more, *options, stdin=b"le chat\n"), message)
    assert not (tmp_path / "out").exists()


@pytest.mark.case("83")
def test_options_of_an_export_are_refused_by_name(models, run, tmp_path):
    before = digest(models)
    done = run("translate", models, "--beam", "4", "--alpha", "0.5", stdin=b"le chat\n")
    assert_refused(done, "fixed inside an exported graph.*alpha=0.5, num_beams=4")
    assert digest(models) == before


def test_an_export_translates_as_the_run(models, run, tiny_run):
    text = "".join(f"{line}\n" for line in SOURCES).encode()
    for path in (models, models / "1"):
        assert run("translate", path, stdin=text).lines == tiny_run.translator(SOURCES)


def test_what_is_no_model_is_one_sentence(run, tiny_run, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "half").mkdir()
    shutil.copy(tiny_run.run / "config.toml", tmp_path / "half")
    for path, message in (
        (tmp_path / "no", "no translator at .*/no: it does not exist"),
        (tmp_path / "file", "it is a file, not a directory"),
        (tmp_path / "half", "has no translator.json"),
    ):
        output = tmp_path / "out.txt"
        assert_refused(run("translate", path, "--output", output, stdin=b"a\n"), message)
        assert not output.exists()


def test_bad_paths_of_translate_are_one_sentence(trained, run, tmp_path):
    (tmp_path / "in.txt").write_text("le chat\n")
    for options, message in (
        (["--input", tmp_path / "no.txt"], "There is no file .*no.txt"),
        (["--input", tmp_path], "must be a text file, but it is a folder"),
        (["--input", tmp_path / "in.txt", "--output", tmp_path], "must be a file"),
        (["--input", tmp_path / "in.txt", "--output", tmp_path / "no/o.txt"], "can't be written"),
    ):
        assert_refused(run("translate", trained, *options), message)
    assert [path.name for path in tmp_path.iterdir()] == ["in.txt"]


def test_markup_in_a_path_is_text(run):
    assert_refused(run("translate", "no[bold]such:cat:"), re.escape("no[bold]such:cat:"))


@pytest.mark.slow
def test_a_sentence_is_all_that_a_process_says_of_wrong_input(tmp_path):
    done = finished(process("translate", tmp_path / "missing", cwd=tmp_path), stdin=b"a\n")
    assert_refused(done, "no translator at .*missing: it does not exist")


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_is_no_error(trained):
    started = process("translate", trained)
    started.stdout.close()
    _, err = started.communicate(b"le chat voit la maison .\n" * 300, timeout=300)
    assert started.returncode == 1 and b"Traceback" not in err and b"Exception" not in err


# average


def test_average(trained, run, tmp_path):
    done = run("average", trained, "--last", "2", "--out", tmp_path / "mean")
    assert done.code == 0, done.err
    printed = done.text.replace("\n", "")  # a long path is broken into lines
    assert "step-20.weights.h5" in printed and "step-10.weights.h5" not in printed
    ours, theirs = (Translator.load(place) for place in (tmp_path / "mean", trained))
    assert ours(SOURCES) == theirs(SOURCES)  # the run has the mean of its last two as well


def test_average_wants_one_place(trained, run, tmp_path):
    for arguments in ([], ["--in-place", "--out", tmp_path / "mean"]):
        assert_refused(run("average", trained, *arguments), "Give --out with a new place, or --in")
    assert_refused(run("average", trained, "--out", trained), "is no empty directory")
    assert run("average", trained, "--last", "0", "--out", tmp_path / "mean").code == 2
    assert not (tmp_path / "mean").exists()


# evaluate


def score_of(done: Done, name: str) -> float:
    (line,) = [line for line in done.lines if f" {name} " in line]
    return float(re.findall(r"\d+\.\d+", line)[0])


@pytest.mark.parametrize("kind", ["run", "SavedModel"])
def test_evaluate(trained, models, run, tiny_run, tmp_path, kind):
    """Against its own translations all is right; against other text it is what it is."""
    write_pairs(tmp_path, "valid", VALID)
    source, same = tmp_path / "valid.src", tmp_path / "same"
    same.write_text("".join(f"{line}\n" for line in tiny_run.translator(SOURCES)))
    model = trained if kind == "run" else models
    done = run("evaluate", model, "--source", source, "--reference", same)
    assert done.code == 0 and "10 lines" in done.text
    assert score_of(done, "chrF2") == 100.0 and "100.0%" in done.text
    done = run("evaluate", model, "--source", source, "--reference", tmp_path / "valid.tgt")
    scores = score(tiny_run.translator(SOURCES), [pair[1] for pair in VALID])
    assert score_of(done, "BLEU") == round(scores.bleu, 2) < 90
    assert score_of(done, "chrF2") == round(scores.chrf, 2) < 90
    flat = re.sub(r"[\s│┃]+", "", done.text)
    for part in ("case:mixed", "tok:13a", "smooth:exp", "nc:6"):
        assert part in flat


@pytest.mark.case("33")
def test_evaluate_refuses_unequal_and_missing_files(trained, run, tmp_path):
    write_pairs(tmp_path, "valid", VALID)
    source, reference = tmp_path / "valid.src", tmp_path / "valid.tgt"
    with open(reference, "a") as file:
        file.write("\n")
    empty, latin = tmp_path / "empty", tmp_path / "latin"
    empty.touch()
    latin.write_bytes(b"caf\xe9\n" * 10)
    for files, message in (
        ((source, reference), r"valid.src has 10 and .*valid.tgt has 11"),
        ((source, tmp_path / "no"), "There is no file .*no"),
        ((source, latin), "latin must be UTF-8, but line 1"),
        ((empty, empty), "empty holds no line"),
    ):
        done = run("evaluate", trained, "--source", files[0], "--reference", files[1])
        assert_refused(done, message)


def test_evaluate_names_a_line_that_is_cut(trained, run, tmp_path, caplog):
    for name in ("s", "r"):
        (tmp_path / name).write_text("le chat\n" + "le chat voit la maison . " * 200 + "\n")
    done = run("evaluate", trained, "--source", tmp_path / "s", "--reference", tmp_path / "r")
    assert done.code == 0
    assert re.search(r"Line 2: the source has \d+ tokens and is cut", caplog.text)


# export


def test_export_writes_versions_and_refuses_one_that_exists(trained, run, monkeypatch, tmp_path):
    # They take a minute; tests/export has them.
    monkeypatch.setattr("export.checks.run_checks", lambda *_, **__: [])
    few = ["--signatures", "translate"]
    for version, options in (("1", []), ("2", ["--beam", "1"]), ("7", ["--version", "7"])):
        done = run("export", trained, "--output", tmp_path / "m", *few, *options)
        assert done.code == 0
        assert str(tmp_path / "m" / version) in done.text.replace("\n", "")
        assert (tmp_path / "m" / version / "saved_model.pb").is_file()
    before = digest(tmp_path)
    for options, message in (
        (["--version", "7"], "7.* exists"),
        (["--version", "0"], "`version` must be a whole number of at least 1"),
    ):
        assert_refused(run("export", trained, "--output", tmp_path / "m", *options), message)
    assert digest(tmp_path) == before
    text = "".join(f"{line}\n" for line in SOURCES).encode()
    greedy = run("translate", tmp_path / "m" / "2", stdin=text)
    assert greedy.lines == Translator.load(trained, search="greedy")(SOURCES)


def test_export_of_what_is_no_run_is_one_sentence(models, run, tmp_path):
    for path in (tmp_path, models, tmp_path / "no"):
        done = run("export", path, "--output", tmp_path / "out")
        assert_refused(done, f"{path} is not a run directory with a trained model")
    assert not (tmp_path / "out").exists()


def test_other_targets_are_written_and_told_apart(trained, run, tmp_path):
    folder = tmp_path / "ct2"
    done = run(
        "export", trained, "--target", "ctranslate2", "--output", folder, "--quantize", "int8",
        "--length-penalty", "power",
    )  # fmt: skip
    assert done.code == 0 and (folder / "model.bin").is_file()
    for options, message in (
        (["--target", "onnx"], "`--target` must be one of saved_model, .*--target onnx"),
        (["--quantize", "int8"], "`--quantize` is for the targets litert and ctranslate2"),
        (["--target", "litert", "--keep", "2"], "`--keep` is for the target saved_model"),
        (["--target", "ctranslate2", "--beam", "4"], "CTranslate2 has no length penalty `gnmt`"),
    ):
        assert_refused(run("export", trained, "--output", tmp_path / "x", *options), message)
    assert not (tmp_path / "x").exists()


@pytest.mark.case("83")
def test_options_of_the_export_act(trained, run, monkeypatch, tmp_path):
    failing = CheckResult("planted", False, "nothing is right")
    results = [CheckResult("size", True, "as it should be")]

    def planted(folder, endpoints, report):
        for result in results:
            report(result)
        return results

    monkeypatch.setattr("export.checks.run_checks", planted)
    few = ["--signatures", "translate, tokenize", "--output", tmp_path / "m"]
    for _ in range(3):
        done = run("export", trained, *few, "--keep", "2", "--name", "fr-en")
        assert done.code == 0 and "as it should be" in done.text
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == ["2", "3", "serving"]
    assert 'name: "fr-en"' in (tmp_path / "m" / "serving" / "models.config").read_text()
    metadata = json.loads((tmp_path / "m" / "3" / "assets.extra" / "metadata.json").read_text())
    assert set(metadata["signatures"]) == {"serving_default", "translate", "tokenize"}
    before = digest(tmp_path)
    for options, message in (
        (["--signatures", "translate,back"], "`signatures` must be names of .*'back'"),
        (["--signatures", "translate,,"], "`--signatures` must be names with commas"),
        (["--keep", "0"], "`keep` must be a whole number of at least 1"),
        (["--name", "a b"], "The name of a served model"),
    ):
        assert_refused(run("export", trained, "--output", tmp_path / "m", *options), message)
    results.append(failing)
    done = run("export", trained, *few)
    assert done.code == 2 and "the check `planted` failed: nothing is right" in done.err
    assert "FAILED" in done.text
    assert digest(tmp_path) == before
    results.remove(failing)
    assert run("export", trained, "--no-kit", *few[:2], "--output", tmp_path / "n").code == 0
    assert [path.name for path in (tmp_path / "n").iterdir()] == ["1"]


# check


def test_check_of_any_saved_model(run, tmp_path):
    """A model of somebody else, and one that some servers lack an operation of."""
    spec = tf.TensorSpec([None], tf.float32, name="x")
    double = tf.function(lambda x: {"y": 2.0 * x}, input_signature=[spec])
    done = run("check", save_module(tf.Module(), tmp_path / "fine", serving_default=double))
    assert done.code == 0
    assert "FAILED" not in done.text and "C library" in done.text
    newer = tf.function(
        lambda text: {"y": tf_text.utf8_binarize(text)},
        input_signature=[tf.TensorSpec([None], tf.string, name="text")],
    )
    folder = save_module(tf.Module(), tmp_path / "newer", serving_default=newer)
    done = run("check", folder)
    assert done.code == 1
    assert "2.19 lacks" in " ".join(done.text.split()) and "FAILED" in done.text
    assert run("check", folder, "--server", "2.20").code == 0
    assert_refused(run("check", folder, "--server", "2"), "`server` must be one of 2.16, .*'2'")
    assert_refused(run("check", tmp_path), "is not a SavedModel")


# info and demo


def test_report(trained, models, run, tmp_path):
    shutil.copytree(trained, tmp_path / "run")
    done = run("report", tmp_path / "run", "--export", models)
    assert done.code == 0 and "Written:" in done.text
    page = (tmp_path / "run/report.html").read_text(encoding="utf-8")
    assert "serving_default" in page and "text: string" in page
    before = digest(tmp_path)
    done = run("report", tmp_path)
    assert done.code == 2 and "config.toml is missing" in done.err
    done = run("report", tmp_path / "run", "--export", tmp_path)
    assert done.code == 2 and "is not a SavedModel" in done.err
    assert digest(tmp_path) == before


def test_info_of_a_recipe_can_be_read_back(run, tiny_run, tmp_path):
    for recipe in ("demo", tiny_run.place.recipe):
        done = run("info", recipe)
        assert done.code == 0
        (tmp_path / "again.toml").write_text(done.text, encoding="utf-8")
        assert load_recipe(tmp_path / "again.toml") == load_recipe(recipe)


def test_info_of_a_recipe_with_a_long_line_can_be_read_back(run, tmp_path):
    name = "/".join(["a folder [bold] of :cat: mine"] * 5)
    (tmp_path / "long.toml").write_text(f'[data]\ntrain = ["{name}/a.src", "{name}/a.tgt"]\n')
    (tmp_path / "again.toml").write_text(run("info", tmp_path / "long.toml").text)
    assert load_recipe(tmp_path / "again.toml") == load_recipe(tmp_path / "long.toml")


def test_info_of_a_run(run, trained, tiny_run):
    before = digest(trained)
    done = run("info", trained)
    assert done.code == 0
    assert f"{tiny_run.translator.model.count_params():,}" in done.text
    for part in ("hidden_dim", "encoder", "decoder", "num_beams", "SentencePiece unigram"):
        assert part in done.text
    ids = tiny_run.translator.tokenizers.source.vocabulary_size
    assert re.search(rf"both +│ SentencePiece unigram, .* │ +{ids:,} ", done.text)
    assert digest(trained) == before


def test_info_of_an_export(run, models):
    for path in (models, models / "1"):
        done = run("info", path)
        assert done.code == 0
        assert "serving_default" in done.text and "text: string" in done.text
        assert '"num_beams": 2' in done.text


def test_info_of_nonsense_is_one_sentence(run, tiny_run, tmp_path):
    (tmp_path / "letter.txt").write_text("Dear all,\nhello.")
    (tmp_path / "zeros").write_bytes(bytes(100))
    (tmp_path / "empty").mkdir()
    (tmp_path / "begun").mkdir()
    shutil.copy(tiny_run.run / "config.toml", tmp_path / "begun")
    (tmp_path / "model" / "1").mkdir(parents=True)
    (tmp_path / "model" / "1" / "saved_model.pb").write_bytes(b"not a graph")
    for name, message in (
        ("letter.txt", "letter.txt must be TOML"),
        ("zeros", "zeros must be TOML"),
        ("empty", "empty holds no trained run .*no SavedModel, and is no recipe"),
        ("begun", "begun holds no trained run"),
        ("model", "1 cannot be loaded"),
        ("no", "no"),
    ):
        assert_refused(run("info", tmp_path / name), message)


def test_demo_in_the_place_of_a_file_is_one_sentence(run, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("mine")
    done = run("demo", "--run", tmp_path / "file")
    assert done.code == 2 and "Traceback" not in done.err
    assert re.match(r"error: .*file/corpus can't be one", done.err)
    assert (tmp_path / "file").read_text() == "mine"

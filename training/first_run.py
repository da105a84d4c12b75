"""The first run, from nothing to a SavedModel that answers: `tf-transformer demo`."""

from pathlib import Path
from types import ModuleType

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tf_transformer.errors import InputError
from tf_transformer.lines import read_lines

from .demo import write_demo_corpus
from .evaluate import as_table, check_installed, score
from .recipe import load_recipe
from .train import train

SENTENCE = "je suis étudiant"
_SHOWN = 6


def walk(folder: Path, export: ModuleType, console: Console) -> None:
    """Writes the corpus, trains, scores, exports, and asks the export from another process.

    Args:
        folder: gets `corpus`, `run` and `export`; run again, it goes on where it stopped.
        export: the room of that name; this one does not know it.
        console: where it is told.

    Raises:
        InputError: sacrebleu is missing, or the export and the run differ in a line.
    """
    check_installed()
    console.rule("1. A corpus from our own French-English grammar")
    corpus = folder / "corpus"
    write_demo_corpus(corpus)
    source, reference = (read_lines(corpus / f"test.{side}") for side in ("src", "tgt"))
    console.print(f"{len(source)} sentences are held out; not one of them is in training.")

    console.rule("2. Training")
    translator = train(load_recipe("demo"), corpus, folder / "run", console)

    console.rule("3. The held-out sentences, beam search")
    translations = translator(source)
    console.print(as_table(score(translations, reference)))

    console.rule("4. Export, and a process that knows only TensorFlow")
    saved = export.EXPORTERS["saved_model"](translator, folder / "export")
    console.print(f"Checked as a server would load it: [bold]{escape(str(saved))}[/bold]")
    answers = export.answer_in_fresh_process(saved, source)
    pairs = enumerate(zip(translations, answers, strict=True), 1)
    different = [line for line, (ours, theirs) in pairs if ours != theirs]
    if different:
        raise InputError(
            f"The export answers otherwise than the run in {len(different)} lines, "
            f"first in line {different[0]} of {corpus / 'test.src'}."
        )
    console.print(f"It gives the run's answer to all {len(answers)} held-out sentences. Some:")
    console.print(_some(source, answers, reference))


def _some(source: list[str], answers: list[str], reference: list[str]) -> Table:
    table = Table("French", "answer of the SavedModel", "reference")
    first = source.index(SENTENCE)
    step = max(1, len(source) // _SHOWN)
    for line in [first, *(n for n in range(0, len(source), step) if n != first)][:_SHOWN]:
        colour = "green" if answers[line] == reference[line] else "red"
        answer = f"[{colour}]{escape(answers[line])}[/{colour}]"
        table.add_row(escape(source[line]), answer, escape(reference[line]))
    return table

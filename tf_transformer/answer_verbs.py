"""The verb that answers line by line: `translate`."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tf_transformer.cli_options import Alpha, Beam, Model, decoding_changes, open_model

BatchTokens = Annotated[
    int | None,
    typer.Option(metavar="N", help="Most source tokens of a batch, pads counted."),
]


def translate(
    model: Model,
    input: Annotated[Path | None, typer.Option(help="Text file; default standard input.")] = None,
    output: Annotated[Path | None, typer.Option(help="Default standard output.")] = None,
    beam: Beam = None,
    alpha: Alpha = None,
    batch_tokens: BatchTokens = None,
) -> None:
    """Translate text: one line in, one line out, in order; a blank line stays blank.

    Bytes that are not UTF-8 count as U+FFFD; what is longer than the model's limit is cut, with a
    warning that names the line. The file of `--output` is there when it is whole, or not at all;
    standard output has each line as soon as it is known.
    """
    from tf_transformer.lines import clean_line, count_lines, iter_lines, write_lines
    from tf_transformer.progress import LineProgress

    source: Any = sys.stdin.buffer if input is None else input
    lines = iter_lines(source, name="standard input" if input is None else None, errors="replace")
    translator = open_model(model, **decoding_changes(beam, alpha))

    from tf_transformer.bulk import Batching

    sizes = {"batch_tokens": batch_tokens, "window": _window(input)}
    batching = Batching(**{name: size for name, size in sizes.items() if size is not None})
    # Where both streams are one terminal, the answers themselves show how far it is.
    shown = output is not None or not sys.stdout.isatty()
    with LineProgress(shown) as progress:
        if progress.shown and input is not None:
            progress.expect(count_lines(input))
        texts = (clean_line(line) for line in lines)
        found = translator.stream(texts, batching=batching, watch=progress.advance)
        translations = (clean_line(one["text"]) for one in found)
        write_lines(sys.stdout.buffer if output is None else output, translations)


def _window(input: Path | None) -> int | None:
    """A person who types gets an answer to each line."""
    return 1 if input is None and sys.stdin.isatty() else None

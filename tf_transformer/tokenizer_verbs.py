"""The verbs of tokenizers: `tokenize` shows what one does, `vocabulary` makes one."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from tf_transformer.errors import InputError
from tf_transformer.rooms import need


def tokenize(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="A run, an export, a .model, a vocab.txt or a .bytes file."
        ),
    ],
    input: Annotated[Path | None, typer.Option(help="Text file; default standard input.")] = None,
    output: Annotated[Path | None, typer.Option(help="Default standard output.")] = None,
    side: Annotated[str, typer.Option(help="Which tokenizer: source or target.")] = "source",
    ids: Annotated[bool, typer.Option("--ids", help="Ids, not pieces.")] = False,
    detokenize: Annotated[
        bool, typer.Option("--detokenize", help="The way back: pieces, or --ids, to text.")
    ] = False,
) -> None:
    """Show what a tokenizer makes of text: one line in, one line out, as it comes.

    On a terminal: pieces in colours, ids, and the text that comes back, in red
    where it differs. Elsewhere the pieces alone, with blanks between them;
    `--detokenize` reads them again.

    A blank of the text is "▁" in pieces of SentencePiece and of bytes. In
    WordPiece, a piece without "##" has a blank in front.

        echo "Two dogs play." | tf-transformer tokenize runs/m30k
    """
    from tf_transformer.lines import clean_line, iter_lines, write_lines

    if side not in ("source", "target"):
        raise InputError(f"--side must be source or target. Received: {side!r}")
    stream: Any = sys.stdin.buffer if input is None else input
    name = "standard input" if input is None else None
    lines = map(clean_line, iter_lines(stream, name=name, errors="replace"))
    _tensorflow()
    from tf_transformer import tokenizing

    source, target = tokenizing.open_tokenizers(model)
    tokenizer = source if side == "source" else target
    console = Console(highlight=False, emoji=False)
    if console.is_terminal and output is None and not ids and not detokenize:
        tokenizing.show(tokenizer, lines, console)
        return
    if detokenize:
        window = 1 if input is None else 512  # whoever types or pipes gets each line at once
        answers: Any = map(clean_line, tokenizing.back_to_texts(tokenizer, lines, ids, window))
    else:
        answers = tokenizing.as_lines(tokenizer, lines, ids)
    write_lines(sys.stdout.buffer if output is None else output, answers)


def vocabulary(
    files: Annotated[
        list[Path], typer.Argument(help="Text, one sentence a line; plain or .gz.", metavar="FILES")
    ],
    output: Annotated[Path, typer.Option(help="NAME.model, or NAME.vocab.txt for WordPiece.")],
    type: Annotated[str, typer.Option(help="sentencepiece or wordpiece.")] = "sentencepiece",
    size: Annotated[
        int | None, typer.Option(min=5, metavar="N", help="Entries at most; default 8000.")
    ] = None,
    model_type: Annotated[
        str | None, typer.Option(help="SentencePiece: unigram (default) or bpe.")
    ] = None,
    character_coverage: Annotated[
        float | None, typer.Option(metavar="SHARE", help="Of letters that get an entry; default 1.")
    ] = None,
    byte_fallback: Annotated[
        bool | None,
        typer.Option("--byte-fallback", help="SentencePiece: rare letters in bytes."),
    ] = None,
    normalization: Annotated[
        str | None, typer.Option(help="SentencePiece: nmt_nfkc (default), nmt_nfkc_cf, identity...")
    ] = None,
    symbol: Annotated[
        list[str] | None,
        typer.Option(help="SentencePiece: a text that stays one entry; repeat for more."),
    ] = None,
    encoding_errors: Annotated[
        str, typer.Option(help="Bytes that are not UTF-8: strict refuses, replace reads U+FFFD.")
    ] = "strict",
) -> None:
    """Learn a vocabulary from text, for `tokenizer.model` of a recipe.

    Several files become one vocabulary, as for a model whose languages share it (section 5.1).

        tf-transformer vocabulary train.src train.tgt --size 8000 --output joint.model
    """
    given = {
        "type": type,
        "vocabulary_size": size,
        "model_type": model_type,
        "character_coverage": character_coverage,
        "byte_fallback": byte_fallback,
        "normalization": normalization,
        "user_symbols": symbol,
        "encoding_errors": encoding_errors,
    }
    _tensorflow()
    learn = need("training.corpora.vocabulary").learn_vocabulary
    console = Console(stderr=True, highlight=False)
    with console.status("Learning a vocabulary"):
        told = learn(files, output, **{k: v for k, v in given.items() if v is not None})
    console.print(f"{escape(str(output))}: {told}", soft_wrap=True)


def _tensorflow() -> None:
    from tf_transformer.quiet import load_tensorflow

    load_tensorflow()

"""The verbs that answer line by line: `translate` and `score`."""

import math
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from tf_transformer.cli_options import (
    Alignments,
    Alpha,
    BatchTokens,
    Beam,
    Input,
    Json,
    Layer,
    Model,
    NBest,
    Output,
    Pieces,
    Scores,
    Threads,
    cores,
    decoding_changes,
    open_model,
)
from tf_transformer.errors import InputError


def translate(
    model: Model,
    input: Input = None,
    output: Output = None,
    beam: Beam = None,
    alpha: Alpha = None,
    n_best: NBest = None,
    scores: Scores = False,
    alignments: Alignments = False,
    pieces: Pieces = False,
    json: Json = False,
    alignment_layer: Layer = None,
    batch_tokens: BatchTokens = None,
    threads: Threads = None,
) -> None:
    """Translate text: one line in, one line out, in order; a blank line stays blank.

    What is asked for besides stands behind tabs, in this order: score (log P over the length
    penalty), log P, tokens; pieces of the source, pieces of the translation; alignment. With
    --n-best a line has as many lines as hypotheses, each with its number in front. With --json it
    has one object.

    Bytes that are not UTF-8 count as U+FFFD; what is longer than the model's limit is cut, with a
    warning that names the line. The file of --output is there when it is whole, or not at all;
    standard output has each line as soon as it is known.
    """
    from tf_transformer.answers import Shown, as_json, columns
    from tf_transformer.lines import clean_line, iter_lines

    shown = Shown(n_best, scores, alignments, pieces)
    source: Any = sys.stdin.buffer if input is None else input
    lines = iter_lines(source, name="standard input" if input is None else None, errors="replace")
    changes = decoding_changes(beam, alpha, alignment_layer=alignment_layer)
    translator = open_model(model, op_threads=1, **changes)
    function = _function(shown, json)
    if n_best:
        translator = _with_beams(translator, n_best, beam, function)
    answer = _small(translator.function(function))
    batching = _batching(batch_tokens, threads, typed=input is None and sys.stdin.isatty())

    def told(found: Iterable[Any]) -> Iterator[str]:
        for number, one in enumerate(found, 1):
            yield from [as_json(one, shown)] if json else columns(number, one, shown)

    with _progress(output, input) as progress:
        texts = map(clean_line, lines)
        found = translator.stream(texts, answer, batching=batching, watch=progress.advance)
        _write(output, told(found))


def score(
    model: Model,
    source: Annotated[Path, typer.Option(help="Text, one sentence a line.")],
    target: Annotated[Path, typer.Option(help="A translation of each, line by line.")],
    output: Output = None,
    alpha: Alpha = None,
    tokens: Annotated[
        bool, typer.Option("--tokens", help="Columns: the target's pieces, log P of each.")
    ] = False,
    alignments: Alignments = False,
    pieces: Pieces = False,
    json: Json = False,
    alignment_layer: Layer = None,
    batch_tokens: BatchTokens = None,
    threads: Threads = None,
) -> None:
    """Tell how likely the model holds given translations for, and the perplexity of all.

    A line for each pair, between tabs: log P, tokens, score (log P over the length penalty, what
    `translate` reports); then what is asked for besides. END counts as a token; the pair of two
    blank lines has none. A target that is longer than any output may be is cut, with a warning that
    names the line, and scored as far as it is read. Perplexity, exp(-log P a token), stands on
    standard error.
    """
    from tf_transformer.aligned_lines import iter_aligned
    from tf_transformer.answers import Shown, score_as_json, score_columns
    from tf_transformer.lines import clean_line

    shown = Shown(None, tokens, alignments, pieces)
    pairs = iter_aligned(source, target, errors="replace")
    changes = decoding_changes(None, alpha, alignment_layer=alignment_layer)
    translator = open_model(model, op_threads=1, **changes)
    aligned = alignments or pieces
    answer = _small(translator.function("align_pairs" if aligned else "score_pairs"))
    total = Total()

    def told(found: Iterable[Any]) -> Iterator[str]:
        for one in found:
            total.add(one)
            yield score_as_json(one, shown) if json else score_columns(one, shown)

    with _progress(output, source) as progress:
        found = translator.score(
            (tuple(map(clean_line, pair)) for pair in pairs),
            answer,
            batching=_batching(batch_tokens, threads),
            watch=progress.advance,
        )
        _write(output, told(found))
    Console(stderr=True, highlight=False, soft_wrap=True).print(str(total))


class Total:
    """log P and tokens of all pairs of a file, to say so."""

    def __init__(self) -> None:
        self._pairs = self._tokens = 0
        self._log_prob = 0.0

    def add(self, found: dict[str, Any]) -> None:
        """A pair that `score_pairs` has scored."""
        self._pairs += 1
        self._tokens += found["length"]
        self._log_prob += found["log_prob"]

    def __str__(self) -> str:
        said = f"{self._pairs:,} pairs, {self._tokens:,} tokens, log P {self._log_prob:,.3f}"
        if not self._tokens:
            return said
        # More than a float holds is no perplexity that anybody compares.
        perplexity = math.exp(min(-self._log_prob / self._tokens, 700.0))
        return f"{said}, perplexity {perplexity:,.4f} a token"


def _with_beams(translator: Any, n_best: int, asked: int | None, function: str) -> Any:
    """With beams for so many hypotheses; how many an export gives is fixed."""
    if asked is not None and n_best > asked:
        raise InputError(f"--n-best must be at most --beam. Received: {n_best} and {asked}")
    return translator.with_beams(n_best, function)


def _function(shown: Any, json: bool) -> str:
    if shown.alignments or shown.pieces:
        return "translate_with_alignments"
    return "translate_n_best" if shown.n_best or shown.scores or json else "translate"


def _small(answer: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Without the attention, which is by far the largest and in no line."""
    return lambda *texts: {k: v for k, v in answer(*texts).items() if k != "attention"}


def _batching(batch_tokens: int | None, threads: int | None, typed: bool = False) -> Any:
    from tf_transformer.bulk import Batching

    sizes = {} if batch_tokens is None else {"batch_tokens": batch_tokens}
    if typed:  # a person waits for the answer to a line
        sizes["window"] = 1
    return Batching(workers=threads or cores(), **sizes)


def _progress(output: Path | None, input: Path | None) -> Any:
    from tf_transformer.lines import count_lines
    from tf_transformer.progress import LineProgress

    # Where both streams are one terminal, the answers themselves show how far it is.
    shown = output is not None or not sys.stdout.isatty()
    return LineProgress(shown, None if input is None else lambda: count_lines(input))


def _write(output: Path | None, lines: Iterable[str]) -> None:
    from tf_transformer.lines import write_lines

    write_lines(sys.stdout.buffer if output is None else output, lines)

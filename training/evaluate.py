"""Scores of translations against references, by sacreBLEU, with its signatures."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from rich.table import Table

from tf_transformer.errors import InputError


@dataclasses.dataclass(frozen=True)
class Scores:
    """BLEU and chrF of a whole corpus, and the share of translations equal to their reference."""

    bleu: float
    bleu_signature: str
    chrf: float
    chrf_signature: str
    exact_match: float
    lines: int


def corpus_bleu(translations: Sequence[str], references: Sequence[str]) -> tuple[Any, str]:
    """sacreBLEU's score object and signature: 13a, cased, smoothed, over the corpus as one.

    Raises:
        InputError: sacrebleu is not installed, or the numbers of lines differ.
    """
    return _metric("BLEU", translations, references)


def score(translations: Sequence[str], references: Sequence[str]) -> Scores:
    """All scores of translations against one reference each; errors as in `corpus_bleu`."""
    bleu, bleu_signature = corpus_bleu(translations, references)
    chrf, chrf_signature = _metric("CHRF", translations, references)
    equal = sum(a == b for a, b in zip(translations, references, strict=True))
    return Scores(
        bleu.score,
        bleu_signature,
        chrf.score,
        chrf_signature,
        equal / len(references),
        len(references),
    )


def check_installed() -> Any:
    """The module sacrebleu.metrics; InputError when it is not installed."""
    try:
        from sacrebleu import metrics
    except ImportError:
        message = "Scores need sacrebleu: pip install 'tf_transformer[evaluate]'."
        raise InputError(message) from None
    return metrics


def as_table(scores: Scores) -> Table:
    """For the terminal."""
    table = Table("score", "value", title=f"{scores.lines:,} lines")
    # Whole on every terminal: a score is worth its signature.
    table.add_column("signature", overflow="fold")
    table.add_row("BLEU", f"{scores.bleu:.2f}", scores.bleu_signature)
    table.add_row("chrF2", f"{scores.chrf:.2f}", scores.chrf_signature)
    table.add_row("exact match", f"{scores.exact_match:.1%}", "")
    return table


def _metric(name: str, translations: Sequence[str], references: Sequence[str]) -> tuple[Any, str]:
    metrics = check_installed()
    if len(translations) != len(references) or not references:
        raise InputError(
            "`translations` and `references` must have as many lines, at least one. Received: "
            f"{len(translations)} and {len(references)}"
        )
    metric = getattr(metrics, name)()
    result = metric.corpus_score(list(translations), [list(references)])
    return result, str(metric.get_signature())

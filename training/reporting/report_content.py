"""What a report says: the files of a run, in words and tables."""

import math
from datetime import timedelta
from typing import Any

from ..keeping.run_state import RunState
from ..recipe import Recipe

_METRICS = {"nll": "NLL", "bleu": "BLEU"}
_SAMPLE_ROWS = 10  # of a sentence: of more, some are left out
# Heading of a column: its key in the history, and how it is written.
_COLUMNS = {
    "epoch": ("epoch", "{:g}"),
    "update": ("step", "{:,}"),
    "training NLL": ("nll", "{:.3f}"),
    "validation NLL": ("val_nll", "{:.3f}"),
    "validation accuracy": ("val_accuracy", "{:.1%}"),
    "validation BLEU": ("val_bleu", "{:.2f}"),
    "learning rate": ("learning_rate", "{:.2e}"),
    "tokens/s": ("tokens_per_second", "{:,.0f}"),
}

Known = dict[str, Any]  # of provenance.json, which may lack anything


def summary(recipe: Recipe, state: RunState, known: Known) -> list[str]:
    """The run in a few sentences."""
    said = []
    corpus = known.get("corpora", {}).get("train", {})
    if known.get("layers") and corpus:
        said.append(
            f"A Transformer of {known['layers'][-1][-1]:,} parameters that translates from "
            f"{recipe.data.source_language} to {recipe.data.target_language}, trained on "
            f"{corpus['used']:,} sentence pairs."
        )
    if not state.history:
        return said
    last = state.history[-1]
    state_of_it = "Finished" if _is_finished(state, known) else "Not finished"
    said.append(
        f"{state_of_it}: {last['step']:,} updates, {last['epoch']:g} passes over the pairs, in "
        f"{timedelta(seconds=round(last['seconds']))} of training (hours:minutes:seconds)."
    )
    if "val_nll" in last:
        when = "At the end" if _is_finished(state, known) else "Until now"
        said.append(
            f"{when}, on sentence pairs that it was not trained on (the validation split), "
            f"{_values(last)}."
        )
    metric, patience = recipe.evaluation.metric, recipe.training.patience
    if patience and state.since_best(metric) >= patience:
        said.append(
            f"It was stopped early: {state.since_best(metric)} evaluations in a row had no better "
            f"{_METRICS[metric]} than update {state.ranked(metric)[0]:,}."
        )
    return said


def measured(recipe: Recipe, state: RunState) -> dict[str, Any]:
    """The history as a table: `heads`, `rows` of a step and its cells, the `best` step."""
    metric = recipe.evaluation.metric
    columns = {
        head: column
        for head, column in _COLUMNS.items()
        if any(column[0] in line for line in state.history)
    }
    return {
        "heads": list(columns),
        "rows": [
            (
                line["step"],
                [text.format(line[key]) if key in line else "" for key, text in columns.values()],
            )
            for line in state.history
        ],
        "best": next(iter(state.ranked(metric)), None),
        "metric": _METRICS[metric],
    }


def samples(state: RunState) -> list[dict[str, Any]]:
    """Each sample sentence with its translations over time: (epoch, translation) in `rows`."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for line in state.history:
        for sample in line.get("samples", []):
            rows = found.setdefault((sample["source"], sample["reference"]), [])
            rows.append((f"{line['epoch']:g}", sample["translation"]))
    return [
        {"source": source, "reference": reference, "rows": _thinned(rows)}
        for (source, reference), rows in found.items()
    ]


def weights(recipe: Recipe, state: RunState, known: Known) -> str:
    """What the final weights are."""
    final = known.get("final_weights")
    if not final:
        return "There are no final weights yet: the run is not finished."
    files = ", ".join(final["files"])
    which = f"those of {files}" if len(final["files"]) == 1 else f"the mean of {files}"
    said = f"model.weights.h5, with which this directory translates, holds {which}"
    if "by" in final:
        said += f", as {final['by']} has made it"
    elif recipe.training.final_weights == "best":
        said += f", chosen by their {_METRICS[recipe.evaluation.metric]} on the validation split"
    if recipe.training.ema_decay is not None:
        said += "; each of them is a moving average of the weights in training"
    after = f"after update {final['update']:,}, " if "update" in final else ""
    said += f". They were made {after}at {final['at']}."
    return said if _is_finished(state, known) else f"{said} The training has gone on since."


def corpora(known: Known) -> dict[str, Any] | None:
    """What text it was, as a table, and what was left out of it or changed."""
    found = known.get("corpora")
    if not found:
        return None
    names = {"train": "training", "valid": "validation"}
    notes = []
    for split, corpus in found.items():
        for title, counts in (("left out", corpus["left_out"]), ("repaired", corpus["repaired"])):
            if counts:
                reasons = ", ".join(f"{count:,} ({reason})" for reason, count in counts.items())
                what = "pairs" if title == "left out" else "sentences"
                notes.append(f"{names[split].capitalize()}, {what} {title}: {reasons}.")
    return {
        "heads": ["split", "pairs", "used", "target tokens", "batches"],
        "rows": [
            (
                f"{names[split]}: {corpus['name']}",
                *(f"{corpus[key]:,}" for key in ("pairs", "used", "target_tokens", "batches")),
            )
            for split, corpus in found.items()
        ],
        "notes": notes,
    }


def machine(known: Known) -> list[tuple[str, str]]:
    """Machine and versions of the last process that trained."""
    last: Known = known["starts"][-1] if known.get("starts") else {}
    return [*last.get("machine", {}).items(), *last.get("versions", {}).items()]


def bleu_signatures(state: RunState) -> list[tuple[str, str]]:
    """How BLEU was measured."""
    found = {line["bleu_signature"] for line in state.history if "bleu_signature" in line}
    return [("BLEU of the validation split (sacreBLEU)", each) for each in sorted(found)]


def _values(line: dict[str, Any]) -> str:
    nll = line["val_nll"]
    said = f"a token has an NLL (see below) of {nll:.3f}, which is a perplexity of "
    said += f"{math.exp(nll):.2f}"
    if "val_accuracy" in line:
        said += f", and {line['val_accuracy']:.1%} of the next tokens are guessed right"
    if "val_bleu" in line:
        said += f"; the translations have a BLEU of {line['val_bleu']:.2f}"
    return said


def _is_finished(state: RunState, known: Known) -> bool:
    final = known.get("final_weights")
    if not final or not state.history:
        return False
    return final.get("update", 0) >= state.history[-1]["step"]


def _thinned(rows: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The first, the last, and as many evenly between as there is room for."""
    if len(rows) <= _SAMPLE_ROWS:
        return rows
    places = [round(n * (len(rows) - 1) / (_SAMPLE_ROWS - 1)) for n in range(_SAMPLE_ROWS)]
    return [rows[place] for place in places]

"""`report.html` of a run: one file that tells somebody who was not there all that there is."""

import json
import logging
import os
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import jinja2

from tf_transformer.errors import InputError

from ..keeping.provenance import read_provenance
from ..keeping.run_directory import RECIPE_FILE
from ..keeping.run_state import HISTORY_FILE, RunState
from ..recipe import load_recipe
from .plots import EXTRA, can_draw, draw_history
from .report_content import (
    bleu_signatures,
    corpora,
    machine,
    measured,
    samples,
    summary,
    weights,
)

REPORT_FILE = "report.html"

_log = logging.getLogger(__name__)
_SHARE = 20  # of the time, one part


def write_report(run: Path, export: Path | None = None) -> Path:
    """Writes `report.html` from the other files of a run, beside and renamed; its path.

    Args:
        run: the run directory, finished or not.
        export: a SavedModel of it, whose signatures are told.

    Raises:
        InputError: `run` is no run directory, or a file of it is broken; `export` is no SavedModel.
    """
    if not (run / RECIPE_FILE).is_file():
        raise InputError(f"{run} is no run directory: {RECIPE_FILE} is missing.")
    recipe, known = load_recipe(run / RECIPE_FILE), read_provenance(run)
    state = RunState(history=_history(run))
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    text = environment.get_template("report.html.jinja").render(
        title=f"{recipe.data.source_language} to {recipe.data.target_language}",
        directory=run.resolve().name,
        written=datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        summary=summary(recipe, state, known),
        curves=draw_history(state.history) if state.history and can_draw() else None,
        extra=EXTRA,
        measured=measured(recipe, state),
        samples=samples(state),
        weights=weights(recipe, state, known),
        corpora=corpora(known),
        layers=[(name, f"{count:,}") for name, _, _, count in known.get("layers", [])],
        signatures=[*bleu_signatures(state), *(_signatures(export) if export else [])],
        machine=machine(known),
        starts=known.get("starts", []),
        recipe=(run / RECIPE_FILE).read_text(encoding="utf-8"),
    )
    beside = run / f"{REPORT_FILE}.writing"
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, run / REPORT_FILE)
    return run / REPORT_FILE


class LiveReport:
    """Called after each line of history, it writes the report of a run in training.

    Where lines follow each other within seconds some are passed over, so that it takes a twentieth
    of the time at most. A report that cannot be written does not stop a training.

    Args:
        run: the run directory.
    """

    def __init__(self, run: Path) -> None:
        self.run = run
        self._next = time.monotonic() + _SHARE  # as if one had taken a second

    def __call__(self) -> None:
        began = time.monotonic()
        if began < self._next:
            return
        try:
            write_report(self.run)
        except Exception as error:
            _log.warning(f"{self.run / REPORT_FILE} is not written: {error!r}")
        self._next = began + _SHARE * (time.monotonic() - began)


def _history(run: Path) -> list[dict[str, Any]]:
    path = run / HISTORY_FILE
    if not path.is_file():
        return []
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except ValueError as error:
        raise InputError(f"{path} is broken: {error}") from error


def _signatures(export: Path) -> list[tuple[str, str]]:
    from tf_transformer.saved import SavedTranslator

    saved = SavedTranslator.load(export)
    return [
        (f"{name} of {saved.directory}", f"{inputs} -> {outputs}")
        for name, inputs, outputs in saved.signatures()
    ]

"""Pictures of a run, by matplotlib, which is not a part of every installation."""

import io
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

EXTRA = "pip install 'tf_transformer[plots]'"

Lines = Sequence[dict[str, Any]]

# Title of a panel: what of a history line is drawn in it, by its name in the legend.
_PANELS = {
    "negative log-likelihood of a token": {"training": "nll", "validation": "val_nll"},
    "accuracy of the next token": {"training": "accuracy", "validation": "val_accuracy"},
    "BLEU of the validation split": {"validation": "val_bleu"},
    "learning rate": {"training": "learning_rate"},
    "target tokens a second": {"training": "tokens_per_second"},
}
_COLOURS = {"training": "#8a8f98", "validation": "#1f6feb"}
_PANEL_INCHES = (4.4, 2.6)
_HEAD_INCHES = 1.8


def can_draw() -> bool:
    """Whether matplotlib is there."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


def draw_history(lines: Lines) -> str:
    """All that was measured over the updates, as one <svg> that needs nothing from outside.

    Raises:
        ImportError: matplotlib is not installed.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    panels = {
        title: {name: key for name, key in curves.items() if any(key in line for line in lines)}
        for title, curves in _PANELS.items()
    }
    panels = {title: curves for title, curves in panels.items() if curves}
    rows = -(-len(panels) // 2)
    width, height = _PANEL_INCHES
    figure = Figure(figsize=(2 * width, rows * height), layout="constrained")
    for place, (title, curves) in enumerate(panels.items(), 1):
        panel = figure.add_subplot(rows, 2, place)
        panel.set_title(title, fontsize=9)
        panel.grid(alpha=0.25)
        panel.tick_params(labelsize=7)
        panel.spines[["top", "right"]].set_visible(False)
        for name, key in curves.items():
            points = [(line["step"], line[key]) for line in lines if key in line]
            panel.plot(*zip(*points, strict=True), ".-", color=_COLOURS[name], label=name)
        if len(curves) > 1:
            panel.legend(fontsize=7, frameon=False)
        if place > len(panels) - 2:
            panel.set_xlabel("update", fontsize=8)
    # No date, and the same names in each file: equal histories give equal pictures.
    with rc_context({"svg.hashsalt": "tf_transformer", "svg.fonttype": "path"}):
        text = io.StringIO()
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(text, format="svg", metadata=nothing)
    svg = text.getvalue()
    return svg[svg.index("<svg") :]  # what is before it names a DTD on the net


def draw_attention(weights: np.ndarray, rows: Sequence[str], columns: Sequence[str]) -> bytes:
    """A PNG of attention weights (L, N, T, S): a row a layer, a column a head, black is 1.

    Args:
        weights: of L layers and N heads.
        rows: the T pieces that look.
        columns: the S pieces that are looked at.

    Raises:
        ImportError: matplotlib is not installed.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    layers, heads = weights.shape[:2]
    picture = io.BytesIO()
    # A piece may be "$", and of a script that matplotlib's font has not.
    with warnings.catch_warnings(), rc_context({"text.parse_math": False}):
        warnings.simplefilter("ignore", UserWarning)
        size = (_HEAD_INCHES * heads + 1, _HEAD_INCHES * layers + 1)
        figure = Figure(figsize=size, layout="constrained")
        panels: Any = figure.subplots(layers, heads, squeeze=False, sharex=True, sharey=True)
        for layer, head in np.ndindex(layers, heads):
            panel = panels[layer, head]
            panel.imshow(weights[layer, head], cmap="Greys", vmin=0, vmax=1, aspect="auto")
            panel.set_title(f"layer {layer + 1}, head {head + 1}", fontsize=7)
            panel.set_xticks(range(len(columns)), columns, fontsize=6, rotation=90)
            panel.set_yticks(range(len(rows)), rows, fontsize=6)
        figure.savefig(picture, format="png", dpi=90)
    return picture.getvalue()

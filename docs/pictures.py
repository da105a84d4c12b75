"""The pictures of docs/, drawn from what our own layers compute.

    python docs/pictures.py [FOLDER]     all of them, into docs/pictures by default; half a minute

Needs matplotlib: `pip install '.[plots]'`. The same versions write the same bytes.
"""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import keras
import numpy as np

from tf_transformer import (
    END_ID,
    PAD_ID,
    START_ID,
    TransformerConfig,
    attention_mask,
    build_attention_model,
    build_transformer,
    causal_mask,
    padding_mask,
)
from tf_transformer.layers.positions import SinusoidalPositions
from tf_transformer.rooms import need

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FOLDER = Path(__file__).parent / "pictures"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
NAMES = {PAD_ID: "PAD", START_ID: "START", END_ID: "END"}


def draw_positions(figure: "Figure") -> None:
    """Section 3.5: the table, and three of its columns as waves."""
    positions, width = 100, 64
    table = np.asarray(SinusoidalPositions()(keras.ops.zeros((1, positions, width))))[0]
    whole, waves = figure.subplots(1, 2, width_ratios=(1, 1.2))
    image = whole.imshow(table, cmap="RdBu", vmin=-1, vmax=1, interpolation="none", aspect="auto")
    whole.set(title=f"The table, d_model = {width}", xlabel="dimension", ylabel="position")
    figure.colorbar(image, ax=whole)
    for dimension in (4, 12, 20):
        waves.plot(table[:, dimension], label=f"dimension {dimension}")
    waves.set(title="Three of its columns", xlabel="position")
    waves.legend(loc="lower left")


def draw_masks(figure: "Figure") -> None:
    """Section 3.2.3: what may be seen, by padding, by order and by both."""
    tokens = ["START", "the", "dog", "sleeps", "PAD", "PAD"]
    length = len(tokens)
    real = padding_mask(np.array([[PAD_ID if token == "PAD" else END_ID + 1 for token in tokens]]))
    masks = {
        "padding: no PAD": np.broadcast_to(np.asarray(real)[:, None], (1, length, length)),
        "causal: nothing later": causal_mask(length),
        "both: the decoder's own": attention_mask(real, causal_length=length),
    }
    for axes, (title, mask) in zip(figure.subplots(1, 3), masks.items(), strict=True):
        _draw_matrix(axes, np.asarray(mask)[0], tokens, tokens)
        axes.set_title(title)


def draw_schedule(figure: "Figure") -> None:
    """Section 5.3: the learning rate of base and big, and of a longer warm-up."""
    schedule = need("training.optimizers.schedule").TransformerSchedule
    axes = figure.subplots()
    updates = np.arange(1, 40_001)
    for name, hidden_dim, warmup in (
        ("base", 512, 4_000),
        ("big", 1_024, 4_000),
        ("base, longer", 512, 8_000),
    ):
        rates = np.asarray(schedule(hidden_dim, warmup)(updates - 1))  # Keras counts from 0
        axes.plot(updates, rates, label=f"{name}: d_model {hidden_dim}, warm-up {warmup:,}")
        peak = rates.argmax()
        axes.plot(updates[peak], rates[peak], "k.")
    axes.set(title="The learning rate", xlabel="update", ylabel="rate", ylim=(0, None))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.legend()


def draw_attention(figure: "Figure") -> None:
    """Section 3.2: all weights of a model of one layer and two heads that learnt to reverse words.

    The word is padded, so that the mask can be seen as well.
    """
    word = "oracle"
    inputs, _ = _reversals([word], width=len(word) + 2)
    weights = build_attention_model(_trained_to_reverse())(inputs)
    source, target = (
        [NAMES.get(i) or LETTERS[i - END_ID - 1] for i in np.asarray(ids)[0]]
        for ids in (inputs["encoder_token_ids"], inputs["decoder_token_ids"])
    )
    sides = {"encoder": (source, source), "decoder": (target, target), "cross": (target, source)}
    live = len(word) + 1  # what a pad looks at means nothing
    for head, row in enumerate(figure.subplots(2, 3)):
        for axes, (side, (queries, keys)) in zip(row, sides.items(), strict=True):
            matrix = np.asarray(weights[side])[0, 0, head, :live]
            _draw_matrix(axes, matrix, queries[:live], keys)
            axes.set_title(f"{side}, head {head + 1}")


def _trained_to_reverse() -> keras.Model:
    """A tiny Transformer after some hundred updates on random words."""
    import tensorflow as tf

    tf.config.experimental.enable_op_determinism()
    keras.utils.set_random_seed(3)
    random = np.random.default_rng(0)
    words = ["".join(random.choice([*LETTERS], size)) for size in random.integers(4, 9, 4_096)]
    config = TransformerConfig(
        source_vocabulary_size=END_ID + 1 + len(LETTERS),
        target_vocabulary_size=END_ID + 1 + len(LETTERS),
        num_layers=1,
        hidden_dim=64,
        num_heads=2,
        intermediate_dim=64,
    )
    model = build_transformer(config)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=PAD_ID)
    model.compile(keras.optimizers.Adam(3e-3), loss)
    model.fit(*_reversals(words, width=8), epochs=8, batch_size=64, verbose=0)
    return model


def _reversals(words: Sequence[str], width: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Inputs and labels: each word with END, then padded to `width` + 1; backwards the same."""
    source, target, labels = (
        np.full((len(words), width + 1), PAD_ID, "int32") for _ in ("source", "target", "labels")
    )
    for row, word in enumerate(words):
        ids = [END_ID + 1 + LETTERS.index(letter) for letter in word]
        source[row, : len(ids) + 1] = [*ids, END_ID]
        target[row, : len(ids) + 1] = [START_ID, *ids[::-1]]
        labels[row, : len(ids) + 1] = [*ids[::-1], END_ID]
    return {"encoder_token_ids": source, "decoder_token_ids": target}, labels


def _draw_matrix(
    axes: "Axes", matrix: np.ndarray, queries: Sequence[str], keys: Sequence[str]
) -> None:
    axes.imshow(matrix, cmap="Blues", vmin=0, vmax=1, interpolation="none")
    axes.set_xticks(range(len(keys)), keys, rotation=90)
    axes.set_yticks(range(len(queries)), queries)
    axes.set(xlabel="key", ylabel="query")
    # Lines between the cells, under no tick.
    axes.set_xticks(np.arange(0.5, len(keys) - 1), minor=True)
    axes.set_yticks(np.arange(0.5, len(queries) - 1), minor=True)
    axes.grid(which="minor", color="white", linewidth=0.8)
    axes.tick_params(which="both", bottom=False, left=False)


# Name of the file, width and height in inches, and who draws it.
PICTURES: dict[str, tuple[float, float, Callable[["Figure"], None]]] = {
    "positions.svg": (8.5, 3.4, draw_positions),
    "masks.svg": (8.5, 3.3, draw_masks),
    "schedule.svg": (6.5, 3.2, draw_schedule),
    "attention.svg": (8.5, 5.4, draw_attention),
}


def draw(name: str, folder: Path) -> Path:
    """Draws one of PICTURES into a folder, beside and renamed."""
    from matplotlib import style
    from matplotlib.figure import Figure

    width, height, picture = PICTURES[name]
    path, beside = folder / name, folder / f"{name}.writing"
    settings = {
        "svg.hashsalt": name,
        "svg.fonttype": "none",  # letters as text: small files
        "font.sans-serif": ["DejaVu Sans"],
        "font.size": 9,
    }
    with style.context(["default", settings]):
        figure = Figure(figsize=(width, height), layout="constrained")
        picture(figure)
        figure.savefig(beside, format="svg", metadata={"Date": None, "Creator": None})
    os.replace(beside, path)
    return path


def main(arguments: Sequence[str]) -> None:
    """Draws all of them; says where."""
    folder = Path(arguments[0]) if arguments else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name in PICTURES:
        print(draw(name, folder))


if __name__ == "__main__":
    main(sys.argv[1:])

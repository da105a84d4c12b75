"""What all trainings read: our recipe, its batches as ids, OpenNMT-tf's files of pieces."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .train_sizes import ADAM, DROPOUT, LEARNING_RATE, SIZES, SMOOTHING

BATCHES = "batches.npz"
MODEL = "pieces.model"
MAX_LENGTH = 100
Batch = tuple[np.ndarray, np.ndarray, np.ndarray]  # source, decoder input, labels; each (B, T)


def recipe_of(size: str, folder: Path, batch_tokens: int):
    """Our recipe: validation at the end alone, everything else as a run has it."""
    from training.recipe import load_recipe

    sizes = SIZES[size]
    model = {
        "num_layers": sizes["layers"],
        "hidden_dim": sizes["hidden"],
        "num_heads": sizes["heads"],
        "intermediate_dim": sizes["intermediate"],
        "dropout": DROPOUT,
        "norm_first": "true",
        # Rows for pieces that a corpus does not have: the tables are as large as the size says.
        "pad_vocabulary_to": sizes["vocabulary"],
    }
    rate = {"schedule": '"constant"', "learning_rate": LEARNING_RATE, "warmup_steps": 1, **ADAM}
    training = {
        "epochs": 1_000_000,
        "batch_tokens": batch_tokens,
        "label_smoothing": SMOOTHING,
        **rate,
    }
    sections = {
        "model": model,
        "training": training,
        "data": {"max_length": MAX_LENGTH},
        "tokenizer": {"vocabulary_size": sizes["vocabulary"], "model_type": '"bpe"'},
        "evaluation": {"every_epochs": 1_000_000, "samples": 0},
    }
    if (folder / MODEL).exists():
        sections["tokenizer"] = {"model": f'"{folder / MODEL}"'}
    text = "\n".join(
        "\n".join([f"[{name}]", *(f"{key} = {value}" for key, value in keys.items())])
        for name, keys in sections.items()
    )
    path = folder / "recipe.toml"
    path.write_text(text + "\n", encoding="utf-8")
    return load_recipe(str(path))


def prepare(size: str, data: Path, folder: Path, batch_tokens: int, most: int) -> int:
    """Writes all that the trainings read into `folder`; returns the size of the vocabulary.

    Args:
        size: of `SIZES`.
        data: a corpus folder with the splits train and valid.
        folder: that is there.
        batch_tokens: of our recipe.
        most: batches that are kept, of the first epoch in its order.
    """
    from tf_transformer.tokenizers import SentencePieceTokenizer
    from training import Batches, read_split

    corpus = read_split(data)
    texts = [*corpus.source, *corpus.target]
    tokenizer = SentencePieceTokenizer.train(texts, SIZES[size]["vocabulary"], model_type="bpe")
    tokenizer.save(folder / MODEL)
    batches = Batches(corpus, tokenizer, tokenizer, batch_tokens, MAX_LENGTH)
    arrays: dict[str, np.ndarray] = {}
    lines: dict[str, list[str]] = {"opennmt.src": [], "opennmt.tgt": []}
    for number, (inputs, labels) in enumerate(batches.epoch(0)):
        source = inputs["encoder_token_ids"]
        for ids, side in zip((source, labels), lines.values(), strict=True):
            # Without END, which OpenNMT-tf adds.
            side += [" ".join(f"t{i}" for i in row[row > 0][:-1]) for row in ids]
        if number < most:
            triple = (source, inputs["decoder_token_ids"], labels)
            arrays |= {f"{number}_{place}": ids for place, ids in enumerate(triple)}
    for name, side in lines.items():
        (folder / name).write_text("\n".join(side) + "\n")
    np.savez(folder / BATCHES, **arrays)
    names = ["<blank>", "<s>", "</s>", *(f"t{i}" for i in range(4, SIZES[size]["vocabulary"]))]
    (folder / "opennmt.vocab").write_text("\n".join(names) + "\n")
    return tokenizer.vocabulary_size


def load(folder: Path) -> list[Batch]:
    """The batches of `prepare`."""
    with np.load(folder / BATCHES) as arrays:
        number = len(arrays.files) // 3
        return [tuple(arrays[f"{n}_{place}"] for place in range(3)) for n in range(number)]


def endless(folder: Path) -> Iterator[Batch]:
    """They, over and over."""
    batches = load(folder)
    while True:
        yield from batches


if __name__ == "__main__":
    # In a process of its own: TensorFlow's memory is not held while others are measured.
    name, text, where, tokens, number = sys.argv[1:]
    print(prepare(name, Path(text), Path(where), int(tokens), int(number)))

"""Weights of another run to begin with, also where the vocabulary is another one."""

from collections.abc import Sequence
from pathlib import Path

import keras
import numpy as np

from tf_transformer.config import END_ID, UNK_ID, TransformerConfig
from tf_transformer.errors import InputError
from tf_transformer.model import embeddings_of
from tf_transformer.run_files import build_in_float32, load_weights
from tf_transformer.tokenizers import Tokenizer

from .trained import DROPOUTS, Trained, check_sizes

_NOISE = 0.1  # of the spread of the old rows
_FREE = DROPOUTS | {"source_vocabulary_size", "target_vocabulary_size", "pad_vocabulary_to"}


def warm_start(
    model: keras.Model,
    config: TransformerConfig,
    tokenizers: Sequence[Tokenizer],
    origin: Path,
    seed: int,
) -> str:
    """Puts the weights of another run into `model`; what was done, for a person.

    Weights are taken by name. Rows of embeddings, and columns and biases of an output projection
    of its own, follow their pieces: what is in both vocabularies keeps its row whatever its id. A
    new piece gets the mean of the old rows, so that it begins about as probable as any other (a
    random row may win everywhere: Hewitt 2021, "Initializing new word embeddings for pretrained
    language models"), and a tenth of their spread as noise, so that new pieces differ.

    Args:
        model: from `build_transformer(config)`.
        config: its sizes; those of `origin` but for vocabularies and dropout.
        tokenizers: source and target of `model`.
        origin: a run, for its final weights or latest checkpoint, or a weight file. A file that
            lies in no run is taken as one of the same vocabulary.
        seed: of the noise.

    Raises:
        InputError: no weights there, or of a model of other sizes; it names the first difference.
    """
    if not origin.exists():
        raise InputError(f"training.warm_start: there is no run or weight file {origin}.")
    run = Trained.read(origin) if origin.is_dir() else Trained.of_file(origin)
    if run is None:
        load_weights(model, origin.parent, origin.name)
        return f"Begins with the weights of {origin}; it lies in no run: taken for the same pieces."
    file = run.weights() if origin.is_dir() else origin
    check_sizes(config, run.config, str(origin), free=_FREE)
    theirs = build_in_float32(run.config)
    load_weights(theirs, file.parent, file.name)
    values = {weight.path: np.asarray(weight) for weight in theirs.weights}
    told, random = [], np.random.default_rng(seed)
    olds = dict(zip(embeddings_of(model), (run.source, run.target), strict=True))  # one if shared
    news = dict(zip(embeddings_of(model), tokenizers, strict=True))
    for embedding, old in olds.items():
        new = news[embedding]
        rows = _old_rows(old, new)
        known = int((rows >= 0).sum())
        told.append(f"{known:,} of {len(rows):,} pieces are known, {len(rows) - known:,} new")
        for weight in embedding.weights:
            axis = 1 if weight.name == "projection" else 0
            before = np.moveaxis(values[weight.path], axis, 0)[: old.vocabulary_size]
            after = np.moveaxis(np.array(weight), axis, 0)  # rows beyond the vocabulary stay
            after[: len(rows)] = _follow(before, rows, random)
            values[weight.path] = np.moveaxis(after, 0, axis)
    for weight in model.weights:
        weight.assign(values[weight.path])
    sides = "" if len(told) == 1 else " (source; target)"
    return f"Begins with the weights of {file}; {'; '.join(told)}{sides}."


def _old_rows(old: Tokenizer, new: Tokenizer) -> np.ndarray:
    """For each id of the new vocabulary the id of its piece in the old one, or -1."""
    rows = np.array(old.piece_ids(new.vocabulary()))
    rows[rows == UNK_ID] = -1
    rows[: END_ID + 1] = np.arange(END_ID + 1)  # the special ids are the same everywhere
    return rows


def _follow(old: np.ndarray, rows: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """(V, ...) values for the new ids from those of the old ones."""
    pieces = old[END_ID + 1 :]  # PAD and START are never predicted and would bend the mean
    noise = random.normal(size=(len(rows), *old.shape[1:])) * pieces.std(axis=0) * _NOISE
    fresh = pieces.mean(axis=0) + noise
    is_known = (rows >= 0).reshape(-1, *[1] * (old.ndim - 1))
    return np.where(is_known, old[np.maximum(rows, 0)], fresh)

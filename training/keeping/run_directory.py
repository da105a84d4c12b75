"""The directory of a run: new, or one to go on with, or refused before anything is written."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tf_transformer.config import TransformerConfig
from tf_transformer.errors import InputError
from tf_transformer.run_files import CONFIG_FILE
from tf_transformer.tokenizers import TOKENIZERS, Tokenizer

from ..corpora.corpus import Corpus
from ..recipe import Recipe, load_recipe

RECIPE_FILE, CORPUS_FILE = "config.toml", "corpus.json"

# A longer run of the same kind goes on; so does one that is looked at in another way.
_MAY_CHANGE = {
    "training.epochs",
    "training.max_steps",
    "training.max_minutes",
    "training.strategy",
    "training.replicas",
    "training.save_every_minutes",
    "training.patience",
    "training.keep_checkpoints",
    "training.average_checkpoints",
    "training.final_weights",
}
_SECTIONS_MAY_CHANGE = ("evaluation", "decoding")


class RunDirectory:
    """Checks the directory for a recipe.

    Args:
        path: need not exist.
        recipe: what is to be trained.

    Raises:
        InputError: it holds something else, or a run of another recipe; the message names the
            first difference.
    """

    def __init__(self, path: Path, recipe: Recipe) -> None:
        self.path = path
        self.recipe = recipe
        self.is_new = True
        if not path.exists():
            return
        if not path.is_dir():
            raise InputError(f"{path} must be a directory for the run, but is a file.")
        if all(_may_be_ours(file.name) for file in path.iterdir()):
            return
        if not (path / RECIPE_FILE).is_file():
            raise InputError(
                f"{path} is not empty and holds no run ({RECIPE_FILE} is missing): "
                "name another directory."
            )
        self.is_new = False
        self._compare(load_recipe(path / RECIPE_FILE))

    def compare(self, config: TransformerConfig, corpus: Corpus) -> None:
        """Refuses, with an InputError, a model or a corpus that is not the run's; writes nothing.

        Another corpus has another vocabulary, and the batches to go on from would not be there.
        """
        model_file, corpus_file = self.path / CONFIG_FILE, self.path / CORPUS_FILE
        if model_file.exists() and (before := TransformerConfig.from_json(model_file)) != config:
            raise InputError(
                f"{self.path} holds a run of another model or vocabulary: "
                f"{before.source_vocabulary_size} and {before.target_vocabulary_size} ids, "
                f"now {config.source_vocabulary_size} and {config.target_vocabulary_size}."
            )
        if corpus_file.exists() and _read(corpus_file) != summary(corpus):
            raise InputError(
                f"{self.path} holds a run on another corpus, and its vocabulary, than "
                f"{corpus.name}: name the same text, or another directory, where "
                f"training.warm_start = {str(self.path)!r} goes on from its weights."
            )

    def begin(
        self, config: TransformerConfig, corpus: Corpus, tokenizers: Mapping[str, Tokenizer]
    ) -> None:
        """Writes what the run is: tokenizers by their file names, model, corpus, recipe."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{self.path} can't be made: {error.strerror}.") from error
        if self.is_new:
            for file, tokenizer in tokenizers.items():
                tokenizer.save(self.path / file)
        config.to_json(self.path / CONFIG_FILE)
        _write(self.path / CORPUS_FILE, json.dumps(summary(corpus)) + "\n")
        _write(self.path / RECIPE_FILE, self.recipe.to_toml())  # last: it makes a run of it

    def _compare(self, before: Recipe) -> None:
        old, new = before.model_dump(), self.recipe.model_dump()
        for section in new:
            if section in _SECTIONS_MAY_CHANGE:
                continue
            for key, value in new[section].items():
                name = f"{section}.{key}"
                if value != old[section].get(key) and name not in _MAY_CHANGE:
                    raise InputError(
                        f"{self.path} holds a run with {name} = {old[section].get(key)!r}, now it "
                        f"is {value!r}: name another directory, or set it back."
                    )


def _may_be_ours(name: str) -> bool:
    """Whether a process that was killed before it wrote the recipe may have left the file."""
    suffixes = [tokenizer.suffix for tokenizer in TOKENIZERS.values()]
    ours = {f"{side}{suffix}" for side in ("source", "target") for suffix in suffixes}
    name, writing = name.removesuffix(".writing"), name.endswith(".writing")
    return name in {CONFIG_FILE, CORPUS_FILE, *ours} or (writing and name == RECIPE_FILE)


def summary(corpus: Corpus) -> dict[str, Any]:
    """What tells one corpus from another, as JSON has it."""
    digest = hashlib.sha256()
    for side in (corpus.source, corpus.target):
        for sentence in side:
            digest.update(sentence.encode() + b"\n")
    summary: dict[str, Any] = {"pairs": len(corpus), "sha256": digest.hexdigest()}
    if corpus.parts:
        summary["parts"] = [{"pairs": part.pairs, "weight": part.weight} for part in corpus.parts]
    return summary


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:
        raise InputError(f"{path} is broken: {error}") from error


def _write(path: Path, text: str) -> None:
    beside = path.with_name(f"{path.name}.writing")
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, path)

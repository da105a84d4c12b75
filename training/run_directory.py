"""The directory of a run: new, or one to go on with, or refused before anything is written."""

import os
from pathlib import Path

from tf_transformer.config import TransformerConfig
from tf_transformer.errors import InputError
from tf_transformer.run_files import CONFIG_FILE

from .recipe import Recipe, load_recipe

RECIPE_FILE = "config.toml"

# A longer run of the same kind goes on; so does one that is looked at in another way.
_MAY_CHANGE = {
    "training.epochs",
    "training.max_steps",
    "training.max_minutes",
    "training.keep_checkpoints",
    "training.average_checkpoints",
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
        if not any(path.iterdir()):
            return
        if not (path / RECIPE_FILE).is_file():
            raise InputError(
                f"{path} is not empty and holds no run ({RECIPE_FILE} is missing): "
                "name another directory."
            )
        self.is_new = False
        self._compare(load_recipe(path / RECIPE_FILE))

    def begin(self, config: TransformerConfig) -> None:
        """Writes what the run is, or checks that it is still that."""
        model_file = self.path / CONFIG_FILE
        if not self.is_new and model_file.exists():
            before = TransformerConfig.from_json(model_file)
            if before != config:
                raise InputError(
                    f"{self.path} holds a run of another model or vocabulary: "
                    f"{before.source_vocabulary_size} and {before.target_vocabulary_size} ids, "
                    f"now {config.source_vocabulary_size} and {config.target_vocabulary_size}."
                )
        self.path.mkdir(parents=True, exist_ok=True)
        config.to_json(model_file)
        beside = self.path / f"{RECIPE_FILE}.writing"
        beside.write_text(self.recipe.to_toml(), encoding="utf-8")
        os.replace(beside, self.path / RECIPE_FILE)

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

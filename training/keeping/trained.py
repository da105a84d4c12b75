"""What another run left behind: its sizes, vocabularies and weights, finished or not."""

import dataclasses
from pathlib import Path

from tf_transformer.config import TransformerConfig
from tf_transformer.errors import InputError
from tf_transformer.options import DecodingOptions
from tf_transformer.run_files import CONFIG_FILE, TRANSLATOR_FILE, WEIGHTS_FILE, read_run
from tf_transformer.tokenizers import Tokenizer

from ..corpora.tokenizer_pair import TokenizerPair
from ..recipe import load_recipe
from .checkpoints import weight_files
from .run_directory import RECIPE_FILE

# Fields of a model's config that no weight depends on.
DROPOUTS = frozenset({"dropout", "embedding_dropout", "attention_dropout", "intermediate_dropout"})


@dataclasses.dataclass(frozen=True)
class Trained:
    """A run that can be averaged or started from.

    Attributes:
        path: the run directory.
        config: the sizes of its model.
        source: the source tokenizer.
        target: the target tokenizer; the same object where they share.
        options: how it translates.
    """

    path: Path
    config: TransformerConfig
    source: Tokenizer
    target: Tokenizer
    options: DecodingOptions

    @classmethod
    def read(cls, path: Path) -> "Trained":
        """A run that is finished, or one that is being trained and has its recipe.

        Raises:
            InputError: it is neither, or a file of it is broken.
        """
        if (path / TRANSLATOR_FILE).is_file():
            config, source, target, decoding = read_run(path)
            return cls(path, config, source, target, DecodingOptions(**decoding))
        if not (path / RECIPE_FILE).is_file():
            raise InputError(
                f"{path} is no run: neither {TRANSLATOR_FILE} nor {RECIPE_FILE} is there."
            )
        recipe = load_recipe(path / RECIPE_FILE)
        config = TransformerConfig.from_json(path / CONFIG_FILE)
        pair = TokenizerPair.load(path, recipe.tokenizer)
        options = DecodingOptions(**recipe.decoding.model_dump())
        return cls(path, config, pair.source, pair.target, options)

    @classmethod
    def of_file(cls, file: Path) -> "Trained | None":
        """The run that a weight file lies in, if it lies in one."""
        for folder in (file.parent, file.parent.parent):
            if (folder / CONFIG_FILE).is_file():
                return cls.read(folder)
        return None

    def checkpoints(self) -> list[Path]:
        """Its weight files by step number."""
        return weight_files(self.path / "checkpoints")

    def weights(self) -> Path:
        """Its final weights, or the latest checkpoint where it is not finished.

        Raises:
            InputError: it has neither.
        """
        for file in (self.path / WEIGHTS_FILE, *reversed(self.checkpoints())):
            if file.is_file():
                return file
        raise InputError(f"{self.path} holds no weights yet.")

    def check_vocabulary(self, other: "Trained") -> None:
        """Refuses, with an InputError, a run whose ids mean other pieces."""
        for side in ("source", "target"):
            ours, theirs = getattr(self, side).vocabulary(), getattr(other, side).vocabulary()
            for token, (mine, yours) in enumerate(zip(ours, theirs, strict=False)):
                if mine != yours:
                    raise InputError(
                        f"{other.path} has another {side} vocabulary than {self.path}: id {token} "
                        f"is {yours!r}, not {mine!r}."
                    )
            if len(ours) != len(theirs):
                raise InputError(
                    f"{other.path} has another {side} vocabulary than {self.path}: "
                    f"{len(theirs)} ids, not {len(ours)}."
                )


def check_sizes(
    ours: TransformerConfig, theirs: TransformerConfig, name: str, free: frozenset[str]
) -> None:
    """Refuses, with an InputError, a model that differs in a field which is not free."""
    for field in dataclasses.fields(TransformerConfig):
        mine, yours = _resolved(ours, field.name), _resolved(theirs, field.name)
        if mine != yours and field.name not in free:
            raise InputError(
                f"{name} is of another model: its {field.name} is {yours!r}, not {mine!r}."
            )


def _resolved(config: TransformerConfig, field: str) -> object:
    """A field with what stands for None; None where the model has no use for it."""
    value = getattr(config, field)
    uses = {"max_positions": "learned", "max_relative_distance": "relative"}
    if field in uses and config.position != uses[field]:
        return None
    stands_for_none = {
        "num_decoder_layers": config.num_layers,
        "head_dim": config.hidden_dim // config.num_heads,
        "value_dim": config.hidden_dim // config.num_heads,
        "embedding_dropout": config.dropout,
    }
    return stands_for_none.get(field) if value is None else value

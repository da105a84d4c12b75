"""[data] of a recipe: which text, and what of it. recipes/*.toml say what the keys mean."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from .section import AboveZero, Positive, Section


def _file_names(value: Any) -> Any:
    names = [value] if isinstance(value, str) else value
    is_names = isinstance(names, list) and all(isinstance(name, str) and name for name in names)
    if not is_names or len(names) not in (1, 2):
        raise ValueError(f'must be a TSV name or ["a.src", "a.tgt"]; received {value!r}')
    return names


Files = Annotated[list[str], BeforeValidator(_file_names)]


class CorpusSettings(Section):
    """One of [[data.corpora]]: its files, and how often an epoch sees each of its pairs."""

    files: Files
    weight: AboveZero = 1.0


class DataSettings(Section):
    """[data]: which files, and what of them."""

    train: Files | None = None
    corpora: Annotated[list[CorpusSettings], Field(min_length=1)] | None = None
    valid: Files | None = None
    test: Files | None = None
    max_length: Positive = 128
    max_length_ratio: Annotated[float, Field(ge=1)] | None = None
    drop_duplicates: bool = False
    encoding_errors: Literal["strict", "replace"] = "strict"
    source_language: str = "source"
    target_language: str = "target"

    @model_validator(mode="after")
    def _train_on_one_thing(self) -> "DataSettings":
        if self.train is not None and self.corpora is not None:
            raise ValueError("`train` and `corpora` both name the training text: give one of them")
        return self

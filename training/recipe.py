"""A recipe: everything a training run is made of, read from a TOML file and the command line."""

import difflib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pydantic
import tomli_w
from pydantic import Field, model_validator
from pydantic_core import ErrorDetails

from tf_transformer.errors import InputError
from tf_transformer.lines import read_lines

from .settings.data import DataSettings
from .settings.section import Section
from .settings.sections import (
    DecodingSettings,
    EvaluationSettings,
    ModelSettings,
    TrainingSettings,
)
from .settings.tokenizer import TokenizerSettings, put_over

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

RECIPES = Path(__file__).parent / "recipes"
DEFAULTS = "defaults"  # as a base: nothing but the defaults, the paper's base model and training

Tables = dict[str, Any]


class Recipe(Section):
    """The six sections; recipes/*.toml say what each key means."""

    data: DataSettings = Field(default_factory=DataSettings)
    tokenizer: TokenizerSettings = Field(default_factory=TokenizerSettings)
    model: ModelSettings = Field(default_factory=ModelSettings)
    training: TrainingSettings = Field(default_factory=TrainingSettings)
    decoding: DecodingSettings = Field(default_factory=DecodingSettings)
    evaluation: EvaluationSettings = Field(default_factory=EvaluationSettings)

    @model_validator(mode="after")
    def _share_what_is_tied(self) -> "Recipe":
        ties = self.model.model_dump()["tie_embeddings"]
        if ties == "three_way" and not self.tokenizer.shared:
            raise ValueError(
                'model.tie_embeddings = "three_way" needs tokenizer.shared = true; with one '
                'tokenizer a side, take "two_way" or "none"'
            )
        return self

    def to_toml(self) -> str:
        """The whole recipe, defaults and preset written out; `load_recipe` reads it back equal.

        TOML has no null: a key whose value is None is left out.
        """
        return tomli_w.dumps(self.model_dump(exclude_none=True))


def bundled_recipes() -> list[str]:
    """Names of the recipes that come with the package."""
    return sorted(path.stem for path in RECIPES.glob("*.toml"))


def load_recipe(recipe: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """Reads a recipe and puts the settings of the command line over it.

    A recipe may begin with `base = "NAME"`: another one, by name or by its path from this file, of
    which it tells only what differs. Its keys win; a `preset` replaces the base's whole [model],
    and keys of the base's [tokenizer] that another `type` or a `model` has no use for are dropped.

    Args:
        recipe: path of a TOML file, or the name of a bundled recipe (`bundled_recipes()`).
        overrides: `"section.key=value"` each, later ones win. The value is read as TOML
            (`3`, `0.1`, `true`, `["a.src", "a.tgt"]`) and, when it is not TOML, as the text
            itself. `null` takes the key out, so that its default holds. `model.preset=NAME`
            replaces the recipe's whole [model] section.

    Raises:
        InputError: no such recipe, not TOML, an unknown key (the nearest right one is named) or
            a value that breaks its rule.
    """
    path = _find(recipe)
    tables = _tables(path)
    settings = [_split_override(text) for text in overrides]
    if any(keys == ("model", "preset") and value is not None for keys, value in settings):
        tables["model"] = {}
    chosen = {key: value for (section, key), value in settings if section == "tokenizer"}
    if {"type", "model"} & chosen.keys() and isinstance(tables.get("tokenizer"), dict):
        tables["tokenizer"] = put_over(tables["tokenizer"], chosen)
    for (section, key), value in settings:
        table = tables.setdefault(section, {})
        if not isinstance(table, dict):
            raise InputError(
                f"{path}: {section} must be a section, [{section}]; received {table!r}."
            )
        table.pop(key, None)
        if value is not None:
            table[key] = value
    try:
        return Recipe.model_validate(tables)
    except pydantic.ValidationError as error:
        details = error.errors(include_url=False)[0]
        origin = f"{path} with --set" if overrides else str(path)
        if details["loc"][:2] in [keys for keys, _ in settings]:
            origin = "--set"
        raise InputError(f"{origin}: {_explain(details)}") from None


def _find(recipe: str | Path) -> Path:
    bundled = RECIPES / f"{recipe}.toml"
    if str(recipe) in bundled_recipes():
        return bundled
    if Path(recipe).exists():
        return Path(recipe)
    raise InputError(
        f"There is no recipe {recipe}: give the path of a TOML file or one of "
        f"{', '.join(bundled_recipes())}."
    )


def _tables(path: Path, above: tuple[Path, ...] = ()) -> Tables:
    """What a file says, over what the recipe says that it starts from."""
    tables = _parse(path)
    base = tables.pop("base", DEFAULTS)
    if not isinstance(base, str):
        raise InputError(f"{path}: base must be the name of a recipe; received {base!r}.")
    if base == DEFAULTS:
        return tables
    bundled = base in bundled_recipes()
    below = _find(base if bundled else path.parent / base)
    if below.resolve() in above or below.resolve() == path.resolve():
        raise InputError(f"{path}: base = {base!r} leads back to itself.")
    merged = _tables(below, (*above, path.resolve()))
    for name, table in tables.items():
        starts_anew = name == "model" and isinstance(table, dict) and "preset" in table
        under = {} if starts_anew else merged.get(name)
        if isinstance(table, dict) and isinstance(under, dict):
            table = put_over(under, table) if name == "tokenizer" else {**under, **table}
        merged[name] = table
    return merged


def _parse(path: Path) -> Tables:
    text = "".join(f"{line}\n" for line in read_lines(path))
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} must be TOML, but: {error}.") from None


def _split_override(text: str) -> tuple[tuple[str, str], Any]:
    """`training.epochs=3` -> (("training", "epochs"), 3); the value None stands for `null`."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or name in Recipe.model_fields:
        raise InputError(f"--set must be section.key=value; received {text!r}.")
    if name not in _keys():
        raise InputError(f"--set: {name} is not a key of a recipe{_nearest(name, _keys())}")
    section, _, key = name.partition(".")
    if value == "null":
        return (section, key), None
    try:
        parsed = tomllib.loads(f"value = {value}")
    except tomllib.TOMLDecodeError:
        return (section, key), value
    # A line break in the value could smuggle in a second key: then it is text as well.
    return (section, key), parsed["value"] if len(parsed) == 1 else value


def _keys() -> list[str]:
    return [
        f"{section}.{key}"
        for section, field in Recipe.model_fields.items()
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section)
        for key in field.annotation.model_fields
    ]


def _explain(details: ErrorDetails) -> str:
    """pydantic's account of one mistake as one sentence of ours."""
    location = [str(part) for part in details["loc"]]
    name, received = ".".join(location), details["input"]
    if details["type"] == "extra_forbidden":
        if len(location) == 1 and isinstance(received, dict):
            sections = list(Recipe.model_fields)
            return f"{name} is not a section of a recipe{_nearest(name, sections)}"
        return f"{name} is not a key of a recipe{_nearest(name, _keys())}"
    if details["type"] in ("model_type", "model_attributes_type"):
        return f"{name} must be a section, [{name}]; received {received!r}."
    rule = details["msg"].removeprefix("Value error, ").removesuffix(".")
    if details["type"] == "value_error":
        return f"{name}{':' if len(location) == 1 else ''} {rule}.".lstrip()
    return f"{name} {rule.replace('Input should be', 'must be')}; received {received!r}."


def _nearest(name: str, choices: list[str]) -> str:
    """`; did you mean training.epochs?`, or a full stop when no choice is near."""
    section, _, last = name.rpartition(".")
    here = [choice for choice in choices if choice.rpartition(".")[0] == section]
    # The right key in a wrong section, then a misspelling in this section, then one in any.
    for among, cutoff in ((choices, 1.0), (here, 0.6), (choices, 0.6)):
        keys = {choice.rpartition(".")[-1]: choice for choice in among}
        for match in difflib.get_close_matches(last, keys, n=1, cutoff=cutoff):
            return f"; did you mean {keys[match]}?"
    return "."

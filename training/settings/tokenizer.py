"""[tokenizer] of a recipe: how text becomes ids. recipes/*.toml say what the keys mean."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from .section import Names, Section

_ALWAYS = {"type", "shared"}
# What can be said to a type, beside `type` and `shared`.
_KEYS = {
    "sentencepiece": {
        *("model", "model_type", "vocabulary_size", "character_coverage"),
        *("byte_fallback", "normalization", "user_symbols"),
    },
    "wordpiece": {"model", "vocabulary_size", "character_coverage"},
    "byte": set[str](),
}


class TokenizerSettings(Section):
    """[tokenizer]: how text becomes ids; a key that its type has no use for is refused."""

    type: Literal["sentencepiece", "wordpiece", "byte"] = "sentencepiece"
    shared: bool = True
    model: Annotated[Names, Field(min_length=1, max_length=2)] | None = None
    model_type: Literal["unigram", "bpe"] = "unigram"
    vocabulary_size: Annotated[int, Field(gt=4)] = 8000
    character_coverage: Annotated[float, Field(gt=0, le=1)] = 1.0
    byte_fallback: bool = False
    normalization: Literal["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"] = "nmt_nfkc"
    user_symbols: list[str] | None = None

    @model_validator(mode="after")
    def _refuse_what_has_no_effect(self) -> "TokenizerSettings":
        useful = _useful(self.type, self.model is not None)
        for key in self.model_fields_set - useful:
            reason = f'has no meaning with type = "{self.type}"'
            if key in _KEYS[self.type]:
                reason = "is a choice of whoever made `model`"
            raise ValueError(f"`{key}` {reason}: take it out")
        if self.model is not None and len(self.model) != (1 if self.shared else 2):
            raise ValueError(
                "`model` must be one file when `shared` is true, else source and target; "
                f"received {len(self.model)}"
            )
        return self

    @model_serializer(mode="wrap")
    def _without_what_has_no_effect(
        self, serialize: SerializerFunctionWrapHandler
    ) -> dict[str, Any]:
        useful = _useful(self.type, self.model is not None)
        return {key: value for key, value in serialize(self).items() if key in useful}

    def options(self) -> dict[str, Any]:
        """Arguments of the tokenizer's `train`."""
        return self.model_dump(exclude={*_ALWAYS, "model"}, exclude_none=True)


def put_over(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """One [tokenizer] over another, without those keys of the other that its type or model ends."""
    both = {**under, **over}
    useful = _useful(both.get("type", "sentencepiece"), both.get("model") is not None)
    return {key: value for key, value in both.items() if key in useful or key in over}


def _useful(type_: Any, has_model: bool) -> set[str]:
    keys = _KEYS.get(type_, set(TokenizerSettings.model_fields))  # another type is refused later
    return {*_ALWAYS, *({"model"} & keys if has_model else keys)}

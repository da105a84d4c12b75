"""What every section of a recipe is, and the kinds of numbers in it."""

from typing import Annotated, Any

import pydantic
from pydantic import BaseModel, BeforeValidator, Field

Positive = Annotated[int, Field(ge=1)]
Rate = Annotated[float, Field(ge=0, lt=1)]
AboveZero = Annotated[float, Field(gt=0)]


def _names(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Names = Annotated[list[str], BeforeValidator(_names)]


class Section(BaseModel):
    """A section: no key that it does not know, no silent conversion ("3" is not 3), frozen."""

    model_config = pydantic.ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, protected_namespaces=()
    )

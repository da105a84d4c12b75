"""How a translator searches: what a recipe, the command line and a run directory say of it."""

import dataclasses

from tf_transformer.decoding import SEARCHES, BeamSearch, Search
from tf_transformer.errors import InputError


@dataclasses.dataclass(frozen=True, kw_only=True)
class DecodingOptions:
    """How a translator searches.

    Args:
        search: a name of SEARCHES, `"beam"` or `"greedy"`.
        num_beams: K of beam search.
        alpha: exponent of the length penalty.
        max_source_length: sources are cut at this many tokens, END counted.
        extra_length: an output has at most as many tokens as its source and these more
            (50 in section 6.1).
        alignment_layer: the decoder layer whose attention over the source aligns, from 0, or from
            -1 for the last.
    """

    search: str = "beam"
    num_beams: int = 4
    alpha: float = 0.6
    max_source_length: int = 512
    extra_length: int = 50
    alignment_layer: int = -2

    def __post_init__(self) -> None:
        if self.search not in list(SEARCHES):
            raise InputError(
                f"`search` must be one of {', '.join(SEARCHES)}. Received: search={self.search!r}"
            )
        for name, least in (("num_beams", 1), ("max_source_length", 2), ("extra_length", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise InputError(
                    f"`{name}` must be a whole number of at least {least}. "
                    f"Received: {name}={value!r}"
                )
        try:
            self.make()
        except ValueError as error:  # alpha's rule is the searches'
            raise InputError(str(error)) from error

    @property
    def max_target_length(self) -> int:
        """Most tokens that an output may have, END counted."""
        return self.max_source_length + self.extra_length

    def make(self) -> Search:
        """The search itself."""
        if self.search == "beam":
            return BeamSearch(self.num_beams, self.alpha)
        return SEARCHES[self.search](alpha=self.alpha)

"""How a translator searches: what a recipe, the command line and a run directory say of it."""

import dataclasses
from collections.abc import Sequence

import tensorflow as tf

from tf_transformer.config import UNK_ID
from tf_transformer.decoding import (
    SEARCHES,
    EndAtLimit,
    MinimumLength,
    NoRepeatNgram,
    RepetitionPenalty,
    Rule,
    Search,
    SuppressedTokens,
)
from tf_transformer.decoding.arguments import check_number, check_whole
from tf_transformer.errors import InputError

# What only one search knows, by its name; of the others it says nothing.
_OWN = {
    "greedy": (),
    "beam": ("num_beams",),
    "diverse": ("num_beams", "diversity"),
    "sampling": ("num_beams", "temperature", "top_k", "top_p", "seed"),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class DecodingOptions:
    """How a translator searches. Lengths are in tokens, END counted.

    Args:
        search: a name of SEARCHES, `"beam"`, `"greedy"`, `"diverse"` or `"sampling"`.
        num_beams: K, the beams of beam search, or how many outputs sampling draws.
        diversity: of diverse search, what a token costs for each earlier beam that chooses it.
        alpha: exponent of the length penalty.
        length_penalty: a name of LENGTH_PENALTIES, `"gnmt"`, `"power"` or `"none"`.
        coverage_penalty: beta of GNMT's coverage penalty, over what `alignment_layer` attends to.
        max_source_length: sources are cut at this many tokens.
        length_factor: an output has at most so many times the tokens of its source, rounded,
        extra_length: and these more (1 and 50 in section 6.1),
        max_length: but never more than this; None for no such limit.
        min_length: fewest tokens of an output.
        end_at_limit: whether an output that comes to its limit is made to end there, by END as
            its last token; else it stays unfinished.
        repetition_penalty: what the log-probability of a token counts that is there already; 1
            for no penalty, above 1 to discourage.
        no_repeat_ngram_size: so many tokens in a row never come twice; 0 for no such rule.
        suppress_unk: whether the unknown token never comes.
        suppressed_ids: other ids that never come.
        alignment_layer: the decoder layer whose attention over the source aligns, from 0, or from
            -1 for the last.
        temperature: of sampling, above 0.
        top_k: sampling draws from this many tokens; 0 for all.
        top_p: sampling draws from the likeliest tokens that have this share together.
        seed: of sampling. The same source draws the same in any batch.

    Raises:
        InputError: a value breaks its rule.
    """

    search: str = "beam"
    num_beams: int = 4
    diversity: float = 0.5
    alpha: float = 0.6
    length_penalty: str = "gnmt"
    coverage_penalty: float = 0.0
    max_source_length: int = 512
    length_factor: float = 1.0
    extra_length: int = 50
    max_length: int | None = None
    min_length: int = 0
    end_at_limit: bool = False
    repetition_penalty: float = 1.0
    no_repeat_ngram_size: int = 0
    suppress_unk: bool = False
    suppressed_ids: Sequence[int] = ()
    alignment_layer: int = -2
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "suppressed_ids", tuple(self.suppressed_ids))  # JSON has lists
        if self.search not in list(SEARCHES):
            raise InputError(
                f"`search` must be one of {', '.join(SEARCHES)}. Received: search={self.search!r}"
            )
        try:
            check_whole("max_source_length", self.max_source_length, 2)
            check_whole("extra_length", self.extra_length, 0)
            check_whole("max_length", 1 if self.max_length is None else self.max_length, 1)
            check_number("length_factor", self.length_factor, 0, 100)
            # Searches and rules check what is theirs; what is wrong is wrong for any search.
            for search in SEARCHES:
                self._make(search)
        except ValueError as error:
            raise InputError(str(error)) from error

    @property
    def max_target_length(self) -> int:
        """Most tokens that an output may have, END counted."""
        most = max(round(self.length_factor * self.max_source_length) + self.extra_length, 1)
        return most if self.max_length is None else min(most, self.max_length)

    def make(self) -> Search:
        """The search itself, with its rules."""
        return self._make(self.search)

    def max_lengths(self, source_lengths: tf.Tensor) -> tf.Tensor:
        """(B,) int32, the most tokens of each output, of the tokens of its source (B,) int32."""
        most = source_lengths
        if self.length_factor != 1:
            scaled = tf.round(self.length_factor * tf.cast(source_lengths, tf.float32))
            most = tf.cast(scaled, tf.int32)
        most = tf.maximum(most + self.extra_length, 1)
        return most if self.max_length is None else tf.minimum(most, self.max_length)

    def rules(self) -> list[Rule]:
        """Those that are asked for, in the order of RULES."""
        suppressed = [*self.suppressed_ids, *([UNK_ID] if self.suppress_unk else [])]
        rules: list[Rule] = []
        if self.repetition_penalty != 1:
            rules.append(RepetitionPenalty(self.repetition_penalty))
        if self.no_repeat_ngram_size != 0:
            rules.append(NoRepeatNgram(self.no_repeat_ngram_size))
        if suppressed:
            rules.append(SuppressedTokens(suppressed))
        if self.min_length != 0:
            rules.append(MinimumLength(self.min_length))
        if self.end_at_limit:
            rules.append(EndAtLimit())
        return rules

    def _make(self, search: str) -> Search:
        own = {name: getattr(self, name) for name in _OWN[search]}
        return SEARCHES[search](
            alpha=self.alpha,
            length_penalty=self.length_penalty,
            coverage_penalty=self.coverage_penalty,
            rules=self.rules(),
            **own,
        )

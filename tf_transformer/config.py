"""The sizes of a Transformer: one frozen record, and every row of the paper's Table 3."""

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

from tf_transformer.errors import InputError

PAD_ID, UNK_ID, START_ID, END_ID = 0, 1, 2, 3

# Written out, not imported: the command line reads this file without loading Keras.
# tests/test_config.py holds it equal to the table in layers/positions.py.
POSITION_NAMES = ("sinusoidal", "sinusoidal_halves", "learned", "relative", "rotary", "none")
TIES = ("three_way", "two_way", "none")
ACTIVATIONS = ("relu", "gelu", "swish")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """All that `build_transformer` needs to know; the defaults are the paper's base model.

    Args:
        source_vocabulary_size: rows of the source table.
        target_vocabulary_size: rows of the target table, V; equal to the source's when
            `tie_embeddings="three_way"`.
        num_layers: encoder layers (the paper's N), and decoder layers unless given.
        num_decoder_layers: decoder layers; default `num_layers`.
        hidden_dim: width of the model, D (the paper's d_model).
        num_heads: attention heads, N in shapes (the paper's h).
        head_dim: width of a query and key head, H (d_k); default `hidden_dim // num_heads`.
        value_dim: width of a value head (d_v); default `hidden_dim // num_heads`.
        intermediate_dim: inner width of the feed-forward, F (d_ff).
        activation: `"relu"` (the paper), `"gelu"` or `"swish"`.
        gated: multiply by a second projection (GLU variants, arXiv 2002.05202).
        dropout: rate on each sublayer's output (P_drop, section 5.4).
        embedding_dropout: rate on embeddings plus positions; default `dropout` (section 5.4).
        attention_dropout: rate on attention weights; 0, as the paper names none.
        intermediate_dropout: rate inside the feed-forward; 0, as the paper names none.
        position: `"sinusoidal"` (section 3.5), `"sinusoidal_halves"`, `"learned"` (Table 3, E),
            `"relative"` (arXiv 1803.02155), `"rotary"` (arXiv 2104.09864) or `"none"`.
        max_positions: rows of a learned position table; the other schemes have no maximum.
        max_relative_distance: clipping distance k of `"relative"`.
        norm_first: LayerNorm before each sublayer and once after the stack (pre-norm), instead of
            after each residual sum as in the paper.
        layer_norm_epsilon: epsilon of every LayerNorm.
        attention_bias: biases in the attention projections.
        output_bias: a bias on the logits.
        tie_embeddings: `"three_way"` (one table, section 3.4), `"two_way"` (target table and
            output share, the source has its own) or `"none"`.
        pad_vocabulary_to: tables are padded to a multiple of this; the logits never show the
            extra rows.

    Raises:
        InputError: a value breaks its rule; the message names field, rule and value.
    """

    source_vocabulary_size: int
    target_vocabulary_size: int
    num_layers: int = 6
    num_decoder_layers: int | None = None
    hidden_dim: int = 512
    num_heads: int = 8
    head_dim: int | None = None
    value_dim: int | None = None
    intermediate_dim: int = 2048
    activation: str = "relu"
    gated: bool = False
    dropout: float = 0.1
    embedding_dropout: float | None = None
    attention_dropout: float = 0.0
    intermediate_dropout: float = 0.0
    position: str = "sinusoidal"
    max_positions: int = 512
    max_relative_distance: int = 16
    norm_first: bool = False
    layer_norm_epsilon: float = 1e-6
    attention_bias: bool = True
    output_bias: bool = False
    tie_embeddings: str = "three_way"
    pad_vocabulary_to: int = 1

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            _check_field(field.name, getattr(self, field.name))
        for name in ("source_vocabulary_size", "target_vocabulary_size"):
            # Sizes often arrive as NumPy or tensor scalars; the config holds plain numbers.
            object.__setattr__(self, name, int(getattr(self, name)))
        if self.hidden_dim % self.num_heads and None in (self.head_dim, self.value_dim):
            raise InputError(
                "`hidden_dim` must be divisible by `num_heads` unless `head_dim` and `value_dim` "
                f"are given. Received: hidden_dim={self.hidden_dim}, num_heads={self.num_heads}"
            )
        if self.position == "rotary" and (self.head_dim or self.hidden_dim // self.num_heads) % 2:
            raise InputError(
                '`position="rotary"` turns pairs of numbers, so `head_dim` must be even. '
                f"Received: head_dim={self.head_dim or self.hidden_dim // self.num_heads}"
            )
        if self.position == "sinusoidal_halves" and (self.hidden_dim % 2 or self.hidden_dim < 4):
            raise InputError(
                '`position="sinusoidal_halves"` needs an even `hidden_dim` of at least 4. '
                f"Received: hidden_dim={self.hidden_dim}"
            )
        if (
            self.tie_embeddings == "three_way"
            and self.source_vocabulary_size != self.target_vocabulary_size
        ):
            raise InputError(
                '`tie_embeddings="three_way"` needs one vocabulary for both sides. Received: '
                f"source_vocabulary_size={self.source_vocabulary_size}, "
                f"target_vocabulary_size={self.target_vocabulary_size}"
            )

    @classmethod
    def from_preset(cls, preset: str, **fields: Any) -> "TransformerConfig":
        """The preset's sizes with `fields` over them.

        >>> TransformerConfig.from_preset(
        ...     "big", source_vocabulary_size=37000, target_vocabulary_size=37000
        ... ).hidden_dim
        1024
        """
        if preset not in PRESETS:
            raise InputError(
                f"`preset` must be one of {', '.join(PRESETS)}. Received: preset={preset!r}"
            )
        return cls(**{**PRESETS[preset], **fields})

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Writes every field, beside and renamed."""
        beside = Path(f"{os.fspath(path)}.writing")
        beside.write_text(json.dumps(dataclasses.asdict(self), indent=2) + "\n", encoding="utf-8")
        os.replace(beside, path)

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> "TransformerConfig":
        """Reads what `to_json` wrote; InputError when the file is broken or of other fields."""
        try:
            fields = json.loads(Path(path).read_text(encoding="utf-8"))
            return cls(**fields)
        except (OSError, UnicodeDecodeError, json.JSONDecodeError, TypeError) as error:
            raise InputError(f"{path} is not a model configuration: {error}") from error


def _is_whole(value: Any) -> bool:
    # NumPy and tensor scalars too; text and truth values convert as well, but are mistakes.
    try:
        return not isinstance(value, (str, bool)) and float(value).is_integer()
    except (TypeError, ValueError):
        return False


def _check_field(name: str, value: Any) -> None:
    rates = ("dropout", "embedding_dropout", "attention_dropout", "intermediate_dropout")
    choices = {"position": POSITION_NAMES, "tie_embeddings": TIES, "activation": ACTIVATIONS}
    if value is None and name in ("num_decoder_layers", "head_dim", "value_dim", rates[1]):
        return
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if name in choices:
        ok, rule = value in choices[name], "one of " + ", ".join(choices[name])
    elif name in rates:
        ok, rule = is_number and 0 <= value < 1, "a number of at least 0 and below 1"
    elif name == "layer_norm_epsilon":
        ok, rule = is_number and 0 < value < 1, "a number above 0 and below 1"
    elif name in ("gated", "norm_first", "attention_bias", "output_bias"):
        ok, rule = isinstance(value, bool), "true or false"
    elif name.endswith("vocabulary_size"):
        ok, rule = _is_whole(value) and value > END_ID, f"a whole number above {END_ID}"
    else:
        ok = isinstance(value, int) and is_number and value >= 1
        rule = "a whole number of at least 1"
    if not ok:
        raise InputError(f"`{name}` must be {rule}. Received: {name}={value!r}")


PRESETS: dict[str, dict[str, Any]] = {
    # The size that small corpora like (fairseq's tiny; Wu et al. 2021).
    "tiny": dict(num_layers=4, hidden_dim=128, intermediate_dim=256, num_heads=4, dropout=0.3),
    # Table 3. A row names what differs from base.
    "base": {},
    "table3_a_1_head": dict(num_heads=1),
    "table3_a_4_heads": dict(num_heads=4),
    "table3_a_16_heads": dict(num_heads=16),
    "table3_a_32_heads": dict(num_heads=32),
    "table3_b_key_16": dict(head_dim=16),
    "table3_b_key_32": dict(head_dim=32),
    "table3_c_2_layers": dict(num_layers=2),
    "table3_c_4_layers": dict(num_layers=4),
    "table3_c_8_layers": dict(num_layers=8),
    "table3_c_hidden_256": dict(hidden_dim=256),
    "table3_c_hidden_1024": dict(hidden_dim=1024),
    "table3_c_intermediate_1024": dict(intermediate_dim=1024),
    "table3_c_intermediate_4096": dict(intermediate_dim=4096),
    "table3_d_dropout_0": dict(dropout=0.0),
    "table3_d_dropout_0.2": dict(dropout=0.2),
    # The two label-smoothing rows of D are base models; the rate is a setting of training.
    "table3_d_smoothing_0": {},
    "table3_d_smoothing_0.2": {},
    "table3_e_learned": dict(position="learned"),
    "big": dict(hidden_dim=1024, intermediate_dim=4096, num_heads=16, dropout=0.3),
}

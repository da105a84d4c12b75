"""The variants of encoder and decoder that their tests run through, each against the oracle."""

from typing import Any

import numpy as np

from tests import oracle

D, F, N = 12, 20, 3

VARIANTS: dict[str, dict[str, Any]] = {
    "the paper": {},
    "pre-norm": {"norm_first": True},
    "positions by halves": {"position": "sinusoidal_halves"},
    "learned positions": {"position": "learned"},
    "relative positions": {"position": "relative"},
    "relative positions, pre-norm": {"position": "relative", "norm_first": True},
    "rotary positions": {"position": "rotary"},
    "rotary positions, pre-norm": {"position": "rotary", "norm_first": True},
    "no positions": {"position": "none"},
    "gelu": {"activation": "gelu"},
    "swish, gated": {"activation": "swish", "gated": True},
    "no attention biases": {"attention_bias": False},
    "own head sizes": {"head_dim": 6, "value_dim": 5},
    "another epsilon": {"layer_norm_epsilon": 1e-2},
    "all at once": {
        "position": "learned",
        "norm_first": True,
        "activation": "gelu",
        "gated": True,
        "attention_bias": False,
        "head_dim": 6,
        "value_dim": 5,
    },
}
# Where running all of them would say no more.
FEW = ["the paper", "relative positions", "rotary positions, pre-norm", "all at once"]


def sizes(variant: str, **arguments: Any) -> dict[str, Any]:
    """The constructor's arguments of Encoder and Decoder but for the number of layers."""
    return {
        "num_heads": N,
        "intermediate_dim": F,
        "position": "sinusoidal",
        **VARIANTS[variant],
        **arguments,
    }


def setting(variant: str) -> oracle.Setting:
    """The same for the oracle."""
    arguments = sizes(variant)
    return oracle.Setting(
        norm_first=arguments.get("norm_first", False),
        epsilon=arguments.get("layer_norm_epsilon", 1e-6),
        activation=arguments.get("activation", "relu"),
        position=arguments["position"],
    )


def with_positions(x: np.ndarray, stack: Any) -> np.ndarray:
    """What the stack adds to its embeddings, by the oracle."""
    scheme = type(stack.absolute).__name__
    if scheme == "LearnedPositions":
        return oracle.add_positions(x, "learned", np.asarray(stack.absolute.positions.value))
    named = {"SinusoidalPositions": "sinusoidal", "SinusoidalHalves": "sinusoidal_halves"}
    return oracle.add_positions(x, named.get(scheme, "none"))


def layer_parameters(variant: str, attentions: int) -> int:
    """Numbers in the weights of one layer: its attentions, feed-forward and LayerNorms."""
    arguments = sizes(variant)
    key, value = arguments.get("head_dim", D // N), arguments.get("value_dim", D // N)
    kernels = 2 * D * N * key + D * N * value + N * value * D
    biases = 2 * N * key + N * value + D if arguments.get("attention_bias", True) else 0
    tables = 2 * (2 * 16 + 1) * key if arguments["position"] == "relative" else 0
    inner = (D * F + F) * (2 if arguments.get("gated") else 1)
    norms = (attentions + 1) * 2 * D
    return attentions * (kernels + biases) + tables + inner + F * D + D + norms


def stack_parameters(variant: str, attentions: int, num_layers: int) -> int:
    """Numbers in the weights of a stack."""
    arguments = sizes(variant)
    table = 512 * D if arguments["position"] == "learned" else 0
    last = 2 * D if arguments.get("norm_first") else 0
    return num_layers * layer_parameters(variant, attentions) + table + last

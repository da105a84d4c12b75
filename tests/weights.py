"""Random weights for layers, and a layer's weights as the dictionaries of tests/oracle.py."""

import keras
import numpy as np


def fill_with_random(layer: keras.layers.Layer, seed: int, scale: float = 0.3) -> None:
    """Sets every weight to random numbers, biases too; LayerNorm scales spread around 1."""
    random = np.random.default_rng(seed)
    for weight in layer.weights:
        if weight.dtype == "float32":
            values = random.normal(0.0, scale, weight.shape)
            weight.assign(values + 1.0 if weight.name == "gamma" else values)


def attention_weights(layer: keras.layers.Layer) -> dict[str, np.ndarray]:
    """MultiHeadAttention: Dense kernels (D, N * H) as (D, N, H), the output's as (N, H, D)."""
    heads = layer.num_heads
    named = {}
    for name in ("query", "key", "value"):
        dense = getattr(layer, name)
        named[f"{name}_kernel"] = _split(dense.kernel, heads)
        if layer.use_bias:
            named[f"{name}_bias"] = _split(dense.bias, heads)
    output = np.asarray(layer.output_projection.kernel, "float64")
    named["output_kernel"] = output.reshape(heads, -1, output.shape[-1])
    if layer.use_bias:
        named["output_bias"] = np.asarray(layer.output_projection.bias, "float64")
    if hasattr(layer.position, "keys"):
        named["relative_keys"] = np.asarray(layer.position.keys, "float64")
        named["relative_values"] = np.asarray(layer.position.values, "float64")
    return named


def _split(weight: keras.Variable, heads: int) -> np.ndarray:
    values = np.asarray(weight, "float64")
    return values.reshape(*values.shape[:-1], heads, -1)


def norm_weights(norm: keras.layers.LayerNormalization) -> dict[str, np.ndarray]:
    """A LayerNorm's scale and shift."""
    return {"gamma": np.asarray(norm.gamma, "float64"), "beta": np.asarray(norm.beta, "float64")}


def feed_forward_weights(layer: keras.layers.Layer) -> dict[str, np.ndarray]:
    """FeedForward's two (gated: three) projections."""
    named = {}
    for name in ("inner", "gate", "outer") if layer.gated else ("inner", "outer"):
        dense = getattr(layer, name)
        named[f"{name}_kernel"] = np.asarray(dense.kernel, "float64")
        named[f"{name}_bias"] = np.asarray(dense.bias, "float64")
    return named


def layer_weights(layer: keras.layers.Layer) -> dict[str, dict]:
    """EncoderLayer or DecoderLayer."""
    named = {
        "self_attention": attention_weights(layer.self_attention),
        "self_attention_norm": norm_weights(layer.self_attention_residual.norm),
        "feed_forward": feed_forward_weights(layer.feed_forward),
        "feed_forward_norm": norm_weights(layer.feed_forward_residual.norm),
    }
    if hasattr(layer, "cross_attention"):
        named["cross_attention"] = attention_weights(layer.cross_attention)
        named["cross_attention_norm"] = norm_weights(layer.cross_attention_residual.norm)
    return named


def stack_weights(stack: keras.layers.Layer) -> dict:
    """Encoder or Decoder."""
    named: dict = {"layers": [layer_weights(layer) for layer in stack.blocks]}
    if stack.last_norm is not None:
        named["norm"] = norm_weights(stack.last_norm)
    return named


def model_weights(model: keras.Model) -> dict:
    """What build_transformer makes, however its tables are tied."""
    names = [layer.name for layer in model.layers]
    shared = "embedding" if "embedding" in names else None
    source = model.get_layer(shared or "encoder_embedding")
    target = model.get_layer(shared or "decoder_embedding")
    size = target.vocabulary_size  # the padded rows behind it must not show
    output = target.table if target.tie_weights else np.transpose(target.projection)
    named = {
        "encoder_table": np.asarray(source.table, "float64")[: source.vocabulary_size],
        "decoder_table": np.asarray(target.table, "float64")[:size],
        "output_table": np.asarray(output, "float64")[:size],
        "encoder": stack_weights(model.get_layer("encoder")),
        "decoder": stack_weights(model.get_layer("decoder")),
    }
    if target.output_bias:
        named["output_bias"] = np.asarray(target.bias, "float64")[:size]
    for side in ("encoder", "decoder"):
        position = model.get_layer(side).absolute
        if hasattr(position, "positions"):
            named[f"{side}_positions"] = np.asarray(position.positions, "float64")
    return named

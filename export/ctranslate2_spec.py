"""The weights of a Transformer by the names that CTranslate2 gives them."""

from typing import Any

import numpy as np

from tf_transformer.config import PAD_ID, START_ID
from tf_transformer.errors import InputError
from tf_transformer.model import embeddings_of
from tf_transformer.translator import Translator

_NEVER = -1e9  # a bias that keeps PAD and START out of every output, as our searches do


def make_spec(translator: Translator, max_positions: int) -> Any:
    """A `ctranslate2.specs.TransformerSpec` with the weights and vocabularies of a translator.

    Args:
        translator: in float32.
        max_positions: least rows of the position table, for schemes that add one.

    Raises:
        InputError: CTranslate2 is missing or has no such model; the message names what it lacks.
    """
    specs = _specs()
    model = translator.model
    encoder, decoder = model.get_layer("encoder"), model.get_layer("decoder")
    source, target = embeddings_of(model)
    _refuse_what_it_lacks(encoder, source.hidden_dim)
    spec = specs.TransformerSpec(
        specs.TransformerEncoderSpec(encoder.num_layers, encoder.num_heads, **_options(encoder)),
        specs.TransformerDecoderSpec(
            decoder.num_layers,
            decoder.num_heads,
            **_options(decoder),
            alignment_layer=translator.alignment_layer,
            alignment_heads=decoder.num_heads,
        ),
    )
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = encoder.layer_norm_epsilon
    names = translator.tokenizers.source.vocabulary(), translator.tokenizers.target.vocabulary()
    unknown, start, end = names[1][1:4]
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = unknown, start, end
    spec.config.decoder_start_token = start
    spec.register_source_vocabulary(names[0])
    spec.register_target_vocabulary(names[1])
    options = translator.options
    rows = max(max_positions, options.max_source_length, options.max_target_length)
    for to, stack in ((spec.encoder, encoder), (spec.decoder, decoder)):
        if hasattr(to, "position_encodings"):
            to.position_encodings.encodings = _positions(stack, rows, source.hidden_dim)
        _fill_stack(to, stack)
    spec.encoder.embeddings[0].weight = _table(source)
    spec.decoder.embeddings.weight = _table(target)
    _fill_projection(spec.decoder.projection, target)
    return spec


def _specs() -> Any:
    try:
        from ctranslate2 import specs
    except ImportError as error:
        raise InputError(
            "CTranslate2 is not installed: pip install 'tf_transformer[ctranslate2]'."
        ) from error
    return specs


def _refuse_what_it_lacks(stack: Any, width: int) -> None:
    attention = stack.blocks[0].self_attention
    widths = attention.query.units, attention.value.units, width
    if len(set(widths)) > 1:
        raise InputError(
            "CTranslate2 needs heads that divide `hidden_dim`: num_heads * head_dim = num_heads * "
            f"value_dim = hidden_dim. Received: {widths[0]}, {widths[1]} and {widths[2]}"
        )


def _options(stack: Any) -> dict[str, Any]:
    from ctranslate2.specs import common_spec

    activations = common_spec.Activation
    known = {"relu": activations.RELU, "gelu": activations.GELU, "silu": activations.SWISH}
    scheme = type(stack.position).__name__
    return {
        "pre_norm": stack.norm_first,
        "activation": known[stack.activation.__name__],
        "ffn_glu": stack.gated,
        "relative_position": scheme == "RelativePositions",
        # 0 turns all dimensions, pair by pair as ours.
        "rotary_dim": 0 if scheme == "RotaryPositions" else None,
    }


def _fill_stack(spec: Any, stack: Any) -> None:
    if stack.norm_first:
        _fill_norm(spec.layer_norm, stack.last_norm)
    for to, block in zip(spec.layer, stack.blocks, strict=True):
        _fill_attention(to.self_attention, block.self_attention, fused=3)
        _fill_norm(to.self_attention.layer_norm, block.self_attention_residual.norm)
        if hasattr(to, "attention"):
            _fill_attention(to.attention, block.cross_attention, fused=2)
            _fill_norm(to.attention.layer_norm, block.cross_attention_residual.norm)
        _fill_linear(to.ffn.linear_0, block.feed_forward.inner)
        if stack.gated:
            _fill_linear(to.ffn.linear_0_noact, block.feed_forward.gate)
        _fill_linear(to.ffn.linear_1, block.feed_forward.outer)
        _fill_norm(to.ffn.layer_norm, block.feed_forward_residual.norm)


def _positions(stack: Any, rows: int, width: int) -> np.ndarray:
    """What the scheme adds to a sentence of zeros, (rows, D): nothing if it is of attention."""
    if stack.absolute is None:
        return np.zeros((rows, width), np.float32)
    return np.asarray(stack.absolute(np.zeros((1, rows, width), np.float32)))[0]


def _fill_attention(spec: Any, attention: Any, fused: int) -> None:
    """Query, key and value in one product (`fused` 3), or key and value in one (2)."""
    inputs = [attention.query, attention.key, attention.value]
    groups = [inputs] if fused == 3 else [inputs[:1], inputs[1:]]
    for linear, group in zip(spec.linear, groups, strict=False):
        _fill_linear(linear, *group)
    _fill_linear(spec.linear[-1], attention.output_projection)
    if hasattr(spec, "relative_position_keys"):
        spec.relative_position_keys = _array(attention.position.keys)
        spec.relative_position_values = _array(attention.position.values)


def _fill_linear(spec: Any, *layers: Any) -> None:
    spec.weight = np.concatenate([_array(layer.kernel).T for layer in layers])
    if layers[0].use_bias:
        spec.bias = np.concatenate([_array(layer.bias) for layer in layers])


def _fill_norm(spec: Any, norm: Any) -> None:
    spec.gamma, spec.beta = _array(norm.gamma), _array(norm.beta)


def _table(embedding: Any) -> np.ndarray:
    return _array(embedding.table)[: embedding.vocabulary_size]


def _fill_projection(spec: Any, embedding: Any) -> None:
    size = embedding.vocabulary_size
    spec.weight = np.ascontiguousarray(_array(embedding.output_kernel()).T[:size])
    bias = _array(embedding.bias)[:size].copy() if embedding.output_bias else np.zeros(size)
    bias[[PAD_ID, START_ID]] = _NEVER
    spec.bias = bias.astype(np.float32)


def _array(variable: Any) -> np.ndarray:
    return np.asarray(variable, dtype=np.float32)

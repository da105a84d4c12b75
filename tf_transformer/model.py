"""Figure 1 of the paper in one function."""

from collections.abc import Iterator
from contextlib import contextmanager

import keras

from tf_transformer.config import TransformerConfig
from tf_transformer.layers import (
    POSITIONS,
    Decoder,
    DecoderAttention,
    Encoder,
    EncoderAttention,
    TokenEmbedding,
    padding_mask,
)


def build_transformer(config: TransformerConfig) -> keras.Model:
    """The whole Transformer as a functional model.

    Inputs are int32 ids, 0 = pad: `encoder_token_ids` (B, S), the source with END, and
    `decoder_token_ids` (B, T), the target shifted right behind START. The output is float32
    logits (B, T, V). Layers are named `embedding` (or `encoder_embedding`, `decoder_embedding`),
    `encoder`, `decoder`.

    >>> model = build_transformer(
    ...     TransformerConfig.from_preset(
    ...         "tiny", source_vocabulary_size=50, target_vocabulary_size=50
    ...     )
    ... )
    >>> model.output_shape
    (None, None, 50)
    """
    encoder_token_ids = keras.Input((None,), dtype="int32", name="encoder_token_ids")
    decoder_token_ids = keras.Input((None,), dtype="int32", name="decoder_token_ids")
    encoder_embedding, decoder_embedding = _embeddings(config)
    encoder_mask = padding_mask(encoder_token_ids)

    encoder_output = Encoder(config.num_layers, name="encoder", **_sizes(config))(
        encoder_embedding(encoder_token_ids), padding_mask=encoder_mask
    )
    num_decoder_layers = config.num_decoder_layers or config.num_layers
    decoder_output = Decoder(num_decoder_layers, name="decoder", **_sizes(config))(
        decoder_embedding(decoder_token_ids),
        encoder_output,
        padding_mask=padding_mask(decoder_token_ids),
        encoder_padding_mask=encoder_mask,
    )
    logits = decoder_embedding(decoder_output, reverse=True)
    return keras.Model(
        {"encoder_token_ids": encoder_token_ids, "decoder_token_ids": decoder_token_ids},
        logits,
        name="transformer",
    )


@contextmanager
def under_policy(policy: str) -> Iterator[None]:
    """What is built inside has this Keras dtype policy, such as `"mixed_bfloat16"`."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def embeddings_of(model: keras.Model) -> tuple[TokenEmbedding, TokenEmbedding]:
    """The encoder's and the decoder's embedding, one layer twice where they share."""
    shared = any(layer.name == "embedding" for layer in model.layers)
    names = ("embedding", "embedding") if shared else ("encoder_embedding", "decoder_embedding")
    return model.get_layer(names[0]), model.get_layer(names[1])


def build_attention_model(model: keras.Model) -> keras.Model:
    """A second functional model over the same weights whose outputs are the attention weights.

    Same inputs as `model`, from `build_transformer` or a `.keras` file of one. The outputs are
    `encoder` (B, L, N, S, S), `decoder` (B, L, N, T, T) and `cross` (B, L, N, T, S): softmax
    weights of layer and head, float32, without dropout; row t tells where query t looks. L is the
    number of layers of that stack.

    >>> model = build_transformer(
    ...     TransformerConfig.from_preset(
    ...         "tiny", source_vocabulary_size=50, target_vocabulary_size=50
    ...     )
    ... )
    >>> build_attention_model(model).output["cross"].shape
    (None, 4, 4, None, None)
    """
    encoder_embedding, decoder_embedding = embeddings_of(model)
    encoder, decoder = model.get_layer("encoder"), model.get_layer("decoder")
    encoder_token_ids = keras.Input((None,), dtype="int32", name="encoder_token_ids")
    decoder_token_ids = keras.Input((None,), dtype="int32", name="decoder_token_ids")
    encoder_mask, decoder_mask = padding_mask(encoder_token_ids), padding_mask(decoder_token_ids)

    # Layers of their own, not the stacks' calls: those would drop out with `training=True`.
    output, weights = EncoderAttention(encoder, name="encoder_attention")(
        encoder_embedding(encoder_token_ids), padding_mask=encoder_mask
    )
    own, cross = DecoderAttention(decoder, name="decoder_attention")(
        decoder_embedding(decoder_token_ids),
        output,
        padding_mask=decoder_mask,
        encoder_padding_mask=encoder_mask,
    )
    return keras.Model(
        {"encoder_token_ids": encoder_token_ids, "decoder_token_ids": decoder_token_ids},
        {"encoder": weights, "decoder": own, "cross": cross},
        name="attention",
    )


def _embeddings(config: TransformerConfig) -> tuple[TokenEmbedding, TokenEmbedding]:
    def embedding(name: str, vocabulary_size: int, **output: bool) -> TokenEmbedding:
        return TokenEmbedding(
            vocabulary_size,
            config.hidden_dim,
            pad_vocabulary_to=config.pad_vocabulary_to,
            name=name,
            **output,
        )

    output = dict(tie_weights=config.tie_embeddings != "none", output_bias=config.output_bias)
    if config.tie_embeddings == "three_way":
        shared = embedding("embedding", config.target_vocabulary_size, **output)
        return shared, shared
    return (
        embedding("encoder_embedding", config.source_vocabulary_size),
        embedding("decoder_embedding", config.target_vocabulary_size, **output),
    )


def _sizes(config: TransformerConfig) -> dict:
    arguments = {
        "learned": {"max_positions": config.max_positions},
        "relative": {"max_distance": config.max_relative_distance},
    }
    scheme = POSITIONS[config.position]
    position = None if scheme is None else scheme(**arguments.get(config.position, {}))
    if config.embedding_dropout is None:
        embedding_dropout = config.dropout
    else:
        embedding_dropout = config.embedding_dropout
    return dict(
        num_heads=config.num_heads,
        intermediate_dim=config.intermediate_dim,
        head_dim=config.head_dim,
        value_dim=config.value_dim,
        activation=config.activation,
        gated=config.gated,
        dropout=config.dropout,
        embedding_dropout=embedding_dropout,
        attention_dropout=config.attention_dropout,
        intermediate_dropout=config.intermediate_dropout,
        norm_first=config.norm_first,
        layer_norm_epsilon=config.layer_norm_epsilon,
        attention_bias=config.attention_bias,
        position=position,
    )

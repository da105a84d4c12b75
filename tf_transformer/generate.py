"""What a search finds of a model: cached steps, all hypotheses of a sentence over one source."""

from typing import Any

import keras
import tensorflow as tf

from tf_transformer.decoding import Search, SearchResult
from tf_transformer.layers import padding_mask
from tf_transformer.model import embeddings_of


def generate(
    model: keras.Model,
    search: Search,
    encoder_token_ids: tf.Tensor,
    max_lengths: tf.Tensor,
    alignment_layer: int | None = None,
) -> SearchResult:
    """Searches outputs for B sources.

    Args:
        model: from `build_transformer` or a `.keras` file of one, in float32.
        search: of `SEARCHES`.
        encoder_token_ids: (B, S) int32 with END, PAD behind.
        max_lengths: (B,) int32, most tokens of each output.
        alignment_layer: the decoder layer whose attention over the source, the mean of its heads,
            is wanted as `extras["attention"]` (B, K, T, S): that with which a token was predicted.
    """
    encoder_embedding, embedding = embeddings_of(model)
    decoder, beams = model.get_layer("decoder"), search.num_beams
    mask = padding_mask(encoder_token_ids)
    encoder_output = model.get_layer("encoder")(
        encoder_embedding.embed(encoder_token_ids), padding_mask=mask, training=False
    )
    source = decoder.start(encoder_output, mask)
    kernel = embedding.output_kernel()
    shape = tf.shape(encoder_token_ids)
    rows, longest = shape[0] * beams, shape[1]

    def step(token_ids: tf.Tensor, cache: Any, index: tf.Tensor) -> Any:
        x = embedding.embed(tf.reshape(token_ids, [-1, beams]))  # (B, K, D)
        x, cache, weights = decoder.step(x, cache, index, source)
        logits = embedding.logits(tf.reshape(x, [-1, x.shape[-1]]), kernel)  # (R, V)
        if alignment_layer is None:
            return logits, cache
        attention = tf.reduce_mean(weights[alignment_layer].cross_attention, axis=1)  # (B, K, S)
        return logits, cache, {"attention": tf.reshape(attention, [rows, longest])}

    extras = None if alignment_layer is None else {"attention": tf.zeros([rows, longest])}
    return search(step, decoder.empty_cache(rows), max_lengths, extras=extras)

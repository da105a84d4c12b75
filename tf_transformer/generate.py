"""What a search finds of a model: cached steps, all hypotheses of a sentence over one source."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tf_transformer.config import PAD_ID
from tf_transformer.decoding import (
    RowOptions,
    Rule,
    SamplingSearch,
    Search,
    SearchResult,
    fingerprints,
)
from tf_transformer.layers import padding_mask
from tf_transformer.model import embeddings_of


def generate(
    model: keras.Model,
    search: Search,
    encoder_token_ids: tf.Tensor,
    max_lengths: tf.Tensor,
    *,
    alignment_layer: int | None = None,
    rows: RowOptions | None = None,
    rules: Sequence[Rule] = (),
    wanted: Any = None,
) -> SearchResult:
    """Searches outputs for B sources.

    Args:
        model: from `build_transformer` or a `.keras` file of one, in float32.
        search: of `SEARCHES`.
        encoder_token_ids: (B, S) int32 with END, PAD behind.
        max_lengths: (B,) int32, most tokens of each output.
        alignment_layer: the decoder layer whose attention over the source, the mean of its heads,
            is wanted as `extras["attention"]` (B, K, T, S): that with which a token was predicted.
        rows: what single rows ask for. The source mask is made from the ids; so are the seeds of
            sampling, unless given: a source draws the same in any batch.
        rules: beside those of `search`.
        wanted: so many of the best are read, see `Search`; a translation needs one.
    """
    encoder_embedding, embedding = embeddings_of(model)
    decoder, beams = model.get_layer("decoder"), search.num_beams
    mask = padding_mask(encoder_token_ids)
    encoder_output = model.get_layer("encoder")(
        encoder_embedding.embed(encoder_token_ids), padding_mask=mask, training=False
    )
    source = decoder.start(encoder_output, mask)
    kernel, joined = embedding.output_kernel(), decoder.join_projections()
    shape = tf.shape(encoder_token_ids)
    count, longest = shape[0] * beams, shape[1]

    def step(token_ids: tf.Tensor, cache: Any, index: tf.Tensor) -> Any:
        x = embedding.embed(tf.reshape(token_ids, [-1, beams]))  # (B, K, D)
        x, cache, weights = decoder.step(x, cache, index, source, joined=joined)
        logits = embedding.logits(tf.reshape(x, [-1, x.shape[-1]]), kernel)  # (R, V)
        if alignment_layer is None:
            return logits, cache
        attention = tf.reduce_mean(weights[alignment_layer].cross_attention, axis=1)  # (B, K, S)
        return logits, cache, {"attention": tf.reshape(attention, [count, longest])}

    extras = None if alignment_layer is None else {"attention": tf.zeros([count, longest])}
    rows = (rows or RowOptions())._replace(source_mask=mask)
    if rows.seeds is None and isinstance(search, SamplingSearch):
        rows = rows._replace(seeds=fingerprints(encoder_token_ids, PAD_ID))
    cache = decoder.empty_cache(count)
    return search(step, cache, max_lengths, extras=extras, rows=rows, rules=rules, wanted=wanted)

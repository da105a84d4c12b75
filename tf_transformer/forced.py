"""What a model says of given outputs: all positions in one pass (teacher forcing)."""

from typing import NamedTuple

import keras
import tensorflow as tf

from tf_transformer.config import START_ID
from tf_transformer.layers import padding_mask
from tf_transformer.model import embeddings_of


class Forced(NamedTuple):
    """Of outputs (B, T) over sources (B, S)."""

    token_log_probs: tf.Tensor  # (B, T) float32, 0 at PAD
    attention: tf.Tensor  # (B, T, S) float32, over the source, mean of one layer's heads


def force(
    model: keras.Model, encoder_token_ids: tf.Tensor, labels: tf.Tensor, alignment_layer: int
) -> Forced:
    """The log-probability of each token of given outputs, and where it looks.

    Equal to a search that is made to take them token by token.

    Args:
        model: from `build_transformer` or a `.keras` file of one, in float32.
        encoder_token_ids: (B, S) int32 with END, PAD behind.
        labels: (B, T) int32, the outputs, PAD behind.
        alignment_layer: whose attention to give; that with which a token was predicted.
    """
    encoder_embedding, embedding = embeddings_of(model)
    decoder = model.get_layer("decoder")
    mask = padding_mask(encoder_token_ids)
    encoder_output = model.get_layer("encoder")(
        encoder_embedding.embed(encoder_token_ids), padding_mask=mask, training=False
    )
    shifted = tf.pad(labels[:, :-1], [[0, 0], [1, 0]], constant_values=START_ID)
    x, weights = decoder.attend(
        embedding.embed(shifted), encoder_output, padding_mask(shifted), mask, training=False
    )
    # Of real tokens alone: in a batch, the logits are the largest tensor by far.
    places = tf.where(padding_mask(labels))  # (M, 2)
    logits = embedding.logits(tf.gather_nd(x, places), embedding.output_kernel())  # (M, V)
    chosen = tf.gather(logits, tf.gather_nd(labels, places), batch_dims=1)
    log_probs = chosen - tf.reduce_logsumexp(logits, axis=-1)
    token_log_probs = tf.scatter_nd(places, log_probs, tf.shape(labels, tf.int64))
    heads = weights[alignment_layer].cross_attention  # (B, N, T, S)
    return Forced(token_log_probs, tf.reduce_mean(heads, axis=1))

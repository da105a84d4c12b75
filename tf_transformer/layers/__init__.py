"""One Keras layer for each component of the paper.

Shapes everywhere: B batch, T query length, S key length, D hidden_dim, N heads, H head_dim,
F intermediate_dim, V vocabulary, K beams, R = B * K rows.
"""

from tf_transformer.layers.attention import MultiHeadAttention, scaled_dot_product_attention
from tf_transformer.layers.attention_weights import DecoderAttention, EncoderAttention
from tf_transformer.layers.decoder import Decoder
from tf_transformer.layers.decoder_layer import DecoderLayer
from tf_transformer.layers.embedding import TokenEmbedding
from tf_transformer.layers.encoder import Encoder, EncoderLayer
from tf_transformer.layers.feed_forward import FeedForward
from tf_transformer.layers.masks import attention_mask, causal_mask, padding_mask
from tf_transformer.layers.position_encoding import PositionEncoding
from tf_transformer.layers.positions import POSITIONS
from tf_transformer.layers.residual import Residual

__all__ = [
    "POSITIONS",
    "Decoder",
    "DecoderAttention",
    "DecoderLayer",
    "Encoder",
    "EncoderAttention",
    "EncoderLayer",
    "FeedForward",
    "MultiHeadAttention",
    "PositionEncoding",
    "Residual",
    "TokenEmbedding",
    "attention_mask",
    "causal_mask",
    "padding_mask",
    "scaled_dot_product_attention",
]

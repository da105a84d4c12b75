"""The paper in NumPy: "Attention Is All You Need" (1706.03762), to be read beside the PDF.

Everything is float64 and written for the eye, not for speed. Nothing here imports TensorFlow,
Keras or the package: a layer which agrees with this file agrees with the paper, not with itself.

Letters: B batch, T query length, S key length, D width (d_model), N heads, H head size (d_k),
F inner width (d_ff), V vocabulary. Masks are bool and True means "may look". Weights are plain
dictionaries of arrays, named as the functions below read them.
"""

import math
from typing import NamedTuple

import numpy as np

FULL = np.float64


# Section 3.1: residuals and layer normalisation


def layer_norm(x, weights, epsilon=1e-6):
    """Ba et al. 2016: zero mean and unit variance over the width, then scale and shift."""
    x = np.asarray(x, FULL)
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon) * weights["gamma"] + weights["beta"]


def residual(x, sublayer, norm, norm_first=False, epsilon=1e-6):
    """Post-norm LayerNorm(x + Sublayer(x)) as printed; pre-norm x + Sublayer(LayerNorm(x))."""
    if norm_first:
        return x + sublayer(layer_norm(x, norm, epsilon))
    return layer_norm(x + sublayer(x), norm, epsilon)


# Section 3.2: attention


def softmax(scores, mask=None):
    """Softmax over the last axis; hidden places get 0, and a row of nothing else only zeros."""
    scores = np.where(True if mask is None else mask, scores, -np.inf)
    highest = np.maximum(scores.max(axis=-1, keepdims=True), -1e300)  # finite in any row
    weights = np.exp(scores - highest)
    total = weights.sum(axis=-1, keepdims=True)
    return weights / np.where(total == 0.0, 1.0, total)


def scaled_dot_product_attention(query, key, value, mask=None):
    """Equation 1, softmax(Q K^T / sqrt(d_k)) V, for (..., T, H) and twice (..., S, H)."""
    query, key, value = (np.asarray(tensor, FULL) for tensor in (query, key, value))
    weights = softmax(query @ np.swapaxes(key, -1, -2) / math.sqrt(query.shape[-1]), mask)
    return weights @ value, weights


def relative_attention(query, key, value, mask, key_table, value_table):
    """Shaw et al. 2018 (1803.02155), equations 3 and 4: a vector for each distance j - i.

    Both tables have 2k + 1 rows; row k + clip(j - i, -k, k) is added to the key and to the value.
    """
    query, key, value = (np.asarray(tensor, FULL) for tensor in (query, key, value))
    clip = (len(key_table) - 1) // 2
    distance = np.arange(key.shape[-2])[None, :] - np.arange(query.shape[-2])[:, None]
    row = clip + np.clip(distance, -clip, clip)  # (T, S)
    keys = key[..., None, :, :] + key_table[row]  # (..., T, S, H)
    values = value[..., None, :, :] + value_table[row]
    scores = (query[..., :, None, :] * keys).sum(axis=-1) / math.sqrt(query.shape[-1])
    weights = softmax(scores, mask)
    return (weights[..., None] * values).sum(axis=-2), weights


def multi_head_attention(x, memory, weights, mask=None, position="none"):
    """Section 3.2.2: project h times, attend, join, project.

    x is (B, T, D), memory (B, S, D), mask (B, T, S). Kernels are (D, N, H) for query, key and value
    and (N, H, D) for the output; biases may be missing.
    Returns the output (B, T, D) and the attention weights (B, N, T, S).
    """

    def heads(tensor, name):
        projected = np.einsum("btd,dnh->bnth", np.asarray(tensor, FULL), weights[f"{name}_kernel"])
        return projected + weights.get(f"{name}_bias", np.zeros(projected.shape[1::2]))[:, None, :]

    query, key, value = heads(x, "query"), heads(memory, "key"), heads(memory, "value")
    mask = None if mask is None else np.asarray(mask, bool)[:, None]  # the same for every head
    if position == "relative":
        tables = weights["relative_keys"], weights["relative_values"]
        context, attention = relative_attention(query, key, value, mask, *tables)
    else:
        if position == "rotary":
            query, key = rotary(query), rotary(key)
        context, attention = scaled_dot_product_attention(query, key, value, mask)
    output = np.einsum("bnth,nhd->btd", context, weights["output_kernel"])
    return output + weights.get("output_bias", 0.0), attention


def padding_mask(ids):
    """(B, S) True where there is a token; PAD is 0."""
    return np.asarray(ids) != 0


def causal_mask(length):
    """Section 3.2.3: (1, T, T), place t sees places 0 to t."""
    return np.tril(np.ones((1, length, length), bool))


# Section 3.3: position-wise feed-forward


def gelu(x):
    """Hendrycks & Gimpel 2016: x times the normal distribution function (exact)."""
    return (
        np.asarray(x, FULL) * 0.5 * (1.0 + np.vectorize(math.erf)(np.asarray(x) / math.sqrt(2.0)))
    )


ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0.0),
    "gelu": gelu,
    "swish": lambda x: x / (1.0 + np.exp(-x)),
}


def feed_forward(x, weights, activation="relu"):
    """Equation 2, max(0, x W1 + b1) W2 + b2; a gate (2002.05202) multiplies the inner part."""
    x = np.asarray(x, FULL)
    inner = ACTIVATIONS[activation](x @ weights["inner_kernel"] + weights["inner_bias"])
    if "gate_kernel" in weights:
        inner = inner * (x @ weights["gate_kernel"] + weights["gate_bias"])
    return inner @ weights["outer_kernel"] + weights["outer_bias"]


# Sections 3.4 and 3.5: embeddings, logits and positions


def embed(ids, table):
    """Rows of the table times sqrt(d_model)."""
    return np.asarray(table, FULL)[np.asarray(ids)] * math.sqrt(table.shape[1])


def logits(x, table, bias=0.0):
    """The pre-softmax projection shares the table (V, D) and isn't scaled."""
    return np.asarray(x, FULL) @ np.asarray(table, FULL).T + bias


def sinusoid(positions, width):
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)) and PE(pos, 2i+1) = cos of the same, interleaved."""
    column = np.arange(width)
    angle = np.asarray(positions, FULL)[:, None] / 10000.0 ** ((column - column % 2) / width)
    return np.where(column % 2 == 0, np.sin(angle), np.cos(angle))


def sinusoid_halves(positions, width):
    """get_timing_signal_1d of tensor2tensor: sines, then cosines, wavelengths 2 pi to 20000 pi."""
    half = width // 2
    rates = 10000.0 ** (-np.arange(half) / max(half - 1, 1))
    angle = np.asarray(positions, FULL)[:, None] * rates
    return np.concatenate([np.sin(angle), np.cos(angle)], axis=-1)


def rotary(x, offset=0):
    """RoFormer (2104.09864), equation 34: turn each pair (2i, 2i+1) of H by t * 10000^(-2i/H)."""
    x = np.asarray(x, FULL)
    places = offset + np.arange(x.shape[-2])
    angle = places[:, None] / 10000.0 ** (np.arange(0, x.shape[-1], 2) / x.shape[-1])
    even, odd = x[..., 0::2], x[..., 1::2]
    turned = np.zeros_like(x)
    turned[..., 0::2] = even * np.cos(angle) - odd * np.sin(angle)
    turned[..., 1::2] = odd * np.cos(angle) + even * np.sin(angle)
    return turned


def add_positions(x, position, table=None):
    """What is added to the embeddings: a sinusoid, learned rows, or nothing."""
    places = range(x.shape[1])
    if position == "sinusoidal":
        return x + sinusoid(places, x.shape[2])
    if position == "sinusoidal_halves":
        return x + sinusoid_halves(places, x.shape[2])
    if position == "learned":
        return x + np.asarray(table, FULL)[: x.shape[1]]
    return x


# Section 3.1 again: the two stacks and the whole (figure 1)


class Setting(NamedTuple):
    """What the variants of the paper choose; the defaults are the paper's."""

    norm_first: bool = False
    epsilon: float = 1e-6
    activation: str = "relu"
    position: str = "sinusoidal"  # only "relative" and "rotary" act inside self-attention


PAPER = Setting()


def block(x, layer, mask, setting, memory=None, memory_mask=None):
    """One layer of either stack; also returns its attention weights {"self": ..., "cross": ...}."""
    seen = {}

    def attend(h):
        output, seen["self"] = multi_head_attention(
            h, h, layer["self_attention"], mask, setting.position
        )
        return output

    def attend_across(h):
        cross = layer["cross_attention"]
        output, seen["cross"] = multi_head_attention(h, memory, cross, memory_mask)
        return output

    def transform(h):
        return feed_forward(h, layer["feed_forward"], setting.activation)

    how = setting.norm_first, setting.epsilon
    x = residual(x, attend, layer["self_attention_norm"], *how)
    if memory is not None:
        x = residual(x, attend_across, layer["cross_attention_norm"], *how)
    return residual(x, transform, layer["feed_forward_norm"], *how), seen


def encoder(x, mask, weights, setting=PAPER):
    """x (B, S, D), mask (B, S). Returns the output and every layer's attention weights."""
    mask = np.repeat(mask[:, None, :], x.shape[1], axis=1)  # (B, S, S)
    attentions = []
    for layer in weights["layers"]:
        x, seen = block(x, layer, mask, setting)
        attentions.append(seen)
    return last_norm(x, weights, setting), attentions


def decoder(x, mask, memory, memory_mask, weights, setting=PAPER):
    """x (B, T, D), mask (B, T), memory (B, S, D), memory_mask (B, S). Returns as the encoder."""
    mask = causal_mask(x.shape[1]) & mask[:, None, :]  # (B, T, T)
    memory_mask = np.repeat(memory_mask[:, None, :], x.shape[1], axis=1)  # (B, T, S)
    attentions = []
    for layer in weights["layers"]:
        x, seen = block(x, layer, mask, setting, memory, memory_mask)
        attentions.append(seen)
    return last_norm(x, weights, setting), attentions


def last_norm(x, weights, setting):
    """Pre-norm leaves the sums as they are, so each stack ends with one more LayerNorm."""
    return layer_norm(x, weights["norm"], setting.epsilon) if setting.norm_first else x


def transformer(encoder_ids, decoder_ids, weights, setting=PAPER):
    """Figure 1: ids (B, S) and (B, T) to logits (B, T, V)."""
    source = embed(encoder_ids, weights["encoder_table"])
    source = add_positions(source, setting.position, weights.get("encoder_positions"))
    target = embed(decoder_ids, weights["decoder_table"])
    target = add_positions(target, setting.position, weights.get("decoder_positions"))
    source_mask, target_mask = padding_mask(encoder_ids), padding_mask(decoder_ids)
    memory, _ = encoder(source, source_mask, weights["encoder"], setting)
    output, _ = decoder(target, target_mask, memory, source_mask, weights["decoder"], setting)
    return logits(output, weights["output_table"], weights.get("output_bias", 0.0))


# Section 5: training


def learning_rate(step, d_model, warmup_steps=4000):
    """Equation 3 for the n-th update, n = 1, 2, ..."""
    return d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)


def label_smoothed_cross_entropy(scores, labels, epsilon=0.1):
    """Section 5.4, a value a place: 1 - eps for the right class and eps / V for every class."""
    scores = np.asarray(scores, FULL)
    losses = np.zeros(np.shape(labels), FULL)
    for place in np.ndindex(*np.shape(labels)):
        row = scores[place] - scores[place].max()
        log_probability = row - math.log(np.exp(row).sum())
        losses[place] = -(1.0 - epsilon) * log_probability[labels[place]]
        losses[place] -= epsilon * log_probability.mean()
    return losses


def masked_mean(losses, labels):
    """The loss of a batch: the sum over real tokens divided by their number, 0 if there is none."""
    live = padding_mask(labels)
    return float(np.where(live, losses, 0.0).sum() / max(live.sum(), 1))

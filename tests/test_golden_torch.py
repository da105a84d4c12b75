"""Our stacks against PyTorch's nn.Transformer; tests/golden/make_torch_golden.py wrote its answers.

An opinion of the paper that is nobody's of this project; needs no torch.
"""

from pathlib import Path

import numpy as np
import pytest

from tf_transformer.layers import Decoder, Encoder

GOLDEN = np.load(Path(__file__).parent / "golden" / "torch_transformer.npz")
D_MODEL, HEADS, FFN, LAYERS = 16, 2, 32, 2


@pytest.fixture(scope="module", params=["post_norm", "pre_norm"])
def order(request):
    return request.param


@pytest.fixture(scope="module")
def stacks(order):
    """Our encoder and decoder with the weights of torch's."""
    arguments = {
        "num_heads": HEADS,
        "intermediate_dim": FFN,
        "norm_first": order == "pre_norm",
        "layer_norm_epsilon": 1e-6,
    }
    encoder, decoder = Encoder(LAYERS, **arguments), Decoder(LAYERS, **arguments)
    shape = (None, None, D_MODEL)
    encoder.build(shape)
    decoder.build(shape, shape)
    for name, stack in (("encoder", encoder), ("decoder", decoder)):
        for i, block in enumerate(stack.blocks):
            fill_block(block, Weights(f"{order}/{name}.layers.{i}"))
        if order == "pre_norm":
            fill(stack.last_norm, Weights(f"{order}/{name}").of("norm"))
    return encoder, decoder


class Weights:
    """Torch's arrays under a prefix; a linear map there is x W^T + b with W (out, in)."""

    def __init__(self, prefix):
        self.prefix = prefix

    def of(self, name, kernel="weight", bias="bias", rows=slice(None)):
        prefix = f"{self.prefix}.{name}"
        return GOLDEN[f"{prefix}.{kernel}"][rows].T, GOLDEN[f"{prefix}.{bias}"][rows]


def fill(layer, weights):
    layer.set_weights(list(weights))


def fill_attention(attention, weights, name):
    # in_proj holds query, key and value above each other.
    for i, projection in enumerate((attention.query, attention.key, attention.value)):
        rows = slice(i * D_MODEL, (i + 1) * D_MODEL)
        fill(projection, weights.of(name, "in_proj_weight", "in_proj_bias", rows))
    fill(attention.output_projection, weights.of(f"{name}.out_proj"))


def fill_block(block, weights):
    residuals = [block.self_attention_residual, block.feed_forward_residual]
    fill_attention(block.self_attention, weights, "self_attn")
    if hasattr(block, "cross_attention"):
        fill_attention(block.cross_attention, weights, "multihead_attn")
        residuals.insert(1, block.cross_attention_residual)
    fill(block.feed_forward.inner, weights.of("linear1"))
    fill(block.feed_forward.outer, weights.of("linear2"))
    for i, residual in enumerate(residuals):
        fill(residual.norm, weights.of(f"norm{i + 1}"))


def test_encoder_equals_torch(stacks, order):
    output = stacks[0](GOLDEN["source"], padding_mask=GOLDEN["source_mask"])
    live = GOLDEN["source_mask"]
    np.testing.assert_allclose(
        np.asarray(output)[live], GOLDEN[f"{order}/encoder_output"][live], atol=1e-5
    )


def test_encoder_and_decoder_equal_torch(stacks, order):
    encoder, decoder = stacks
    live = GOLDEN["target_mask"]
    memory = encoder(GOLDEN["source"], padding_mask=GOLDEN["source_mask"])
    output = decoder(
        GOLDEN["target"],
        memory,
        padding_mask=live,
        encoder_padding_mask=GOLDEN["source_mask"],
    )
    np.testing.assert_allclose(
        np.asarray(output)[live], GOLDEN[f"{order}/decoder_output"][live], atol=1e-5
    )


def test_cached_steps_equal_torch(stacks, order):
    encoder, decoder = stacks
    memory = encoder(GOLDEN["source"], padding_mask=GOLDEN["source_mask"])
    source = decoder.start(memory, GOLDEN["source_mask"])
    cache = decoder.empty_cache(len(memory))
    for index in range(GOLDEN["target"].shape[1]):
        x = GOLDEN["target"][:, index : index + 1]
        output, cache, _ = decoder.step(x, cache, index, source)
        live = GOLDEN["target_mask"][:, index]
        np.testing.assert_allclose(
            np.asarray(output)[live, 0],
            GOLDEN[f"{order}/decoder_output"][live, index],
            atol=1e-5,
        )


def test_the_golden_file_is_small_and_not_trivial(order):
    path = Path(__file__).parent / "golden" / "torch_transformer.npz"
    assert path.stat().st_size < 300_000
    assert not GOLDEN["source_mask"].all() and not GOLDEN["target_mask"].all()
    live = GOLDEN["target_mask"]
    assert GOLDEN[f"{order}/decoder_output"][live].std() > 0.3

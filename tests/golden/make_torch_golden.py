"""Make torch_transformer.npz: answers of PyTorch's nn.Transformer for tests/test_golden_torch.py.

Needs torch (not a dependency of the project; the committed file was made with 2.13.0):

    python -m venv /tmp/torchvenv && /tmp/torchvenv/bin/pip install torch numpy
    /tmp/torchvenv/bin/python tests/golden/make_torch_golden.py

Weights are drawn in float32 and everything is computed in float64. nn.Transformer puts a last
LayerNorm behind both stacks even in post-norm, which the paper does not; the post-norm stacks here
are made without it.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

D_MODEL, HEADS, FFN, LAYERS, EPSILON = 16, 2, 32, 2, 1e-6
SOURCE_LENGTHS, TARGET_LENGTHS = [7, 3, 1], [4, 5, 2]


def make_transformer(norm_first: bool, seed: int) -> nn.Transformer:
    """nn.Transformer without dropout; all parameters random, LayerNorm scales and biases too."""
    setting = {
        "d_model": D_MODEL,
        "nhead": HEADS,
        "dim_feedforward": FFN,
        "dropout": 0.0,
        "layer_norm_eps": EPSILON,
        "batch_first": True,
        "norm_first": norm_first,
    }

    def last_norm():
        return nn.LayerNorm(D_MODEL, eps=EPSILON) if norm_first else None

    model = nn.Transformer(
        **setting,
        custom_encoder=nn.TransformerEncoder(
            nn.TransformerEncoderLayer(**setting), LAYERS, last_norm(), enable_nested_tensor=False
        ),
        custom_decoder=nn.TransformerDecoder(
            nn.TransformerDecoderLayer(**setting), LAYERS, last_norm()
        ),
    ).double()
    random = np.random.default_rng(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            values = random.normal(0.0, 0.3, tuple(parameter.shape))
            if "norm" in name and name.endswith("weight"):
                values += 1.0
            parameter.copy_(torch.from_numpy(values.astype("float32").astype("float64")))
    return model.eval()


def main() -> None:
    random = np.random.default_rng(1706)
    batch = len(SOURCE_LENGTHS)
    source = random.normal(size=(batch, max(SOURCE_LENGTHS), D_MODEL)).astype("float32")
    target = random.normal(size=(batch, max(TARGET_LENGTHS), D_MODEL)).astype("float32")
    source_mask = np.arange(source.shape[1])[None] < np.array(SOURCE_LENGTHS)[:, None]
    target_mask = np.arange(target.shape[1])[None] < np.array(TARGET_LENGTHS)[:, None]
    arrays: dict[str, Any] = {
        "source": source,
        "target": target,
        "source_mask": source_mask,
        "target_mask": target_mask,
    }
    for order, norm_first in (("post_norm", False), ("pre_norm", True)):
        model = make_transformer(norm_first, seed=3762 + norm_first)
        for name, parameter in model.named_parameters():
            arrays[f"{order}/{name}"] = parameter.detach().numpy().astype("float32")
        hidden = ~torch.from_numpy(source_mask)  # torch marks what is hidden
        with torch.no_grad():
            memory = model.encoder(torch.from_numpy(source).double(), src_key_padding_mask=hidden)
            output = model(
                torch.from_numpy(source).double(),
                torch.from_numpy(target).double(),
                tgt_mask=torch.triu(torch.ones(target.shape[1], target.shape[1]), 1).bool(),
                src_key_padding_mask=hidden,
                tgt_key_padding_mask=~torch.from_numpy(target_mask),
                memory_key_padding_mask=hidden,
            )
        arrays[f"{order}/encoder_output"] = memory.numpy()
        arrays[f"{order}/decoder_output"] = output.numpy()
    path = Path(__file__).with_name("torch_transformer.npz")
    np.savez_compressed(path, **arrays)
    print(f"wrote {path.name} ({path.stat().st_size} bytes, torch {torch.__version__})")


if __name__ == "__main__":
    main()

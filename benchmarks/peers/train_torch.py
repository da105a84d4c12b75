"""PyTorch's nn.Transformer, eager, in a plain loop."""

from collections.abc import Callable
from pathlib import Path

from .train_clock import Clock, Finished
from .train_sizes import ADAM, DROPOUT, LEARNING_RATE, SMOOTHING


def torch_step(size: dict, threads: int, longest: int) -> Callable:
    """A function that makes one update from a batch (source, decoder input, labels).

    Args:
        size: of `SIZES`.
        threads: of PyTorch.
        longest: most tokens of a side.
    """
    import torch
    from torch import nn
    from torch.nn import functional

    torch.set_num_threads(threads)
    table = nn.Embedding(size["vocabulary"], size["hidden"], padding_idx=0)
    nn.init.normal_(table.weight, 0, size["hidden"] ** -0.5)
    layers = (size["layers"], size["layers"], size["intermediate"])
    model = nn.Transformer(
        size["hidden"], size["heads"], *layers, DROPOUT, batch_first=True, norm_first=True
    )
    for part in model.modules():
        # Only sublayer outputs and embeddings are dropped, as in the paper and in ours.
        if isinstance(part, nn.MultiheadAttention):
            part.dropout = 0.0
        elif isinstance(part, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
            part.dropout = nn.Identity()
    weights = [*table.parameters(), *model.parameters()]
    betas = (ADAM["beta_1"], ADAM["beta_2"])
    # PyTorch's own kernel of one pass, its fastest Adam.
    adam = torch.optim.Adam(weights, LEARNING_RATE, betas, ADAM["epsilon"], fused=True)
    positions = torch.randn(longest, size["hidden"]) * 0.1
    causal = torch.triu(torch.ones(longest, longest, dtype=torch.bool), 1)

    def embed(ids):
        x = table(ids) * size["hidden"] ** 0.5 + positions[: ids.shape[1]]
        return functional.dropout(x, DROPOUT)

    def step(source, decoder, labels) -> float:
        arrays = (source, decoder, labels)
        source, decoder, labels = (torch.from_numpy(ids).long() for ids in arrays)
        length = decoder.shape[1]
        adam.zero_grad(set_to_none=True)
        states = model(
            embed(source),
            embed(decoder),
            tgt_mask=causal[:length, :length],
            src_key_padding_mask=source == 0,
            tgt_key_padding_mask=decoder == 0,
            memory_key_padding_mask=source == 0,
            tgt_is_causal=True,
        )
        logits = (states @ table.weight.T).reshape(-1, size["vocabulary"])
        loss = functional.cross_entropy(
            logits, labels.reshape(-1), ignore_index=0, label_smoothing=SMOOTHING
        )
        loss.backward()
        adam.step()
        return loss.item()

    return step


def run(size: dict, folder: Path, clock: Clock, threads: int) -> None:
    """The batches of `folder`, one update each, until the clock has enough."""
    from .train_batches import MAX_LENGTH, endless

    # Lengths are padded to multiples of 8.
    step = torch_step(size, threads, MAX_LENGTH + 8)
    try:
        for source, decoder, labels in endless(folder):
            step(source, decoder, labels)
            clock.update((labels > 0).sum())
    except Finished:
        pass

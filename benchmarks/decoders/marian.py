"""Hugging Face's Marian in PyTorch, random weights of the same sizes; post-norm, as Marian is."""

from collections.abc import Callable

import torch
from transformers import MarianConfig, MarianMTModel

from decoders.task import END, PAD, START, Task


def prepare(task: Task) -> Callable[[], list]:
    """See the folder."""
    torch.set_num_threads(task.threads)
    torch.manual_seed(1)
    sizes = task.model()
    model = MarianMTModel(
        MarianConfig(
            vocab_size=sizes["vocabulary"],
            d_model=sizes["hidden"],
            encoder_layers=sizes["layers"],
            decoder_layers=sizes["layers"],
            encoder_attention_heads=sizes["heads"],
            decoder_attention_heads=sizes["heads"],
            encoder_ffn_dim=sizes["intermediate"],
            decoder_ffn_dim=sizes["intermediate"],
            activation_function="relu",
            max_position_embeddings=1024,
            scale_embedding=True,
            pad_token_id=PAD,
            eos_token_id=END,
            forced_eos_token_id=None,
            decoder_start_token_id=START,
        )
    ).eval()
    model.final_logits_bias[0, [PAD, START, END]] = -1e9
    searches = {} if task.beams == 1 else {"length_penalty": 0.0}
    ids = torch.from_numpy(task.sources()).long()
    settings = dict(
        attention_mask=torch.ones_like(ids),
        num_beams=task.beams,
        do_sample=False,
        max_new_tokens=task.length,
        **searches,
    )

    def run() -> list:
        with torch.inference_mode():
            return model.generate(ids, **settings)[:, 1:].tolist()  # without START

    return run

"""A translation Transformer ("Attention Is All You Need") in Keras 3 and TensorFlow.

Importing this package registers its Keras classes, so that `keras.models.load_model` needs no
`custom_objects`. Only the command line imports it without them: `--help` then takes no TensorFlow.
"""

import importlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tf_transformer.config import END_ID, PAD_ID, PRESETS, START_ID, UNK_ID, TransformerConfig
    from tf_transformer.decoding import (
        LENGTH_PENALTIES,
        RULES,
        SEARCHES,
        BeamSearch,
        DiverseSearch,
        GreedySearch,
        RowOptions,
        SamplingSearch,
        SearchResult,
    )
    from tf_transformer.errors import InputError
    from tf_transformer.layers import (
        POSITIONS,
        Decoder,
        DecoderLayer,
        Encoder,
        EncoderLayer,
        FeedForward,
        MultiHeadAttention,
        Residual,
        TokenEmbedding,
        attention_mask,
        causal_mask,
        padding_mask,
        scaled_dot_product_attention,
    )
    from tf_transformer.model import build_attention_model, build_transformer
    from tf_transformer.options import DecodingOptions
    from tf_transformer.tokenizers import (
        TOKENIZERS,
        ByteTokenizer,
        SentencePieceTokenizer,
        WordPieceTokenizer,
    )
    from tf_transformer.translator import Translator

__version__ = "0.1.0"

# oneDNN makes training 1.3 to 1.6 times as fast on CPUs where TensorFlow leaves it off; it is read
# when TensorFlow is imported.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")

# Where the public names live; the first that need no TensorFlow.
_HOMES = (
    ".errors",
    ".config",
    ".layers",
    ".model",
    ".tokenizers",
    ".decoding",
    ".options",
    ".translator",
)

__all__ = [
    "BeamSearch",
    "ByteTokenizer",
    "Decoder",
    "DecoderLayer",
    "DecodingOptions",
    "DiverseSearch",
    "END_ID",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "GreedySearch",
    "InputError",
    "LENGTH_PENALTIES",
    "MultiHeadAttention",
    "PAD_ID",
    "POSITIONS",
    "PRESETS",
    "RULES",
    "Residual",
    "RowOptions",
    "SEARCHES",
    "START_ID",
    "SamplingSearch",
    "SearchResult",
    "SentencePieceTokenizer",
    "TOKENIZERS",
    "TokenEmbedding",
    "TransformerConfig",
    "Translator",
    "UNK_ID",
    "WordPieceTokenizer",
    "attention_mask",
    "build_attention_model",
    "build_transformer",
    "causal_mask",
    "padding_mask",
    "scaled_dot_product_attention",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        for home in _HOMES:
            module = importlib.import_module(home, __name__)
            if hasattr(module, name):
                return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _is_command_line() -> bool:
    if sys.argv[0] == "-m":  # so Python calls a program that it is still looking for
        return ("-m", "tf_transformer") in zip(sys.orig_argv, sys.orig_argv[1:], strict=False)
    return Path(sys.argv[0]).stem == "tf-transformer"


if not _is_command_line():
    importlib.import_module(".layers", __name__)
    importlib.import_module(".rooms", __name__).register_keras_classes()

"""Text to ids and back, in the graph. A new tokenizer is one file here and one line below."""

from tf_transformer.tokenizers.sentencepiece import SentencePieceTokenizer
from tf_transformer.tokenizers.tokenizer import Tokenizer

TOKENIZERS: dict[str, type[Tokenizer]] = {"sentencepiece": SentencePieceTokenizer}

__all__ = ["TOKENIZERS", "SentencePieceTokenizer", "Tokenizer"]

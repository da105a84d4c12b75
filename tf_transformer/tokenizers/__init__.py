"""Text to ids and back, in the graph. A new tokenizer is one file here and one line below."""

from tf_transformer.tokenizers.byte import ByteTokenizer
from tf_transformer.tokenizers.sentencepiece import SentencePieceTokenizer
from tf_transformer.tokenizers.tokenizer import Tokenizer
from tf_transformer.tokenizers.wordpiece import WordPieceTokenizer

TOKENIZERS: dict[str, type[Tokenizer]] = {
    "sentencepiece": SentencePieceTokenizer,
    "wordpiece": WordPieceTokenizer,
    "byte": ByteTokenizer,
}

__all__ = [
    "TOKENIZERS",
    "ByteTokenizer",
    "SentencePieceTokenizer",
    "Tokenizer",
    "WordPieceTokenizer",
]

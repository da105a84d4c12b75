"""Our own sentences to learn pieces from, and strings that tokenizers have stumbled over."""

import functools
from typing import Any

from tf_transformer.tokenizers import SentencePieceTokenizer

SENTENCES = [
    "the cat sat on the mat",
    "hello world, this is the dog",
    "a dog is in the garden (and it barks)",
    "we don't know what 3.5 % of a-b is",
    "the old man reads the new book to the children",
    "le café est fermé, l'élève est naïve",
    "我爱北京 and the other towns",
    "привет, мир: the hat is here",
]

# Name -> options of `train`. The vocabularies are large enough for each to have whole words.
VARIANTS: dict[str, dict[str, Any]] = {
    "unigram": {"model_type": "unigram"},
    "bpe": {"model_type": "bpe"},
    "unigram, bytes": {"byte_fallback": True, "vocabulary_size": 400},
    "bpe, bytes": {"model_type": "bpe", "byte_fallback": True, "vocabulary_size": 400},
    "unigram, identity": {"normalization": "identity"},
    "bpe, identity": {"model_type": "bpe", "normalization": "identity"},
}

# Typed by users; none may become PAD, START or END, none may crash.
NASTY = [
    "",
    " ",
    "   ",
    "\t",
    "\n",
    "\r\n",
    "\0",
    "a\0b",
    "\0\0",
    "<s>",
    "</s>",
    "<pad>",
    "<unk>",
    "<0x00>",
    "<s> the cat </s> <pad>",
    "the</s>cat",
    "[START] [END] [PAD] [UNK]",
    "\u2581",
    "\u2581the\u2581cat",
    "\u2047",
    "\u2585",
    "\ufeff",
    "\ufeffthe",
    "the\u2028cat\u2029",
    "the\u0085cat",
    "\u200bthe\u200b",
    "\u200d",
    "\u202ethe",
    "\U0001f600",
    "hello\U0001f600",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "e\u0301\u0301\u0301",
    "\u0301",
    "ﬁ ﷺ ½ Ａ",
    "مرحبا بالعالم",
    "שלום",
    "\u0e33\u1100\u1161",
    "\ufffd",
    "\ufffe\uffff",
    "\U0010ffff",
    "\ue000",
    "的" * 300,
    "a" * 3000,
    "the cat " * 500,
    " " * 3000,
    "\U0001f600" * 500,
]


@functools.cache
def trained(variant: str = "unigram") -> SentencePieceTokenizer:
    """One of VARIANTS, learnt once a process."""
    options = {"vocabulary_size": 120, **VARIANTS[variant]}
    return SentencePieceTokenizer.train(SENTENCES * 3, **options)

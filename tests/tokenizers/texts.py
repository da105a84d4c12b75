"""Our own sentences to learn pieces from, and strings that tokenizers have stumbled over."""

import functools
import random
from typing import Any

import tensorflow as tf

from tf_transformer.tokenizers import (
    ByteTokenizer,
    SentencePieceTokenizer,
    Tokenizer,
    WordPieceTokenizer,
)

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
    "unigram, symbols": {"user_symbols": ["<br>", "@@", "a,b", "ﬁ"]},
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


EVERY = [*VARIANTS, "wordpiece", "bytes"]


def learn(kind: str, texts: list[str], vocabulary_size: int = 120) -> Tokenizer:
    """A tokenizer of EVERY, learnt from `texts`."""
    if kind == "bytes":
        return ByteTokenizer()
    if kind == "wordpiece":
        return WordPieceTokenizer.train(texts, vocabulary_size * 2)
    options = {"vocabulary_size": vocabulary_size, **VARIANTS[kind]}
    return SentencePieceTokenizer.train(texts, **options)


@functools.cache
def trained(kind: str = "unigram") -> Any:
    """One of EVERY, learnt from SENTENCES once a process."""
    return learn(kind, SENTENCES * 3)


def in_graph(tokenizer: Tokenizer, texts: list[str] | list[bytes]) -> list[list[int]]:
    """The ids of `tokenize`, as lists."""
    return tokenizer.tokenize(tf.constant(texts, tf.string)).to_list()


def back(tokenizer: Tokenizer, ids: list[list[int]]) -> list[str]:
    """`detokenize` of rows of any lengths, as str; strict UTF-8."""
    rows = tf.ragged.constant(ids, tf.int32, ragged_rank=1).to_tensor()
    return [text.decode("utf-8") for text in tokenizer.detokenize(rows).numpy().tolist()]


def round_trip(tokenizer: Tokenizer, text: str) -> str:
    """One text to ids and back."""
    return back(tokenizer, tokenizer.encode([text]))[0]


_RANGES = [
    (0x00, 0xA0),  # ASCII with its controls, C1
    (0xA0, 0x300),
    (0x300, 0x370),  # combining
    (0x590, 0x780),  # right to left
    (0x900, 0xE80),  # matras and tones
    (0x1100, 0x1200),  # jamo
    (0x2000, 0x2070),  # blanks, zero-width, directions
    (0x3000, 0x9FFF),
    (0xE000, 0xF900),  # private
    (0xFB00, 0x10000),  # ligatures, specials, non-characters
    (0x1F000, 0x1FB00),
    *((plane << 16, (plane + 1) << 16) for plane in range(1, 17)),
]


def nasty_texts(count: int, seed: int = 0) -> list[str]:
    """Texts of every plane of Unicode, alone, mixed with words and with what NASTY has."""
    draw = random.Random(seed)
    words = " ".join(SENTENCES).split()

    def letter() -> str:
        return chr(draw.randrange(*draw.choice(_RANGES)))

    def part() -> str:
        kind = draw.randrange(8)
        if kind < 3:
            return draw.choice(words)
        if kind < 6:
            return "".join(letter() for _ in range(draw.randint(1, 5)))
        return draw.choice(NASTY)[:40] if kind == 6 else draw.choice(" \t\n\0\u200b\u3000  ")

    texts = [*NASTY]
    while len(texts) < count:
        texts.append("".join(part() for _ in range(draw.randint(1, 9))))
    return texts[:count]


def nasty_bytes(count: int, seed: int = 0) -> list[bytes]:
    """Bytes of which few are UTF-8: random ones, and cut and damaged text."""
    draw = random.Random(seed)
    found = []
    for text in nasty_texts(count, seed):
        raw = bytearray(draw.randbytes(draw.randint(0, 20)) if draw.random() < 0.4 else b"")
        raw += text[:60].encode()[: draw.randint(0, 90)]
        for _ in range(draw.randint(0, 3)):
            raw.insert(draw.randint(0, len(raw)), draw.randrange(256))
        found.append(bytes(raw))
    return found

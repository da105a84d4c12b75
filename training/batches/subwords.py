"""Subword sampling: each epoch cuts the same words into other pieces.

Unigram pieces are sampled as in Kudo 2018 (arXiv 1804.10959), BPE with the dropout of Provilkov et
al. 2020 (1910.13267). SentencePiece does both too, but its random numbers are salted anew in every
process (0.2.3, whatever the seed): a run that goes on would not go on as it was. So which
segmentations there are is asked of SentencePiece, and NumPy draws one.

Pieces do not reach over a blank, so each word is cut on its own.
"""

import itertools
from collections.abc import Iterator

import numpy as np
import sentencepiece

from tf_transformer.config import UNK_ID
from tf_transformer.errors import InputError
from tf_transformer.tokenizers import SentencePieceTokenizer, Tokenizer
from tf_transformer.tokenizers.piece_file import file_format

from .ids import Ids

UNIGRAM_ALPHA, BPE_ALPHA = 0.2, 0.1  # Kudo's for all segmentations, Provilkov's
_BEST = 64  # segmentations of a word to choose from; the rest lengthen a text by 0.2 % (alpha 0.2)
_BLANK = "\u2581"  # what SentencePiece writes for it
_CHUNK = 1 << 18  # words cut at once, for memory


class SubwordSampler:
    """A text whose words can be cut anew.

    A word that holds an unknown letter is always cut the same way.

    Args:
        best: the text in its best segmentation, by `tokenizer`.
        tokenizer: a SentencePiece one.
        alpha: with unigram pieces the exponent of a segmentation's probability (0: all are equally
            likely; large: only the best); with BPE the share of merges that are left out. None
            is 0.2 and 0.1.

    Raises:
        InputError: a tokenizer of another kind, or one that treats blanks in another way than
            SentencePiece does by default.
    """

    def __init__(self, best: Ids, tokenizer: Tokenizer, alpha: float | None = None) -> None:
        if not isinstance(tokenizer, SentencePieceTokenizer):
            raise InputError('Subword sampling needs tokenizer.type = "sentencepiece".')
        pieces = _Pieces(tokenizer.model)
        opens = pieces.opens_word[best.flat]
        opens[best.starts[:-1][np.diff(best.starts) > 0]] = True
        starts = np.append(np.flatnonzero(opens), len(best.flat))
        self._sentences = np.searchsorted(starts, best.starts)
        words, self._words = _distinct(Ids(best.flat, starts))
        self._cutter: _Candidates | _Merges
        if pieces.is_bpe:
            self._cutter = _Merges(words, pieces, BPE_ALPHA if alpha is None else alpha)
        else:
            self._cutter = _Candidates(words, pieces, UNIGRAM_ALPHA if alpha is None else alpha)

    def sample(self, random: np.random.Generator) -> Ids:
        """The whole text, each word in a segmentation drawn for it."""
        chunks = range(0, len(self._words), _CHUNK)
        cut = Ids.join(
            self._cutter.cut(self._words[first : first + _CHUNK], random) for first in chunks
        )
        return Ids(cut.flat, cut.starts[self._sentences])


class _Pieces:
    def __init__(self, model: bytes) -> None:
        self.processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        pb2 = file_format()
        proto = pb2.ModelProto.FromString(model)
        self.is_bpe = proto.trainer_spec.model_type == pb2.TrainerSpec.BPE
        if proto.trainer_spec.treat_whitespace_as_suffix:
            raise InputError(
                "Subword sampling needs a model that has its blanks in front of words."
            )
        if not (self.is_bpe or proto.normalizer_spec.add_dummy_prefix):
            raise InputError(
                "Subword sampling needs a unigram model that adds a blank before each sentence."
            )
        self.texts = [piece.piece for piece in proto.pieces]
        self.scores = np.array([piece.score for piece in proto.pieces])
        normal = pb2.ModelProto.SentencePiece.NORMAL
        self.is_plain = np.array([piece.type == normal for piece in proto.pieces])
        self.opens_word = np.array([text.startswith(_BLANK) for text in self.texts])

    def text(self, word: np.ndarray) -> str:
        """What a word's pieces spell; nothing where one of them is no text or no blank begins it"""
        if not self.is_plain[word].all() or not self.opens_word[word[0]]:
            return ""
        return "".join(self.texts[i] for i in word)


class _Candidates:
    """Unigram: the best segmentations of each word with their probabilities."""

    def __init__(self, words: Ids, pieces: _Pieces, alpha: float) -> None:
        parts: list[Ids] = []
        found_of: list[int] = []
        for first in range(0, len(words), 10_000):
            some = [words[n] for n in range(first, min(first + 10_000, len(words)))]
            texts = [pieces.text(word).removeprefix(_BLANK) for word in some]
            found = pieces.processor.nbest_encode(texts, nbest_size=_BEST)
            lists = [_usable(word.tolist(), all_) for word, all_ in zip(some, found, strict=True)]
            found_of += map(len, lists)
            parts.append(Ids.of([ids for each in lists for ids in each]))
        self._candidates = Ids.join(parts)
        counts = np.array(found_of, np.int64)
        ends = np.cumsum(counts)
        word = np.repeat(np.arange(len(words)), counts)
        candidate = np.repeat(np.arange(len(word)), np.diff(self._candidates.starts))
        scores = np.bincount(candidate, pieces.scores[self._candidates.flat], len(word))
        best = np.maximum.reduceat(scores, ends - counts) if len(word) else scores
        weights = np.exp(alpha * (scores - best[word]))
        shares = weights / np.bincount(word, weights)[word]
        self._first, self._last = ends - counts, ends - 1
        # Word n owns the numbers from n to n + 1, each candidate its share of them.
        ahead = np.cumsum(shares)
        self._marks = word + ahead - (ahead - shares)[self._first][word]

    def cut(self, words: np.ndarray, random: np.random.Generator) -> Ids:
        drawn = np.searchsorted(self._marks, words + random.random(len(words)), side="right")
        return self._candidates.take(np.clip(drawn, self._first[words], self._last[words]))


def _usable(best: list[int], found: list[list[int]]) -> list[list[int]]:
    """Those without unknown letters; only `best` where SentencePiece read the word otherwise."""
    return [ids for ids in found if UNK_ID not in ids] if best in found else [best]


class _Merges:
    """BPE: merges letters as the tokenizer does, but leaves each possible merge out at times."""

    def __init__(self, words: Ids, pieces: _Pieces, alpha: float) -> None:
        self._alpha = alpha
        self._scores = np.append(pieces.scores, -np.inf)  # the last: of no merge, -1
        plain = {text: n for n, text in enumerate(pieces.texts) if pieces.is_plain[n]}
        spelt = []
        for n in range(len(words)):
            letters = [plain.get(letter, UNK_ID) for letter in pieces.text(words[n])]
            # What is left whole has no possible merge, or the tokenizer had made it.
            spelt.append(letters if letters and UNK_ID not in letters else words[n].tolist())
        self._letters = Ids.of(spelt)
        self._size = len(pieces.texts)
        merges = {
            plain[text[:at]] * self._size + plain[text[at:]]: n
            for text, n in plain.items()
            for at in range(1, len(text))
            if text[:at] in plain and text[at:] in plain
        }
        self._pairs = np.array(sorted(merges) or [-1], np.int64)  # never empty, for `_lookup`
        self._merged = np.array([merges.get(pair, -1) for pair in self._pairs.tolist()], np.int32)

    def cut(self, words: np.ndarray, random: np.random.Generator) -> Ids:
        lengths = np.diff(self._letters.starts)[words]
        order, parts = [], []
        for length in np.unique(lengths):
            rows = np.flatnonzero(lengths == length)
            symbols = self._letters.take(words[rows]).flat.reshape(len(rows), length)
            for done, cut in self._merge(symbols, random):
                order.append(rows[done])
                parts.append(Ids(cut.ravel(), np.arange(len(cut) + 1) * cut.shape[1]))
        return Ids.join(parts).take(np.argsort(np.concatenate(order or [words])))

    def _merge(
        self, symbols: np.ndarray, random: np.random.Generator
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Of words with as many symbols, those that end with the same number, and their rows."""
        rows = np.arange(len(symbols))
        while len(rows) and symbols.shape[1] > 1:
            merged = self._lookup(symbols)
            scores = self._scores[merged]
            scores[random.random(scores.shape, np.float32) < self._alpha] = -np.inf
            at = scores.argmax(axis=1)[:, None]
            live = np.take_along_axis(scores, at, 1)[:, 0] > -np.inf
            yield rows[~live], symbols[~live]
            rows, symbols, at = rows[live], symbols[live], at[live]
            new = np.take_along_axis(merged[live], at, 1)
            places = np.arange(symbols.shape[1] - 1)
            symbols = np.take_along_axis(symbols, places + (places > at), 1)
            np.put_along_axis(symbols, at, new, 1)
        yield rows, symbols

    def _lookup(self, symbols: np.ndarray) -> np.ndarray:
        """The piece that each two neighbours make, -1 where they make none."""
        pairs = symbols[:, :-1] * np.int64(self._size) + symbols[:, 1:]
        at = np.minimum(np.searchsorted(self._pairs, pairs), len(self._pairs) - 1)
        return np.where(self._pairs[at] == pairs, self._merged[at], -1)


def _distinct(words: Ids) -> tuple[Ids, np.ndarray]:
    """Each different word once, and which of them each word is."""
    numbers: dict[bytes, int] = {}
    raw, size = words.flat.tobytes(), words.flat.itemsize
    spans = itertools.pairwise((words.starts * size).tolist())
    which = np.fromiter(
        (numbers.setdefault(raw[begin:end], len(numbers)) for begin, end in spans),
        np.int64,
        len(words),
    )
    flat = np.frombuffer(b"".join(numbers), words.flat.dtype)
    lengths = np.fromiter(map(len, numbers), np.int64, len(numbers)) // size
    return Ids(flat, np.concatenate([[0], np.cumsum(lengths)])), which

"""Learning a WordPiece vocabulary from text: the merges of BPE, as others learn theirs."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import sentencepiece

from tf_transformer.errors import InputError
from tf_transformer.tokenizers import learn_pieces
from tf_transformer.tokenizers.tokenizer import SPECIALS
from tf_transformer.tokenizers.word_pieces import INSIDE, WordPieces, both_forms, split_words

_BLANK = "▁"  # what SentencePiece has in front of a piece that begins a word
_MORE = 1.25  # 2 % fewer tokens on Multi30k; more merges than this give no more


def learn(texts: Iterable[str], vocabulary_size: int, character_coverage: float) -> list[str]:
    """The lines of a vocabulary of at most `vocabulary_size` pieces.

    SentencePiece's trainer is a hundred times as fast as tensorflow_text's, and keeps letters and
    punctuation apart, so that "dog." is made of the pieces of "dog". Of somewhat more merges than
    are wanted those stay that the longest match uses most: many were only on the way to others.

    Args:
        texts: sentences.
        vocabulary_size: V at most, SPECIALS included.
        character_coverage: share of all letters of the text that get pieces, the most frequent
            first.

    Raises:
        InputError: no letter, fewer ids than the letters need, or a coverage that is none.
    """
    sentences = [" ".join(split_words(text)) for text in texts]
    letters = _letters(sentences, character_coverage)
    smallest = [*SPECIALS, *both_forms(letters)]
    cannot = f"No vocabulary of {vocabulary_size} can be learnt from this text: "
    if not letters:
        raise InputError(f"{cannot}there is no letter in it.")
    if len(smallest) > vocabulary_size:
        raise InputError(
            f"{cannot}its different letters alone need {len(smallest)}, so ask for that at least."
        )
    model = learn_pieces.learn(
        sentences,
        int(vocabulary_size * _MORE) + 8,
        model_type="bpe",
        normalization_rule_name="identity",
        character_coverage=character_coverage,
    )
    known = set(letters)
    pieces = [
        x for x in _merges(model) if x not in SPECIALS and known.issuperset(x.removeprefix(INSIDE))
    ]
    words = Counter(word for sentence in sentences for word in sentence.split())
    room = vocabulary_size - len(smallest)
    for size in ((room + len(pieces)) // 2, room):  # what one piece loses, another may win
        pieces = _most_used(smallest, pieces, words)[:size]
    return [*smallest, *pieces]


def _most_used(smallest: list[str], pieces: list[str], words: Counter[str]) -> list[str]:
    """The pieces by how often they occur in the words as they are cut with all of them."""
    vocabulary = WordPieces([*smallest, *pieces])
    used: Counter[str] = Counter()
    for word, count in words.items():
        for token in vocabulary.encode(word):
            used[vocabulary.lines[token]] += count
    return sorted(pieces, key=lambda piece: -used[piece])  # equal ones as they were merged


def _letters(sentences: Sequence[str], coverage: float) -> list[str]:
    """The letters that make up this share of the text, the most frequent first."""
    counts: Counter[str] = Counter()
    for sentence in sentences:
        counts.update(sentence)
    del counts[" "]
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    before = itertools.accumulate((count for _, count in ordered), initial=0)
    enough = coverage * counts.total()
    return [letter for (letter, _), sum_ in zip(ordered, before, strict=False) if sum_ < enough]


def _merges(model: bytes) -> Iterator[str]:
    """Pieces of more than one letter as lines, in the order in which they were merged."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    for token in range(len(SPECIALS), processor.vocab_size()):
        piece = processor.id_to_piece(token)
        bare = piece.removeprefix(_BLANK)
        begins = piece.startswith(_BLANK)
        # What begins a word with "##" could not be told from what continues one.
        if len(bare) > 1 and not (begins and bare.startswith(INSIDE)):
            yield bare if begins else INSIDE + bare

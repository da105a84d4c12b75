"""Learning a WordPiece vocabulary from text: the merges of BPE, as others learn theirs."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import sentencepiece

from tf_transformer.errors import InputError
from tf_transformer.tokenizers import learn_pieces
from tf_transformer.tokenizers.tokenizer import SPECIALS
from tf_transformer.tokenizers.word_pieces import INSIDE, both_forms, split_words

_BLANK = "▁"  # what SentencePiece has in front of a piece that begins a word


def learn(texts: Iterable[str], vocabulary_size: int, character_coverage: float) -> list[str]:
    """The lines of a vocabulary of at most `vocabulary_size` pieces.

    SentencePiece's trainer is a hundred times as fast as tensorflow_text's, and keeps letters and
    punctuation apart, so that "dog." is made of the pieces of "dog".

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
    if letters and len(smallest) > vocabulary_size:
        raise InputError(
            f"No vocabulary of {vocabulary_size} can be learnt from this text: its different "
            f"letters alone need {len(smallest)}, so ask for that at least."
        )
    model = learn_pieces.learn(
        sentences,
        vocabulary_size,
        model_type="bpe",
        normalization_rule_name="identity",
        character_coverage=character_coverage,
    )
    lines = dict.fromkeys(smallest)
    for line in _merges(model):
        if len(lines) == vocabulary_size:
            break
        if line not in SPECIALS and set(line.removeprefix(INSIDE)) <= set(letters):
            lines[line] = None
    return list(lines)


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

"""training/batches/subwords.py: other pieces, the same words, the right chances, from a seed."""

import math
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from sentencepiece import sentencepiece_model_pb2

from tests.tokenizers.texts import NASTY, SENTENCES
from tf_transformer.config import UNK_ID
from tf_transformer.errors import InputError
from tf_transformer.tokenizers import SentencePieceTokenizer
from training.batches.ids import Ids
from training.batches.subwords import SubwordSampler

TEXTS = [*SENTENCES * 3, "", "a", "unbekannt: ß und the garden", *NASTY]


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def tokenizer(request):
    return SentencePieceTokenizer.train(SENTENCES, 150, model_type=request.param)


def is_bpe(tokenizer) -> bool:
    try:
        tokenizer._python.nbest_encode("a", nbest_size=2)
    except RuntimeError:
        return True
    return False


def sampler_of(tokenizer, texts, alpha=None):
    best = Ids.encode(texts, tokenizer)
    return best, SubwordSampler(best, tokenizer, alpha)


def test_the_words_stay(tokenizer):
    best, sampler = sampler_of(tokenizer, TEXTS)
    decode = tokenizer._python.decode
    changed = 0
    for seed in range(20):
        drawn = sampler.sample(np.random.default_rng(seed))
        assert len(drawn) == len(TEXTS) and drawn.flat.dtype == np.int32
        for n in range(len(TEXTS)):
            assert decode(drawn[n].tolist()) == decode(best[n].tolist())
            changed += not np.array_equal(drawn[n], best[n])
    assert changed > 20 * len(SENTENCES)


def test_without_chance_it_is_what_the_tokenizer_does(tokenizer):
    best, sampler = sampler_of(tokenizer, TEXTS, 0.0 if is_bpe(tokenizer) else 1e4)
    drawn = sampler.sample(np.random.default_rng(0))
    assert np.array_equal(drawn.flat, best.flat) and np.array_equal(drawn.starts, best.starts)


def test_a_word_with_an_unknown_letter_stays_as_it_is(tokenizer):
    best, sampler = sampler_of(tokenizer, ["gardenß garden"] * 500)
    drawn = sampler.sample(np.random.default_rng(0))
    heads = Counter(tuple(drawn[n][: len(tokenizer.encode(["gardenß"])[0])]) for n in range(500))
    assert list(heads) == [tuple(tokenizer.encode(["gardenß"])[0])]
    assert len({tuple(drawn[n]) for n in range(500)}) > 1


def segmentations(word: str, pieces: dict[str, int]) -> list[tuple[int, ...]]:
    if not word:
        return [()]
    return [
        (pieces[word[:at]], *rest)
        for at in range(1, len(word) + 1)
        if word[:at] in pieces
        for rest in segmentations(word[at:], pieces)
    ]


def unigram_chances(word, pieces, scores, alpha):
    """Kudo 2018, section 3.3: P(x)^alpha, over all segmentations."""
    found = segmentations(word, pieces)
    weights = [math.exp(alpha * sum(scores[i] for i in ids)) for ids in found]
    return {ids: weight / sum(weights) for ids, weight in zip(found, weights, strict=True)}


def bpe_chances(word, pieces, scores, alpha):
    """Provilkov et al. 2020, algorithm 1: each merge of each round is left out with p = alpha."""
    chances: dict[tuple[int, ...], float] = {}

    def go_on(symbols: tuple[str, ...], chance: float) -> None:
        merges = [
            (-scores[pieces[a + b]], at)
            for at, (a, b) in enumerate(zip(symbols, symbols[1:], strict=False))
            if a + b in pieces
        ]
        for _, at in sorted(merges):
            merged = (*symbols[:at], symbols[at] + symbols[at + 1], *symbols[at + 2 :])
            go_on(merged, chance * (1 - alpha))
            chance *= alpha
        ids = tuple(pieces[symbol] for symbol in symbols)
        chances[ids] = chances.get(ids, 0.0) + chance

    go_on(tuple(word), 1.0)
    return chances


def test_the_chances_are_those_of_the_papers(tokenizer):
    python = tokenizer._python
    pieces = {python.id_to_piece(i): i for i in range(4, python.vocab_size())}
    scores = {i: python.get_score(i) for i in pieces.values()}
    of, alpha = (bpe_chances, 0.3) if is_bpe(tokenizer) else (unigram_chances, 0.2)
    draws = 20_000
    for word in ("the", "hat", "dog"):
        _, sampler = sampler_of(tokenizer, [word] * draws, alpha)
        drawn = sampler.sample(np.random.default_rng(1))
        counts = Counter(tuple(drawn[n].tolist()) for n in range(draws))
        expected = of(f"▁{word}", pieces, scores, alpha)
        assert len(expected) > 2 and set(counts) <= set(expected)
        assert sum(expected.values()) == pytest.approx(1)
        for ids, chance in expected.items():
            spread = math.sqrt(draws * chance * (1 - chance))
            assert abs(counts[ids] - draws * chance) < 5 * spread + 1, (word, ids)


def test_no_words_at_all(tokenizer):
    for texts in ([], [""], ["", ""]):
        best, sampler = sampler_of(tokenizer, texts)
        drawn = sampler.sample(np.random.default_rng(0))
        assert np.array_equal(drawn.starts, best.starts) and not len(drawn.flat)


def test_a_model_without_a_blank_before_the_first_word(tokenizer):
    """BPE: the last and the first word of two sentences stay apart. Unigram: refused."""
    options = {"model_type": "bpe" if is_bpe(tokenizer) else "unigram"}
    bare = SentencePieceTokenizer.train(SENTENCES, 150, **options, add_dummy_prefix=False)
    texts = ["the cat", "sat", "", "on the mat"] * 5
    if not is_bpe(tokenizer):
        with pytest.raises(InputError, match="adds a blank before each sentence"):
            sampler_of(bare, texts)
        return
    best, sampler = sampler_of(bare, texts)
    drawn = sampler.sample(np.random.default_rng(0))
    decode = bare._python.decode
    assert [decode(drawn[n].tolist()) for n in range(len(texts))] == texts
    assert any(not np.array_equal(drawn[n], best[n]) for n in range(len(texts)))


def test_a_model_with_blanks_behind_the_words_is_refused(tokenizer):
    options = {"model_type": "bpe" if is_bpe(tokenizer) else "unigram"}
    turned = SentencePieceTokenizer.train(
        SENTENCES, 150, **options, treat_whitespace_as_suffix=True
    )
    with pytest.raises(InputError, match="its blanks in front of words"):
        sampler_of(turned, ["the cat"])


def test_no_segmentation_has_an_unknown_letter_that_the_best_has_not(tokenizer):
    """A model may have a word and not all of its letters."""
    model = sentencepiece_model_pb2.ModelProto.FromString(tokenizer.model)
    for piece in model.pieces:
        if piece.piece == "h":
            piece.type = model.SentencePiece.UNUSED
    lacking = SentencePieceTokenizer(model.SerializeToString())
    if not is_bpe(tokenizer):
        assert any(UNK_ID in ids for ids in lacking._python.nbest_encode("the", nbest_size=64))
    best, sampler = sampler_of(lacking, ["the hat"] * 300)
    assert UNK_ID not in best.flat
    assert UNK_ID not in sampler.sample(np.random.default_rng(0)).flat


def test_a_tokenizer_without_pieces_is_refused():
    with pytest.raises(InputError, match='Subword sampling needs tokenizer.type = "sentencepiece"'):
        SubwordSampler(Ids.of([[5]]), object())


SCRIPT = """
import numpy as np
from tests.tokenizers.texts import SENTENCES
from tests.training.batches.test_subwords import sampler_of
from tf_transformer.tokenizers import SentencePieceTokenizer
for kind in ("unigram", "bpe"):
    tokenizer = SentencePieceTokenizer.train(SENTENCES, 150, model_type=kind)
    print(sampler_of(tokenizer, SENTENCES)[1].sample(np.random.default_rng(3)).flat.tolist())
"""


def test_another_process_draws_the_same():
    """SentencePiece's own sampling does not: a run that goes on would not be the unbroken one."""
    root = Path(__file__).parents[3]
    env = {**os.environ, "PYTHONPATH": str(root), "PYTHONHASHSEED": "5"}
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True, check=True
    )
    for line, kind in zip(ran.stdout.splitlines(), ("unigram", "bpe"), strict=True):
        tokenizer = SentencePieceTokenizer.train(SENTENCES, 150, model_type=kind)
        drawn = sampler_of(tokenizer, SENTENCES)[1].sample(np.random.default_rng(3))
        assert line == str(drawn.flat.tolist())

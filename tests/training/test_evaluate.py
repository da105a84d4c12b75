"""training/evaluate.py: sacreBLEU of the whole corpus, as the papers report it."""

import re
import sys

import pytest
import tensorflow as tf

from tf_transformer import bulk
from tf_transformer.errors import InputError
from training.evaluate import as_table, corpus_bleu, score

REFERENCES = [
    "The cat sat on the mat.",
    "There is a dog in the garden, and it barks loudly.",
    "Hello world, this is a test!",
]
TRANSLATIONS = [
    "The cat sat on a mat.",
    "There is a dog in the garden and it barks.",
    "Hello world, this is the test!",
]


@pytest.mark.case("85")
def test_bleu_is_of_the_corpus():
    """Not the mean of sentences, 56.089, nor of batches of 2 and 1, 58.402."""
    found, signature = corpus_bleu(TRANSLATIONS, REFERENCES)
    assert round(found.score, 3) == 58.054
    assert [round(precision, 1) for precision in found.precisions] == [92.3, 73.9, 55.0, 41.2]
    assert (round(found.bp, 3), found.sys_len, found.ref_len) == (0.926, 26, 28)
    scores = score(TRANSLATIONS, REFERENCES)
    assert (scores.bleu, scores.bleu_signature) == (found.score, signature)


@pytest.mark.case("85")
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_bleu_is_the_same_for_every_size_of_batches(rows):
    seen = []

    def translate(text):
        seen.append(len(text))
        known = dict(zip(["a", "bb", "ccc"], TRANSLATIONS, strict=True))
        found = [known[each.decode()] for each in text.numpy()]
        return {"text": tf.constant(found), "score": tf.zeros(len(found))}

    answers = bulk.stream(translate, ["a", "bb", "ccc"], batching=bulk.Batching(batch_rows=rows))
    translations = [found["text"] for found in answers]
    assert max(seen) == rows
    assert round(score(translations, REFERENCES).bleu, 3) == 58.054


@pytest.mark.case("85")
@pytest.mark.parametrize(
    ("translations", "bleu"),
    [
        ([text.lower() for text in TRANSLATIONS], 43.448),
        ([f"{text} [END]" for text in TRANSLATIONS], 43.918),
    ],
    ids=["lower case", "END left in"],
)
def test_case_and_markers_count(translations, bleu):
    assert round(score(translations, REFERENCES).bleu, 3) == bleu


@pytest.mark.case("85")
def test_sides_are_not_swapped():
    assert round(score(REFERENCES, TRANSLATIONS).bleu, 3) == 57.243


@pytest.mark.case("85")
def test_signatures_and_exact_matches():
    found = score([*TRANSLATIONS, "yes"], [*REFERENCES, "yes"])
    for part in ("nrefs:1", "case:mixed", "tok:13a", "smooth:exp", "version:"):
        assert part in found.bleu_signature
    for part in ("nrefs:1", "case:mixed", "nc:6", "nw:0", "version:"):
        assert part in found.chrf_signature
    assert (found.exact_match, found.lines) == (0.25, 4)
    assert score(REFERENCES, REFERENCES).chrf == 100.0
    assert as_table(found).title == "4 lines"


@pytest.mark.parametrize(
    ("translations", "references"), [(["a"], ["a", "b"]), (["a", "b"], ["a"]), ([], [])]
)
def test_unequal_and_no_lines_are_refused_with_the_numbers(translations, references):
    numbers = re.escape(f"Received: {len(translations)} and {len(references)}")
    for function in (score, corpus_bleu):
        with pytest.raises(InputError, match=numbers):
            function(translations, references)


def test_without_sacrebleu_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(InputError, match=r"pip install 'tf_transformer\[evaluate\]'"):
        score(["a"], ["a"])

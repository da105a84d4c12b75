"""tf_transformer/scorer.py: how likely given translations are, told the same way by every path."""

import numpy as np
import pytest
import tensorflow as tf

from tests.oracle import softmax
from tests.tiny_translator import ENGLISH, FRENCH, make_translator, tokenizers
from tests.trained_translator import config_of, trained_translator
from tests.weights import fill_with_random
from tf_transformer import DecodingOptions, InputError, Translator, build_transformer
from tf_transformer.bulk import Batching
from tf_transformer.layers import padding_mask

ENDS = 3


@pytest.fixture(scope="module")
def trained() -> Translator:
    return trained_translator()


def ids_of(side: int, text: str) -> list[int]:
    return [*tokenizers()[side].encode([text])[0], ENDS]


def whole_pass(model, source: list[int], target: list[int]) -> np.ndarray:
    """log P of each target token, by the model as it is trained."""
    inputs = {
        "encoder_token_ids": np.array([source], "int32"),
        "decoder_token_ids": np.array([[2, *target[:-1]]], "int32"),
    }
    log_probs = np.log(softmax(np.asarray(model(inputs, training=False), "float64")[0]))
    return log_probs[np.arange(len(target)), target]


def step_by_step(model, source: list[int], target: list[int]) -> np.ndarray:
    """The same by the cached steps of a search that has no choice."""
    embedding, decoder = model.get_layer("decoder_embedding"), model.get_layer("decoder")

    @tf.function(autograph=False)
    def logits(encoder_ids, tokens):
        mask = padding_mask(encoder_ids)
        x = model.get_layer("encoder_embedding").embed(encoder_ids)
        context = decoder.start(model.get_layer("encoder")(x, padding_mask=mask), mask)
        cache, found = decoder.empty_cache(1), []
        for index in range(len(target)):
            x = embedding.embed(tokens[:, index : index + 1])
            x, cache, _ = decoder.step(x, cache, index, context)
            found.append(embedding.logits(x[:, 0], embedding.output_kernel()))
        return tf.concat(found, 0)

    found = logits(tf.constant([source]), tf.constant([[2, *target[:-1]]]))
    return np.log(softmax(np.asarray(found, "float64")))[np.arange(len(target)), target]


def score(translator, source, target):
    """One call of the graph, as arrays."""
    found = translator.score_pairs(tf.constant(source), tf.constant(target))
    return {name: value.numpy() for name, value in found.items()}


@pytest.mark.parametrize("position", ["sinusoidal", "relative"])
def test_scores_are_those_of_a_whole_pass_and_of_cached_steps(position):
    translator = make_translator(position=position, num_decoder_layers=2)
    pairs = [(FRENCH[1], "a cat"), (FRENCH[3], "the")]
    found = score(translator, *zip(*pairs, strict=True))
    for row, (french, english) in enumerate(pairs):
        pair = ids_of(0, french), ids_of(1, english)
        expected, length = whole_pass(translator.model, *pair), len(pair[1])
        np.testing.assert_allclose(step_by_step(translator.model, *pair), expected, atol=1e-4)
        np.testing.assert_allclose(found["token_log_probs"][row, :length], expected, atol=1e-4)
        assert not found["token_log_probs"][row, length:].any()
        assert found["length"][row] == length and found["finished"][row]
        assert found["log_prob"][row] == pytest.approx(expected.sum(), abs=1e-3)
        assert found["score"][row] == pytest.approx(
            expected.sum() / ((5 + length) / 6) ** 0.6, abs=1e-3
        )
        names = [*tokenizers()[1].pieces(english), "</s>"]
        assert [piece.decode() for piece in found["pieces"][row, :length]] == names
        assert set(found["pieces"][row, length:]) <= {b""}


@pytest.mark.parametrize("alpha", [0.6, -1.0])
def test_what_a_search_reports_is_what_scoring_its_ids_gives(trained, alpha):
    """Every hypothesis, those that the limit cut too."""
    translator = trained.with_options(num_beams=3, alpha=alpha)
    source = translator.encode_source(tf.constant(FRENCH))
    found = translator.generate(source.token_ids, tf.constant([3, 30, 12, 40, 20, 7, 30, 4]))
    unfinished = 0
    for k in range(3):
        ids = found.token_ids[:, k]
        again = translator.score_ids(source.token_ids, ids)
        np.testing.assert_allclose(again["log_prob"], found.log_probs[:, k], atol=1e-4)
        np.testing.assert_allclose(again["score"], found.scores[:, k], atol=1e-4)
        np.testing.assert_allclose(again["token_log_probs"], found.token_log_probs[:, k], atol=1e-4)
        np.testing.assert_array_equal(again["length"], found.lengths[:, k])
        np.testing.assert_array_equal(again["finished"], found.finished[:, k])
        unfinished += int((~found.finished[:, k].numpy()).sum())
    assert 0 < unfinished < 24


def test_what_it_learnt_is_likelier_than_anything_else(trained):
    right = score(trained, FRENCH, ENGLISH)["log_prob"]
    wrong = score(trained, FRENCH, [*ENGLISH[1:], ENGLISH[0]])["log_prob"]
    assert (right > -1.0).all() and (wrong < -5.0).all()
    np.testing.assert_allclose(
        score(trained, FRENCH, ENGLISH)["score"],
        trained.translate(tf.constant(FRENCH))["score"],
        atol=1e-4,
    )


def test_blank_sides_have_an_answer(trained):
    """Blank is the translation of blank, by definition; else END alone is what is asked."""
    found = score(trained, ["", " \t", FRENCH[1], ""], ["", "  ", "", "the cat"])
    np.testing.assert_array_equal(found["length"], [0, 0, 1, len(ids_of(1, "the cat"))])
    np.testing.assert_array_equal(found["log_prob"][:2], [0.0, 0.0])
    np.testing.assert_array_equal(found["score"][:2], [0.0, 0.0])
    assert found["finished"].all() and np.isfinite(found["log_prob"]).all()
    of_end = whole_pass(trained.model, ids_of(0, FRENCH[1]), [ENDS])
    assert found["log_prob"][2] == pytest.approx(of_end.sum(), abs=1e-4)
    of_nothing = whole_pass(trained.model, [ENDS], ids_of(1, "the cat"))
    assert found["log_prob"][3] == pytest.approx(of_nothing.sum(), abs=1e-3)
    alone = score(trained, [""], [""])
    assert alone["log_prob"].tolist() == [0.0] and alone["length"].tolist() == [0]


def test_what_is_too_long_is_cut_and_end_is_not_asked(trained):
    short = Translator(
        trained.model, *tokenizers(), DecodingOptions(max_source_length=9, extra_length=4)
    )
    assert short.options.max_target_length == 13
    found = score(short, FRENCH[:3], ["x", ENGLISH[1], ENGLISH[2]])
    for row, english in enumerate(["x", ENGLISH[1], ENGLISH[2]]):
        source = [*ids_of(0, FRENCH[row])[:-1][:8], ENDS]
        target = ids_of(1, english)[:13]
        expected = whole_pass(trained.model, source, target).sum()
        assert found["log_prob"][row] == pytest.approx(expected, abs=1e-3)
        assert found["length"][row] == len(target)
        assert found["finished"][row] == (target[-1] == ENDS)
    assert found["finished"].tolist() == [True, True, False]


@pytest.mark.case("53")
def test_pairs_in_batches_are_scored_as_if_alone(trained, caplog):
    """Of any length, in any order, with one that is cut and named."""
    pairs = [*zip(FRENCH, ENGLISH, strict=True), ("", ""), ("la", ""), (FRENCH[0], "the " * 600)]
    pairs = pairs[::-1] * 2
    watched = []
    found = list(
        trained.score(
            iter(pairs),
            batching=Batching(batch_tokens=150),
            watch=lambda *told: watched.append(told),
        )
    )
    assert len(found) == len(pairs) == sum(rows for rows, _ in watched) and len(watched) > 5
    limit = trained.options.max_target_length
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 2 and f"is cut at {limit}" in messages[0]
    assert messages[0].startswith("Line 1: the target has ")
    for one, (source, target) in zip(found, pairs, strict=True):
        alone = score(trained, [source], [target])
        assert one["log_prob"] == pytest.approx(alone["log_prob"][0], abs=1e-3)
        assert one["length"] == alone["length"][0]
        assert one["truncated"] == (one["length"] == limit) == (not one["finished"])
        np.testing.assert_allclose(
            one["token_log_probs"][: one["length"]],
            alone["token_log_probs"][0, : one["length"]],
            atol=1e-4,
        )


def test_sides_of_other_lengths_are_refused(trained):
    with pytest.raises(ValueError):
        list(trained.score(FRENCH, ENGLISH[:-1]))


def test_pads_behind_change_nothing(trained):
    source, target = ids_of(0, FRENCH[3]), ids_of(1, ENGLISH[3])
    short = trained.score_ids([source], [target])
    padded = trained.score_ids([[*source, 0, 0]], [[*target, 0, 0, 0]])
    assert padded["log_prob"].numpy() == pytest.approx(short["log_prob"].numpy(), abs=1e-5)
    assert padded["length"].numpy() == short["length"].numpy() == len(target)


def test_tokenizers_of_other_vocabularies_are_refused():
    model = build_transformer(config_of())
    fill_with_random(model, seed=1)
    source, target = tokenizers()
    with pytest.raises(InputError, match="source tokenizer .* different vocabularies: 45 and 55"):
        Translator(model, target, target)

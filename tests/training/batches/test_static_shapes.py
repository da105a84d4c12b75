"""Batches of a few fixed shapes, filled up with rows of PAD, which change nothing."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.tiny_run import PAIRS
from tests.training.batches.test_batching import Numbers, make, numbers_of, random_lengths
from tf_transformer.config import PAD_ID, TransformerConfig
from tf_transformer.model import build_transformer
from tf_transformer.tokenizers import SentencePieceTokenizer
from training.batches.batching import Batches
from training.corpora.corpus import Corpus
from training.objective.losses import SmoothedCrossEntropy
from training.objective.metrics import TokenAccuracy, TokenNLL


def shapes_of(batches, epochs):
    return {
        (inputs["encoder_token_ids"].shape, inputs["decoder_token_ids"].shape, labels.shape)
        for epoch in epochs
        for inputs, labels in batches.epoch(epoch)
    }


def test_every_pair_once_in_a_few_shapes_within_the_budget():
    lengths = random_lengths(700, longest=100)
    fixed, free = (make(lengths, batch_tokens=800, static_shapes=each) for each in (True, False))
    for epoch in (None, 0, 1):
        seen = list(fixed.epoch(epoch))
        assert len(seen) == len(fixed)
        numbers = [n for batch in seen for n in numbers_of(batch) if n >= 0]
        assert sorted(numbers) == list(range(700))
    shapes = shapes_of(fixed, (None, 0, 1))
    assert len(shapes) <= 10 < len(shapes_of(free, (None, 0, 1)))
    for encoder, decoder, labels in shapes:
        assert encoder == decoder == labels
        assert encoder[0] * encoder[1] <= 800 and encoder[1] % 8 == 0
        assert encoder[0] % 8 == 0 or encoder[0] < 8
    assert fixed.target_tokens == free.target_tokens


def test_the_widths_by_hand():
    """8, 16, 24, 32, 40, then a quarter more: 50 is 56, 70 is 72; of 400 tokens 50, 25, 16, ..."""
    lengths = [(n, n) for n in (1, 15, 16, 40, 56, 70)]  # END is one more
    fixed = shapes_of(make(lengths, batch_tokens=400, static_shapes=True), (0,))
    assert {labels for _, _, labels in fixed} == {(48, 8), (24, 16), (16, 24), (7, 56), (5, 72)}


def test_a_pair_as_long_as_the_budget():
    (batch,) = make([(79, 3)], batch_tokens=80, max_length=None, static_shapes=True).epoch(0)
    assert batch[1].shape == (1, 80) and numbers_of(batch) == [0]


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_sampled_sentences_fit_and_every_epoch_has_as_many_batches(kind):
    texts = [side for pair in PAIRS for side in pair]
    words = SentencePieceTokenizer.train(texts, 120, model_type=kind)
    source, target = zip(*PAIRS * 4, strict=True)
    batches = Batches(
        *(Corpus(list(source), list(target)), words, words, 400),
        **{"static_shapes": True, "sampling": ("source", "target"), "pad_to_multiple_of": 4},
    )
    decode = words._python.decode
    for epoch in range(3):
        seen = list(batches.epoch(epoch))
        assert len(seen) == len(batches)
        rows = [row[row > 3].tolist() for inputs, _ in seen for row in inputs["encoder_token_ids"]]
        assert sorted(decode(row) for row in rows if row) == sorted(source)
    assert len(shapes_of(batches, range(3))) <= 6


# What the empty rows do.


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(3)
    config = TransformerConfig(
        source_vocabulary_size=40,
        target_vocabulary_size=40,
        num_layers=2,
        hidden_dim=16,
        num_heads=2,
        intermediate_dim=32,
        dropout=0.0,
    )
    built = build_transformer(config)
    built.compile(
        keras.optimizers.SGD(0.1),
        loss=SmoothedCrossEntropy(0.1),
        metrics=[TokenNLL(), TokenAccuracy()],
    )
    return built


def small(static):
    """Seven pairs of small ids, in one batch."""
    random = np.random.default_rng(5)
    sides = [
        [" ".join(map(str, random.integers(4, 40, n))) for n in random.integers(1, 7, 7)]
        for _ in range(2)
    ]
    batches = Batches(Corpus(*sides), Numbers(), Numbers(), 200, static_shapes=static)
    (batch,) = batches.epoch(None)
    return batch


def loss_and_gradients(model, batch):
    inputs, labels = batch
    with tf.GradientTape() as tape:
        loss = model.compute_loss(inputs, labels, model(inputs, training=True))
    return loss, tape.gradient(loss, [weight.value for weight in model.trainable_variables])


@pytest.mark.case("23")
def test_rows_of_pads_change_neither_loss_nor_gradients_nor_metrics(model):
    filled, plain = small(static=True), small(static=False)
    assert len(plain[1]) == 7 and len(filled[1]) == 24
    assert (filled[1][7:] == PAD_ID).all()
    assert all((array[7:] == PAD_ID).all() for array in filled[0].values())
    loss, gradients = loss_and_gradients(model, filled)
    expected, expected_gradients = loss_and_gradients(model, plain)
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    for ours, theirs in zip(gradients, expected_gradients, strict=True):
        ours, theirs = tf.convert_to_tensor(ours), tf.convert_to_tensor(theirs)
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-7)
    found, wanted = (
        model.evaluate(*batch, batch_size=64, verbose=0, return_dict=True)
        for batch in (filled, plain)
    )
    assert found == pytest.approx(wanted, rel=1e-5)

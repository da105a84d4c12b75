"""R-Drop (arXiv 2106.14448), its equations in NumPy, and the step that makes it."""

import keras
import numpy as np
import pytest

from tf_transformer import TransformerConfig, build_transformer
from training.losses import SmoothedCrossEntropy
from training.r_drop import divergence, twice
from training.trainer import Trainer


def log_softmax(logits):
    logits = logits - logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def two_passes(B=3, T=5, V=7):
    random = np.random.default_rng(3)
    labels = random.integers(1, V, (B, T))
    labels[0, 3:] = labels[2, 1:] = 0
    return np.tile(labels, (2, 1)), random.normal(0, 2, (2 * B, T, V)).astype("float32")


def symmetric_divergence(labels, logits):
    first, second = np.split(log_softmax(logits.astype("float64")), 2)
    forth = (np.exp(first) * (first - second)).sum(-1)
    back = (np.exp(second) * (second - first)).sum(-1)
    live = np.split(labels, 2)[0] != 0
    return ((forth + back) / 2)[live].mean()


def test_divergence_equals_the_two_kl_terms_of_real_tokens():
    labels, logits = two_passes()
    expected = symmetric_divergence(labels, logits)
    logits[labels == 0] = np.nan
    assert float(divergence(labels, logits)) == pytest.approx(expected, rel=1e-5)


def test_a_batch_without_a_real_token_diverges_by_nothing():
    assert float(divergence(np.zeros((2, 3), int), np.ones((2, 3, 4)))) == 0


def test_twice_keeps_the_structure():
    batch = ({"a": np.arange(2)}, np.ones((2, 3)))
    inputs, labels = twice(batch)
    np.testing.assert_array_equal(inputs["a"], [0, 1, 0, 1])
    assert labels.shape == (4, 3)


def small(r_drop, dropout):
    keras.utils.set_random_seed(5)
    config = TransformerConfig(
        source_vocabulary_size=11,
        target_vocabulary_size=11,
        num_layers=1,
        hidden_dim=8,
        num_heads=2,
        intermediate_dim=16,
        dropout=dropout,
    )
    trainer = Trainer(build_transformer(config), r_drop)
    trainer.compile(keras.optimizers.SGD(0.5), SmoothedCrossEntropy(0.1))
    return trainer


def batch():
    random = np.random.default_rng(1)
    ids = random.integers(4, 11, (3, 4)).astype("int32")
    labels = random.integers(4, 11, (3, 6)).astype("int32")
    labels[1, 2:] = 0
    decoder = np.concatenate([np.full((3, 1), 2, "int32"), labels[:, :-1]], axis=1)
    return {"encoder_token_ids": ids, "decoder_token_ids": decoder}, labels


def test_only_training_pays_for_the_divergence():
    trainer = small(r_drop=3.0, dropout=0.0)
    labels, logits = two_passes()
    plain = float(SmoothedCrossEntropy(0.1)(labels, logits))
    cost = float(trainer.compute_loss(y=labels, y_pred=logits, training=True))
    expected = plain + 3.0 / 2 * symmetric_divergence(labels, logits)
    assert cost == pytest.approx(expected, rel=1e-5)
    assert float(trainer.compute_loss(y=labels, y_pred=logits, training=False)) == plain


def test_two_equal_passes_are_one():
    x, y = batch()
    once, both = small(0.0, dropout=0.0), small(5.0, dropout=0.0)
    for trainer in (once, both):
        trainer.train_on_batch(x, y)
    for a, b in zip(once.get_weights(), both.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_two_passes_have_other_dropout():
    x, y = batch()
    with_r_drop, without = small(5.0, dropout=0.5), small(1e-9, dropout=0.5)
    assert with_r_drop.train_on_batch(x, y) > 1.01 * without.train_on_batch(x, y)

"""R-Drop (arXiv 2106.14448), its equations in NumPy; the training step in all its forms."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import oracle
from tf_transformer import TransformerConfig, build_transformer
from tf_transformer.model import under_policy
from training.batches.feed import stack
from training.objective.losses import SmoothedCrossEntropy
from training.objective.r_drop import divergence, twice
from training.trainer import Trainer

IDS = tf.TensorSpec([None, None], tf.int32)
SIGNATURE = ({"encoder_token_ids": IDS, "decoder_token_ids": IDS}, IDS)


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
    costs = np.asarray(divergence(labels, logits))
    assert costs.shape == (3, 5) and (costs[labels[:3] == 0] == 0).all()
    assert costs.sum() / (labels[:3] != 0).sum() == pytest.approx(expected, rel=1e-5)


def test_a_batch_without_a_real_token_diverges_by_nothing():
    assert not np.asarray(divergence(np.zeros((2, 3), int), np.ones((2, 3, 4)))).any()


def test_twice_keeps_the_structure():
    batch = ({"a": np.arange(2)}, np.ones((2, 3)))
    inputs, labels = twice(batch)
    np.testing.assert_array_equal(inputs["a"], [0, 1, 0, 1])
    assert labels.shape == (4, 3)


def small(r_drop, dropout, clip=None, rate=0.5, precision="float32", jit=False):
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
    with under_policy(precision):
        trainer = Trainer(build_transformer(config), r_drop, jit)
    optimizer = keras.optimizers.SGD(rate, global_clipnorm=clip)
    if precision == "mixed_float16":
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    trainer.compile(optimizer, SmoothedCrossEntropy(0.1), jit_compile=False)
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


def loss_of(trainer, x, y):
    return trainer.train_on_batch(x, y, return_dict=True)["loss"]


def test_two_passes_have_other_dropout():
    x, y = batch()
    with_r_drop, without = small(5.0, dropout=0.5), small(1e-9, dropout=0.5)
    assert loss_of(with_r_drop, x, y) > 1.01 * loss_of(without, x, y)


def parts_of(x, y):
    """A batch as three of other shapes, the second without a real token, as one element."""

    def rows(begin, end):
        return {name: ids[begin:end] for name, ids in x.items()}, y[begin:end]

    nothing = ({name: np.zeros_like(ids[:1]) for name, ids in x.items()}, np.zeros_like(y[:1]))
    return stack([rows(0, 1), nothing, rows(1, 3)])


@pytest.mark.parametrize("clip", [None, 0.1])
@pytest.mark.parametrize("r_drop", [0.0, 5.0])
def test_several_batches_make_the_update_of_one_big_batch(clip, r_drop):
    """Weights and loss within float32, though the batches have 2, 0 and 8 tokens."""
    x, y = batch()
    y[0, 2:] = 0
    whole, parts = small(r_drop, dropout=0.0, clip=clip), small(r_drop, dropout=0.0, clip=clip)
    for _ in range(3):
        loss, again = loss_of(whole, x, y), loss_of(parts, *parts_of(x, y))
        assert again == pytest.approx(loss, rel=1e-5)
    for a, b in zip(whole.get_weights(), parts.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
    assert int(parts.optimizer.iterations.value) == 3


def test_what_is_logged_are_means_of_all_real_tokens():
    trainer = small(0.0, dropout=0.0, rate=0.0)  # the weights stay
    x, y = batch()
    short = {name: ids[1:2] for name, ids in x.items()}, y[1:2]
    trainer.train_on_batch(x, y)
    trainer.totals.reset_state()
    logits = [np.asarray(trainer(inputs)) for inputs in (x, short[0])]
    data = tf.data.Dataset.from_generator(lambda: [(x, y), short], output_signature=SIGNATURE)
    logs = trainer.evaluate(data, return_dict=True, verbose=0)
    labels = [y, short[1]]
    live = [ids != 0 for ids in labels]
    for name, eps in (("loss", 0.1), ("nll", 0.0)):
        costs = [
            oracle.label_smoothed_cross_entropy(rows, ids, eps)[real]
            for rows, ids, real in zip(logits, labels, live, strict=True)
        ]
        assert logs[name] == pytest.approx(np.concatenate(costs).mean(), rel=1e-5)
    right = [
        (rows.argmax(-1) == ids)[real] for rows, ids, real in zip(logits, labels, live, strict=True)
    ]
    assert logs["accuracy"] == pytest.approx(np.concatenate(right).mean())


@pytest.mark.parametrize("precision", ["float32", "mixed_float16"])
def test_the_gradient_norm_is_that_of_the_step(precision):
    """Plain SGD: the weights go by rate x gradient. Logged is the norm before clipping."""
    x, y = batch()
    trainer = small(0.0, dropout=0.0, rate=0.25, precision=precision)
    before = trainer.get_weights()
    logs = trainer.train_on_batch(x, y, return_dict=True)
    moved = [a - b for a, b in zip(before, trainer.get_weights(), strict=True)]
    norm = np.sqrt(sum((x.astype("float64") ** 2).sum() for x in moved)) / 0.25
    assert logs["gradient_norm"] == pytest.approx(
        norm, rel=1e-4 if precision == "float32" else 1e-2
    )
    clipped = small(0.0, dropout=0.0, clip=float(norm) / 10, precision=precision)
    again = clipped.train_on_batch(*parts_of(x, y), return_dict=True)
    assert again["gradient_norm"] == pytest.approx(logs["gradient_norm"], rel=1e-2)


def test_r_drop_logs_a_token_once():
    """Without dropout both passes are one: loss and NLL are those without R-Drop."""
    x, y = batch()
    once = small(0.0, dropout=0.0).train_on_batch(x, y, return_dict=True)
    both = small(5.0, dropout=0.0).train_on_batch(x, y, return_dict=True)
    assert both == pytest.approx(once, rel=1e-5)


@pytest.mark.case("23")
@pytest.mark.parametrize("precision", ["float32", "mixed_float16"])
def test_an_update_without_a_real_token_changes_nothing(precision):
    x, y = batch()
    trainer = small(5.0, dropout=0.5, precision=precision)
    before = trainer.get_weights()
    logs = trainer.train_on_batch(x, np.zeros_like(y), return_dict=True)
    assert logs == {"loss": 0.0, "nll": 0.0, "accuracy": 0.0, "gradient_norm": 0.0}
    for a, b in zip(before, trainer.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_several_batches_in_half_precision():
    x, y = batch()
    whole, parts = (small(0.0, dropout=0.0, precision="mixed_float16") for _ in range(2))
    loss, again = loss_of(whole, x, y), loss_of(parts, *parts_of(x, y))
    assert again == pytest.approx(loss, rel=2e-2)
    for a, b in zip(whole.get_weights(), parts.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, atol=5e-3)


@pytest.mark.case("63")
def test_compiled_passes_give_the_same_update():
    x, y = batch()
    plain, compiled = small(0.0, dropout=0.0), small(0.0, dropout=0.0, jit=True)
    assert loss_of(compiled, *parts_of(x, y)) == pytest.approx(loss_of(plain, x, y), rel=1e-5)
    for a, b in zip(plain.get_weights(), compiled.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    measured = compiled.test_on_batch(x, y, return_dict=True)
    assert measured == pytest.approx(plain.test_on_batch(x, y, return_dict=True), rel=1e-5)

"""The training step: one update from one batch or several, on one device or many."""

from collections.abc import Callable
from typing import Any, TypeAlias

import keras
import tensorflow as tf
from keras import ops

from tf_transformer.config import PAD_ID

from .objective.losses import over_replicas
from .objective.metrics import TokenTotals
from .objective.r_drop import divergence, twice

Tensor: TypeAlias = keras.KerasTensor
Inputs: TypeAlias = dict[str, Tensor]


class Trainer(keras.Model):
    """A functional model, with the same layers and weights, that trains as a recipe says.

    A training element of `fit` is one update, whatever it is made of: a batch, or the several of
    `training.batches.feed`; under a `tf.distribute` strategy each replica is given its rows of
    them. The gradient is the sum of all tokens' gradients, divided by the number of real target
    tokens of the whole update; then it is clipped, and only then given to the optimizer. Logs are
    sums over real tokens of all replicas: `loss` as compiled, `nll` without smoothing, `accuracy`;
    and, of the last update alone, `gradient_norm` before clipping.

    Args:
        model: from `build_transformer`.
        r_drop: weight of the divergence between two passes with other dropout; 0 makes one pass.
            The loss is the mean of both passes' cross entropy + r_drop / 2 * `divergence`, half
            of the paper's alpha = `r_drop` throughout, so that it compares with the loss without.
        jit: compile the passes through the model with XLA. Not the whole step, as the
            `jit_compile` of `compile` does: replicas could not exchange anything in it.
    """

    def __init__(self, model: keras.Model, r_drop: float = 0.0, jit: bool = False) -> None:
        super().__init__(model.inputs, model.outputs[0], name=model.name)
        self.r_drop = r_drop
        self.jit = jit
        self.totals = TokenTotals()

    @property
    def metrics(self) -> list[keras.metrics.Metric]:
        """What is logged; `compile` takes no others."""
        return [self.totals]

    def train_step(self, data: Any) -> dict[str, Tensor]:
        """One update from (inputs, labels).

        Inputs are the ids `encoder_token_ids` (B, S) and `decoder_token_ids` (B, T), labels (B, T)
        with 0 = pad. With an input `sizes` (K, 3) all have an axis more in front: of the n-th of K
        batches, what counts are the first B rows and S or T columns, `sizes[n]` = (B, S, T).
        """
        inputs, labels, _ = keras.utils.unpack_x_y_sample_weight(data)
        tokens = over_replicas(count_tokens(labels))
        make = self._sum_of_parts if "sizes" in inputs else self._compiled(self._gradients)
        gradients, totals = over_replicas(make(inputs, labels, tokens))
        norm = tf.linalg.global_norm(gradients) / self.optimizer.scale_loss(1.0)
        self._optimizer_for_sums().apply(gradients, self.trainable_variables)
        self.totals.update_state(totals)
        return self._logs(gradient_norm=norm)

    def test_step(self, data: Any) -> dict[str, Tensor]:
        """Measures (inputs, labels), as of `train_step` without `sizes`."""
        inputs, labels, _ = keras.utils.unpack_x_y_sample_weight(data)
        self.totals.update_state(over_replicas(self._compiled(self._measure)(inputs, labels)))
        return self._logs()

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Tensor:
        """The compiled loss of the mean real token of a replica, while training with R-Drop's."""
        share = 2 if training and self.r_drop else 1  # of a token that is there twice
        return ops.divide_no_nan(self._cost(y, y_pred, training), count_tokens(y) / share)

    def _gradients(self, inputs: Inputs, labels: Tensor, tokens: Tensor) -> Any:
        """The part of the update's gradient that this batch gives, and its totals."""
        own_tokens = count_tokens(labels)
        if self.r_drop:
            inputs, labels = twice((inputs, labels))
        variables = [variable.value for variable in self.trainable_variables]
        with tf.GradientTape() as tape:
            logits = self(inputs, training=True)
            cost = self._cost(labels, logits, training=True)
            scaled = self.optimizer.scale_loss(ops.divide_no_nan(cost, tokens))
        gradients = tape.gradient(scaled, variables, unconnected_gradients="zero")
        # Dense: sparse ones, of tables that are only looked up, cannot be added up.
        gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        return gradients, TokenTotals.of(labels, logits, cost, own_tokens)

    def _sum_of_parts(self, inputs: Inputs, labels: Tensor, tokens: Tensor) -> Any:
        """As `_gradients`, summed over several batches, of which one is in memory at a time."""
        make = self._compiled(self._gradients)

        def add(place: Tensor, before: Any) -> Any:
            rows, source, target = tf.unstack(inputs["sizes"][place], num=3)
            batch = {
                "encoder_token_ids": inputs["encoder_token_ids"][place, :rows, :source],
                "decoder_token_ids": inputs["decoder_token_ids"][place, :rows, :target],
            }
            part = make(batch, labels[place, :rows, :target], tokens)
            return place + 1, tf.nest.map_structure(tf.add, before, part)

        nothing = [tf.zeros(v.shape, v.dtype) for v in self.trainable_variables]
        _, sums = tf.while_loop(
            lambda place, _: place < tf.shape(labels)[0],
            add,
            (0, (nothing, TokenTotals.zeros())),
            parallel_iterations=1,
        )
        return sums

    def _measure(self, inputs: Inputs, labels: Tensor) -> Tensor:
        logits = self(inputs, training=False)
        cost = self._cost(labels, logits, training=False)
        return TokenTotals.of(labels, logits, cost, count_tokens(labels))

    def _cost(self, labels: Tensor, logits: Tensor, training: bool) -> Tensor:
        """The compiled loss summed over real tokens; with R-Drop a token is two rows', once."""
        cost = ops.sum(self.loss.call(labels, logits))
        if training and self.r_drop:
            cost = (cost + self.r_drop * ops.sum(divergence(labels, logits))) / 2
        return cost

    def _compiled(self, function: Callable) -> Callable:
        return tf.function(function, jit_compile=True) if self.jit else function

    def _optimizer_for_sums(self) -> keras.optimizers.Optimizer:
        """The optimizer, which must not add up what replicas have added up before.

        Keras adds up after clipping and after looking for infinities (float16): each replica
        would clip its own part, and one could skip an update that another makes.
        """
        if tf.distribute.get_strategy().num_replicas_in_sync > 1:
            inner: Any = getattr(self.optimizer, "inner_optimizer", self.optimizer)
            inner._all_reduce_sum_gradients = lambda pairs: pairs
        return self.optimizer

    def _logs(self, **of_the_update: Tensor) -> dict[str, Tensor]:
        logs = {**self.totals.result(), **of_the_update}
        if isinstance(tf.distribute.get_strategy(), tf.distribute.MultiWorkerMirroredStrategy):
            # Keras takes the mean over axis 0 of each, as if they were no scalars.
            return {name: tf.reshape(value, [1]) for name, value in logs.items()}
        return logs

    def _maybe_symbolic_build(self, iterator: Any = None, data_batch: Any = None) -> None:
        """Nothing: all is built. Keras's fails with several workers (keras#20329)."""


def count_tokens(labels: Tensor) -> Tensor:
    """Real target tokens, a float32 scalar."""
    return ops.sum(ops.cast(ops.not_equal(labels, PAD_ID), "float32"))

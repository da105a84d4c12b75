"""What a training step does beyond Keras's."""

from typing import Any

import keras

from .r_drop import divergence, twice


class Trainer(keras.Model):
    """A functional model, with the same layers and weights, that trains as a recipe says.

    Args:
        model: from `build_transformer`.
        r_drop: weight of the divergence between two passes with other dropout; 0 makes one pass.
            The loss is the mean of both passes' cross entropy + r_drop / 2 * `divergence`, half
            of the paper's alpha = `r_drop` throughout, so that it compares with the loss without.
    """

    def __init__(self, model: keras.Model, r_drop: float = 0.0) -> None:
        super().__init__(model.inputs, model.outputs[0], name=model.name)
        self.r_drop = r_drop

    def train_step(self, data: Any) -> Any:
        """One update; see `keras.Model.train_step`."""
        return super().train_step(twice(data) if self.r_drop else data)

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Any:
        """The compiled loss, while training with the divergence."""
        loss = super().compute_loss(x, y, y_pred, sample_weight, training)
        if training and self.r_drop:
            loss = loss + self.r_drop / 2 * divergence(y, y_pred)
        return loss

"""The model of a recipe with its loss, schedule and optimizer."""

from typing import Any

import keras

from tf_transformer.config import TransformerConfig
from tf_transformer.model import build_transformer, under_policy

from .objective.losses import SmoothedCrossEntropy
from .optimizers.freezing import freeze
from .optimizers.optimizer import OPTIMIZERS
from .optimizers.schedule import SCHEDULES, TransformerSchedule
from .settings.sections import TrainingSettings
from .trainer import Trainer


def compiled(settings: TrainingSettings, config: TransformerConfig) -> Trainer:
    """A new model, its weights drawn from the recipe's seed, ready for `fit`.

    Raises:
        InputError: `freeze` names what is not there.
    """
    keras.utils.set_random_seed(settings.seed)
    with under_policy(settings.precision):
        model = Trainer(build_transformer(config), settings.r_drop, settings.jit_compile)
    freeze(model, settings.freeze)
    model.compile(
        make_optimizer(settings, config.hidden_dim),
        loss=SmoothedCrossEntropy(settings.label_smoothing),
        jit_compile=False,  # the trainer does it
    )
    return model


def make_optimizer(settings: TrainingSettings, hidden_dim: int) -> keras.optimizers.Optimizer:
    """The optimizer of a recipe with its schedule; the loss is scaled under float16."""
    arguments: dict[str, Any] = {"global_clipnorm": settings.clip_norm}
    if settings.ema_decay is not None:
        arguments.update(use_ema=True, ema_momentum=settings.ema_decay)
    if settings.optimizer == "adafactor":
        arguments.update(relative_step=settings.relative_step)
    else:
        arguments.update(beta_1=settings.beta_1, beta_2=settings.beta_2, epsilon=settings.epsilon)
    if settings.weight_decay is not None:
        arguments.update(weight_decay=settings.weight_decay)
    optimizer = OPTIMIZERS[settings.optimizer](make_schedule(settings, hidden_dim), **arguments)
    if settings.precision == "mixed_float16":
        return keras.optimizers.LossScaleOptimizer(optimizer)
    return optimizer


def make_schedule(
    settings: TrainingSettings, hidden_dim: int
) -> keras.optimizers.schedules.LearningRateSchedule:
    """The learning rate of a recipe."""
    if settings.schedule == "transformer":
        return TransformerSchedule(hidden_dim, settings.warmup_steps, settings.learning_rate)
    end = {} if settings.decay_steps is None else {"decay_steps": settings.decay_steps}
    return SCHEDULES[settings.schedule](settings.learning_rate, settings.warmup_steps, **end)

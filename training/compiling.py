"""The model of a recipe with its loss, schedule and optimizer."""

from typing import Any

import keras

from tf_transformer.config import TransformerConfig
from tf_transformer.model import build_transformer, under_policy

from .losses import SmoothedCrossEntropy
from .metrics import TokenAccuracy, TokenNLL
from .optimizer import FusedAdam
from .schedule import TransformerSchedule
from .settings import TrainingSettings
from .trainer import Trainer


def compiled(settings: TrainingSettings, config: TransformerConfig) -> Trainer:
    """A new model, its weights drawn from the recipe's seed, ready for `fit`."""
    keras.utils.set_random_seed(settings.seed)
    with under_policy(settings.precision):
        model = Trainer(build_transformer(config), settings.r_drop)
    model.compile(
        make_optimizer(settings, config.hidden_dim),
        loss=SmoothedCrossEntropy(settings.label_smoothing),
        metrics=[TokenNLL(), TokenAccuracy()],
        jit_compile=settings.jit_compile,
    )
    return model


def make_optimizer(settings: TrainingSettings, hidden_dim: int) -> keras.optimizers.Optimizer:
    """The optimizer of a recipe with its schedule; the loss is scaled under float16."""
    schedule = TransformerSchedule(hidden_dim, settings.warmup_steps, scale=settings.learning_rate)
    optimizer: Any = FusedAdam(
        schedule,
        beta_1=settings.beta_1,
        beta_2=settings.beta_2,
        epsilon=settings.epsilon,
        global_clipnorm=settings.clip_norm,
    )
    if settings.precision == "mixed_float16":
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    return optimizer

"""The updates themselves: `model.fit` from the last update on, with everything around it."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import keras
from rich.console import Console

from tf_transformer.errors import InputError
from tf_transformer.translator import Translator

from .batches.feed import Feed
from .callbacks.attention_images import AttentionImages
from .callbacks.finite_loss import FiniteLoss
from .callbacks.keeper import Keeper, Line
from .callbacks.limits import Limits
from .callbacks.progress import ProgressReport
from .callbacks.stop_signals import StopSignals
from .callbacks.tensorboard import TensorBoardLogs
from .callbacks.updates import Updates
from .callbacks.validation import Validation
from .corpora.corpus import Corpus
from .devices.distribution import Distribution
from .keeping.checkpoints import Checkpoints
from .recipe import Recipe
from .reporting.plots import EXTRA, can_draw
from .reporting.report import LiveReport
from .settings.sections import TrainingSettings


def fit(
    recipe: Recipe,
    run: Path,
    translator: Translator,
    feeds: dict[str, Feed],
    valid: Corpus,
    checkpoints: Checkpoints,
    console: Console,
    distribution: Distribution,
) -> None:
    """Makes the updates of the recipe that are still to be made.

    Args:
        recipe: how long.
        run: the run directory, for history and logs.
        translator: over the compiled model, for samples and BLEU.
        feeds: of "train" and "valid".
        valid: the sentences of the validation split.
        checkpoints: of the model; say which update comes next.
        console: where progress goes.
        distribution: that the model was made for.

    Raises:
        InputError: the loss is no number.
        KeyboardInterrupt: Ctrl-C or SIGTERM; the state was saved.
    """
    last = last_update(recipe.training, len(feeds["train"]))
    agree = distribution.any if distribution.has_peers else None
    signals = StopSignals(agree)
    updates = Updates(checkpoints.state, feeds["train"], signals)
    finite = FiniteLoss(run, updates, translator)
    progress = ProgressReport(console, updates, last)
    logs = TensorBoardLogs(run / "logs", updates)
    validation = Validation(translator, feeds["valid"], valid, recipe.evaluation, distribution)
    readers: list[Callable[[Line], None]] = [progress.tell, logs.tell]
    readers += _images(recipe, translator, logs, console) if distribution.is_chief else []
    report = LiveReport(run) if distribution.is_chief else _no_report
    keeper = Keeper(recipe, checkpoints, updates, finite, validation, readers, report)
    limits = Limits(checkpoints.state, last, recipe.training.max_minutes, agree or bool)
    callbacks: list[keras.callbacks.Callback] = [updates, finite, limits, progress, logs, keeper]
    for callback in callbacks:
        callback.set_model(translator.model)  # `fit` does as well, but there may be none
    with signals:
        try:
            keeper.tidy()
            if keeper.line_is_due(at_the_end=checkpoints.step >= last):
                keeper.write_line(at_the_end=checkpoints.step >= last)  # killed before it was kept
            if checkpoints.step >= last:
                console.print(f"All {last} updates were made before: nothing to train.")
            elif keeper.stops_early():
                console.print(f"{_why_early(recipe, checkpoints)}: nothing to train.")
            else:
                data = partial(distribution.dataset, feeds["train"])
                _fit_from(
                    checkpoints.step, last, len(feeds["train"]), translator.model, data, callbacks
                )
                if keeper.stops_early():
                    console.print(f"{_why_early(recipe, checkpoints)}.")
        except KeyboardInterrupt:
            _save(signals, updates, finite, checkpoints, console)
            raise
        finally:
            progress.close()
            logs.close()


def last_update(settings: TrainingSettings, per_epoch: int) -> int:
    """The update that ends a run of so many updates an epoch, if its minutes do not.

    Raises:
        InputError: the learning rate would be 0 long before.
    """
    last = settings.epochs * per_epoch
    if settings.max_steps is not None:
        last = min(last, settings.max_steps)
    if settings.decay_steps is not None and last > settings.decay_steps:
        raise InputError(
            f"The learning rate is 0 from update {settings.decay_steps} on, but {last} are to be "
            f"made ({settings.epochs} epochs of {per_epoch}): raise training.decay_steps, or set "
            f"training.max_steps to it."
        )
    return last


def _fit_from(
    step: int,
    last: int,
    per_epoch: int,
    model: keras.Model,
    data: Callable[[int], Any],
    callbacks: list[keras.callbacks.Callback],
) -> None:
    # Where a run goes on in the middle of an epoch, the rest of that epoch is a fit of its own.
    epochs = -(-last // per_epoch)
    epoch, made = divmod(step, per_epoch)
    parts = [(epoch, epoch + 1), (epoch + 1, epochs)] if made else [(epoch, epochs)]
    model.stop_training = False
    for begin, end in parts:
        if begin < end and not model.stop_training:
            model.fit(
                data(step),
                initial_epoch=begin,
                epochs=end,
                steps_per_epoch=per_epoch - made,
                callbacks=callbacks,
                shuffle=False,  # the batches are
                verbose=0,
            )
            step, made = end * per_epoch, 0


def _images(
    recipe: Recipe, translator: Translator, logs: TensorBoardLogs, console: Console
) -> list[Callable[[Line], None]]:
    if not can_draw():
        console.print(f"No attention images and curves: these need matplotlib ({EXTRA}).")
        return []
    return [AttentionImages(translator, logs).tell] if recipe.evaluation.samples else []


def _no_report() -> None:
    """What a process that does not write makes of one."""


def _why_early(recipe: Recipe, checkpoints: Checkpoints) -> str:
    metric, state = recipe.evaluation.metric, checkpoints.state
    name = {"nll": "negative log-likelihood", "bleu": "BLEU"}[metric]
    return (
        f"Stopped early after update {state.step}: the {name} of the validation split was best at "
        f"update {state.ranked(metric)[0]} and not in {state.since_best(metric)} evaluations since"
    )


def _save(
    signals: StopSignals,
    updates: Updates,
    finite: FiniteLoss,
    checkpoints: Checkpoints,
    console: Console,
) -> None:
    if signals.held:
        console.print("Stopped inside an update: the same command goes on from the last save.")
        return
    finite.check()
    if not checkpoints.is_saved:  # as before an evaluation, which may leave other weights
        updates.record()
        checkpoints.save_state()
    console.print(
        f"Stopped after update {checkpoints.step}, all of it kept: "
        "the same command goes on from there."
    )

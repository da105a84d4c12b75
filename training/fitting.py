"""The updates themselves: `model.fit` from the last update on, with everything around it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import keras
from rich.console import Console

from tf_transformer.translator import Translator

from .batching import Batches
from .callbacks import Keeper, Limits, SampleTranslations, ValidationBleu
from .checkpoints import Checkpoints
from .corpus import Corpus
from .progress import ProgressReport
from .recipe import Recipe


def fit(
    recipe: Recipe,
    run: Path,
    translator: Translator,
    batches: dict[str, Batches],
    valid: Corpus,
    checkpoints: Checkpoints,
    console: Console,
) -> None:
    """Makes the updates of the recipe that are still to be made.

    Args:
        recipe: how long.
        run: the run directory, for history and logs.
        translator: over the compiled model, for samples and BLEU.
        batches: of "train" and "valid".
        valid: the sentences of the validation split.
        checkpoints: of the model; say which update comes next.
        console: where progress goes.

    Raises:
        KeyboardInterrupt: Ctrl-C or SIGTERM; the state was saved.
    """
    step, per_epoch = checkpoints.step, len(batches["train"])
    last = recipe.training.epochs * per_epoch
    if recipe.training.max_steps is not None:
        last = min(last, recipe.training.max_steps)
    at_an_end = step > 0 and (step % per_epoch == 0 or step >= last)
    if at_an_end and not checkpoints.has_weights():
        checkpoints.save_weights()  # stopped after the epoch's last update, before its keeping
    if step >= last:
        console.print(f"All {last} updates were made before: nothing to train.")
        return
    epochs = -(-last // per_epoch)
    progress = ProgressReport(console, batches["train"], step, epochs)
    greedy = translator.with_options(search="greedy")
    callbacks = [
        *_bleu(recipe, greedy, valid),  # first, so that the others show and log it
        progress,
        *_keepers(recipe, run, checkpoints),
        *_samples(recipe, greedy, valid, console),
    ]
    with _stop_signals():
        try:
            _fit_from(step, epochs, translator.model, batches, callbacks)
        except KeyboardInterrupt:
            checkpoints.save_state()
            console.print(
                f"Stopped after update {checkpoints.step}, all of it kept: "
                "the same command goes on from there."
            )
            raise
        finally:
            progress.close()


def _fit_from(
    step: int,
    epochs: int,
    model: keras.Model,
    batches: dict[str, Batches],
    callbacks: list[keras.callbacks.Callback],
) -> None:
    # Where a run goes on in the middle of an epoch, the rest of that epoch is a fit of its own.
    per_epoch = len(batches["train"])
    epoch, made = divmod(step, per_epoch)
    parts = [(epoch, epoch + 1), (epoch + 1, epochs)] if made else [(epoch, epochs)]
    for begin, end in parts:
        if begin < end and not model.stop_training:
            model.fit(
                batches["train"].dataset(step),
                initial_epoch=begin,
                epochs=end,
                steps_per_epoch=per_epoch - made,
                validation_data=batches["valid"].dataset(None),
                callbacks=callbacks,
                shuffle=False,  # the batches are
                verbose=0,
            )
            step, made = end * per_epoch, 0


def _bleu(recipe: Recipe, greedy: Translator, valid: Corpus) -> list[keras.callbacks.Callback]:
    every = recipe.evaluation.bleu_every_epochs
    return [ValidationBleu(greedy, valid.source, valid.target, every)] if every else []


def _keepers(recipe: Recipe, run: Path, checkpoints: Checkpoints) -> list[keras.callbacks.Callback]:
    settings = recipe.training
    return [
        Limits(checkpoints.step, settings.max_steps, settings.max_minutes),
        Keeper(checkpoints, run / "history.jsonl"),
        keras.callbacks.TensorBoard(run / "logs", write_graph=False, update_freq=100),
    ]


def _samples(
    recipe: Recipe, greedy: Translator, valid: Corpus, console: Console
) -> list[keras.callbacks.Callback]:
    if not recipe.evaluation.samples:
        return []
    first = slice(recipe.evaluation.samples)
    return [SampleTranslations(console, greedy, valid.source[first], valid.target[first])]


@contextmanager
def _stop_signals() -> Iterator[None]:
    """SIGTERM stops as Ctrl-C does."""

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not the main thread: signals stay whose they are
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)

"""train(): from a recipe and a folder of parallel text to a run directory."""

import dataclasses
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import keras
from rich.console import Console

from tf_transformer.config import TransformerConfig
from tf_transformer.model import build_transformer
from tf_transformer.options import DecodingOptions
from tf_transformer.tokenizers import TOKENIZERS, Tokenizer
from tf_transformer.translator import Translator

from .batching import Batches
from .callbacks import Keeper, Limits, SampleTranslations, ValidationBleu
from .checkpoints import Checkpoints, average
from .corpus import Corpus, read_split
from .losses import SmoothedCrossEntropy
from .metrics import TokenAccuracy, TokenNLL
from .progress import ProgressReport
from .recipe import Recipe
from .run_directory import RunDirectory
from .schedule import TransformerSchedule


@dataclasses.dataclass(frozen=True)
class Pair:
    """The tokenizers of both sides; one object twice where they share."""

    source: Tokenizer
    target: Tokenizer


def train(
    recipe: Recipe,
    data_dir: str | os.PathLike[str],
    run_dir: str | os.PathLike[str],
    console: Console | None = None,
) -> Translator:
    """Trains, or goes on with, a run; the translator of its final weights.

    Ctrl-C and SIGTERM keep what was learnt: the same call goes on from the last update.

    Args:
        recipe: from `load_recipe`.
        data_dir: the folder of the corpus, see `read_split`.
        run_dir: new or empty, or a run of the same recipe and vocabulary.
        console: where progress goes; default the terminal.

    Raises:
        InputError: bad data, recipe or run directory; before anything is written to it.
        KeyboardInterrupt: stopped; the state is saved.
    """
    console = console or Console()
    run = RunDirectory(Path(run_dir), recipe)
    corpora = {
        split: read_split(data_dir, split, getattr(recipe.data, split), recipe.data.encoding_errors)
        for split in ("train", "valid")
    }
    tokenizers = _tokenizers(recipe, corpora["train"], run)
    batches = {split: _batches(recipe, corpora[split], tokenizers, split) for split in corpora}
    config = recipe.model.to_config(
        tokenizers.source.vocabulary_size, tokenizers.target.vocabulary_size
    )
    model = _compiled(recipe, config)
    run.begin(config)
    translator = Translator(
        model,
        tokenizers.source,
        tokenizers.target,
        DecodingOptions(**recipe.decoding.model_dump()),
    )
    checkpoints = Checkpoints(run.path, model, recipe.training.keep_checkpoints)
    step = checkpoints.restore()
    _describe(console, recipe, batches["train"], model, step)
    with _stop_signals():
        try:
            _fit(recipe, run, model, translator, batches, corpora["valid"], checkpoints, console)
        except KeyboardInterrupt:
            checkpoints.save_state()
            console.print(
                f"Stopped after update {checkpoints.step}, all of it kept: "
                "the same command goes on from there."
            )
            raise
    average(model, checkpoints.weights()[-recipe.training.average_checkpoints :])
    translator.save(run.path, config)
    console.print(f"The run is complete: {run.path}")
    return Translator.load(run.path)


def _tokenizers(recipe: Recipe, corpus: Corpus, run: RunDirectory) -> Pair:
    settings = recipe.tokenizer
    kind = TOKENIZERS[settings.type]
    options = settings.model_dump(exclude={"type", "shared"})
    files = {side: run.path / f"{side}{kind.suffix}" for side in ("source", "target")}
    if not run.is_new:
        source = kind.load(files["source"])
        return Pair(source, source if settings.shared else kind.load(files["target"]))
    if settings.shared:
        shared = kind.train([*corpus.source, *corpus.target], **options)
        pair = Pair(shared, shared)
    else:
        pair = Pair(kind.train(corpus.source, **options), kind.train(corpus.target, **options))
    run.path.mkdir(parents=True, exist_ok=True)
    pair.source.save(files["source"])
    if not settings.shared:
        pair.target.save(files["target"])
    return pair


def _batches(recipe: Recipe, corpus: Corpus, tokenizers: Pair, split: str) -> Batches:
    return Batches(
        corpus,
        tokenizers.source,
        tokenizers.target,
        batch_tokens=recipe.training.batch_tokens,
        max_length=recipe.data.max_length if split == "train" else None,
        pad_to_multiple_of=recipe.training.pad_to_multiple_of,
        seed=recipe.training.seed,
    )


def _compiled(recipe: Recipe, config: TransformerConfig) -> keras.Model:
    settings = recipe.training
    keras.utils.set_random_seed(settings.seed)
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy(settings.precision)
    try:
        model = build_transformer(config)
    finally:
        keras.config.set_dtype_policy(policy)
    schedule = TransformerSchedule(
        config.hidden_dim, settings.warmup_steps, scale=settings.learning_rate
    )
    optimizer: Any = keras.optimizers.Adam(
        schedule,
        beta_1=settings.beta_1,
        beta_2=settings.beta_2,
        epsilon=settings.epsilon,
        global_clipnorm=settings.clip_norm,
    )
    if settings.precision == "mixed_float16":
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    model.compile(
        optimizer,
        loss=SmoothedCrossEntropy(settings.label_smoothing),
        metrics=[TokenNLL(), TokenAccuracy()],
        jit_compile=settings.jit_compile,
    )
    return model


def _fit(
    recipe: Recipe,
    run: RunDirectory,
    model: keras.Model,
    translator: Translator,
    batches: dict[str, Batches],
    valid: Corpus,
    checkpoints: Checkpoints,
    console: Console,
) -> None:
    settings, per_epoch = recipe.training, len(batches["train"])
    step = checkpoints.step
    last = settings.epochs * per_epoch
    if settings.max_steps is not None:
        last = min(last, settings.max_steps)
    if step >= last:
        console.print(f"All {last} updates were made before: nothing to train.")
        return
    progress = ProgressReport(console, batches["train"], step, -(-last // per_epoch))
    greedy = translator.with_options(search="greedy")
    callbacks: list[keras.callbacks.Callback] = [
        Limits(step, settings.max_steps, settings.max_minutes)
    ]
    if recipe.evaluation.bleu_every_epochs:
        callbacks.append(
            ValidationBleu(greedy, valid.source, valid.target, recipe.evaluation.bleu_every_epochs)
        )
    callbacks += [progress, Keeper(checkpoints, run.path / "history.jsonl")]
    if recipe.evaluation.samples:
        first = slice(recipe.evaluation.samples)
        callbacks.append(
            SampleTranslations(console, greedy, valid.source[first], valid.target[first])
        )
    callbacks.append(
        keras.callbacks.TensorBoard(run.path / "logs", write_graph=False, update_freq=100)
    )
    # Where a run goes on in the middle of an epoch, the rest of that epoch is a fit of its own.
    first_epoch, skipped = divmod(step, per_epoch)
    last_epoch = -(-last // per_epoch)
    parts = [(first_epoch, first_epoch + 1), (first_epoch + 1, last_epoch)]
    if not skipped:
        parts = [(first_epoch, last_epoch)]
    try:
        for begin, end in parts:
            if begin < end and not model.stop_training:
                model.fit(
                    batches["train"].dataset(checkpoints.step),
                    initial_epoch=begin,
                    epochs=end,
                    steps_per_epoch=per_epoch - checkpoints.step % per_epoch,
                    validation_data=batches["valid"].dataset(None),
                    callbacks=callbacks,
                    shuffle=False,  # the batches are
                    verbose=0,
                )
    finally:
        progress.close()


def _describe(
    console: Console, recipe: Recipe, batches: Batches, model: keras.Model, step: int
) -> None:
    languages = f"{recipe.data.source_language} to {recipe.data.target_language}"
    console.print(
        f"[bold]{languages}[/bold]: {len(batches.kept):,} pairs, {batches.target_tokens:,} target "
        f"tokens and {len(batches)} batches an epoch; {model.count_params():,} parameters."
    )
    if step:
        console.print(f"Going on from update {step}.")


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

"""train(): from a recipe and a folder of parallel text to a run directory."""

import os
from functools import partial
from pathlib import Path
from typing import Any

import keras
from rich.console import Console

from tf_transformer.options import DecodingOptions
from tf_transformer.translator import Translator

from .batches.batching import Batches
from .batches.feed import Feed
from .compiling import compiled
from .corpora.corpus import Corpus
from .corpora.splits import Given, read_splits
from .corpora.tokenizer_pair import TokenizerPair, tokenizers_of
from .devices.distribution import Distribution
from .devices.peers import check_equal, run_directory_of, share_state, share_tokenizers
from .evaluate import check_installed
from .fitting import fit, last_update
from .keeping.averaging import average
from .keeping.checkpoints import Checkpoints
from .keeping.provenance import record_final_weights, record_start
from .keeping.run_directory import RunDirectory
from .keeping.warm_start import warm_start
from .optimizers.freezing import count_frozen
from .recipe import Recipe
from .reporting.report import REPORT_FILE, write_report


def train(
    recipe: Recipe,
    data_dir: str | os.PathLike[str] | None,
    run_dir: str | os.PathLike[str],
    console: Console | None = None,
    corpora: Given | None = None,
) -> Translator:
    """Trains, or goes on with, a run; the translator of its final weights.

    Ctrl-C and SIGTERM keep what was learnt: the same call goes on from the last update.

    Args:
        recipe: from `load_recipe`.
        data_dir: the folder of the corpus, see `read_split`; None where it takes no file.
        run_dir: new or empty, or a run of the same recipe and vocabulary.
        console: where progress goes; default the terminal.
        corpora: by split, "train" or "valid", a corpus to take instead of files: any iterable of
            pairs of texts, a `tf.data.Dataset` of them, or a `Corpus`; see `corpus_of` and `mix`.

    Raises:
        InputError: bad data, recipe or run directory; before anything is written to it.
        KeyboardInterrupt: stopped; the state is saved.
    """
    console = console or Console()
    options = DecodingOptions(**recipe.decoding.model_dump())
    if recipe.evaluation.bleu != "none":
        check_installed()  # not after the first epoch
    distribution = Distribution.open(recipe.training, console.print)
    splits = read_splits(recipe.data, data_dir, corpora)
    with run_directory_of(distribution, Path(run_dir)) as path:
        run = RunDirectory(path, recipe)
        own_console = console if distribution.is_chief else Console(quiet=True)
        return _train(recipe, options, run, splits, distribution, own_console)


def _train(
    recipe: Recipe,
    options: DecodingOptions,
    run: RunDirectory,
    splits: dict[str, Corpus],
    distribution: Distribution,
    console: Console,
) -> Translator:
    check_equal(distribution, recipe, splits["train"])
    known = None if run.is_new else run.path
    make = partial(tokenizers_of, recipe.tokenizer, splits["train"], known)
    tokenizers = share_tokenizers(distribution, make, recipe.tokenizer)
    feeds = {split: _feed(recipe, splits[split], tokenizers, split) for split in splits}
    last_update(recipe.training, len(feeds["train"]))  # refuses now what would fail later
    config = recipe.model.to_config(
        tokenizers.source.vocabulary_size, tokenizers.target.vocabulary_size
    )
    run.compare(config, splits["train"])
    with distribution.scope():
        model = compiled(recipe.training, config)
        checkpoints = Checkpoints(run.path, model, distribution.is_chief)
    translator = Translator(model, tokenizers.source, tokenizers.target, options)
    step = checkpoints.restore()
    origin = None if checkpoints.has_state() else recipe.training.warm_start
    if origin is not None and distribution.is_chief:
        sides, seed = (tokenizers.source, tokenizers.target), recipe.training.seed
        console.print(warm_start(model, config, sides, Path(origin), seed), markup=False)
    run.begin(config, splits["train"], tokenizers.files())
    checkpoints.clean()
    record_start(run.path, splits, feeds, translator, step)
    if origin is not None:
        checkpoints.save_state()  # from here on the other run is not needed
    share_state(distribution, checkpoints)
    distribution.draw_apart(model)
    _describe(console, recipe, feeds["train"], model, step)
    fit(recipe, run.path, translator, feeds, splits["valid"], checkpoints, console, distribution)
    files = _final_files(recipe, checkpoints)
    if distribution.is_chief:
        which = "those of" if len(files) == 1 else "the mean of"
        console.print(f"The final weights are {which} {', '.join(file.name for file in files)}.")
        average(model, files)
    distribution.share(model.weights)
    translator.save(run.path, config)
    if distribution.is_chief:
        record_final_weights(run.path, files, checkpoints.step)
        write_report(run.path)
    console.print(f"The run is complete: {run.path}. What it was is told in {REPORT_FILE} there.")
    return Translator.load(run.path)


def _final_files(recipe: Recipe, checkpoints: Checkpoints) -> list[Path]:
    """The weight files whose mean is the result; fewer than asked for when fewer are there."""
    number = recipe.training.average_checkpoints
    if recipe.training.final_weights == "last":
        return checkpoints.weights()[-number:]
    ranked = checkpoints.state.ranked(recipe.evaluation.metric)
    return checkpoints.weights([step for step in ranked if checkpoints.weights([step])][:number])


def _feed(recipe: Recipe, corpus: Corpus, tokenizers: TokenizerPair, split: str) -> Feed:
    settings = recipe.training
    only_training: dict[str, Any] = {"max_length": None}  # all of the validation split counts
    if split == "train":
        sides = settings.subword_sampling
        only_training = {
            "max_length": recipe.data.max_length,
            "max_length_ratio": recipe.data.max_length_ratio,
            "sampling": ("source", "target") if sides == "both" else (sides,),
            "alpha": settings.subword_alpha,
            "word_dropout": settings.word_dropout,
        }
    batches = Batches(
        corpus,
        tokenizers.source,
        tokenizers.target,
        batch_tokens=settings.batch_tokens,
        pad_to_multiple_of=settings.pad_to_multiple_of,
        static_shapes=settings.static_shapes,
        seed=settings.seed,
        **only_training,
    )
    return Feed(batches, settings.batches_per_update if split == "train" else 1)


def _describe(console: Console, recipe: Recipe, feed: Feed, model: keras.Model, step: int) -> None:
    batches = feed.batches
    updates = "" if len(feed) == len(batches) else f" in {len(feed)} updates"
    languages = f"{recipe.data.source_language} to {recipe.data.target_language}"
    frozen = count_frozen(model)
    console.print(
        f"[bold]{languages}[/bold]: {len(batches.kept):,} pairs, {batches.target_tokens:,} target "
        f"tokens and {len(batches)} batches{updates} an epoch; "
        f"{model.count_params():,} parameters"
        + (f", {frozen:,} of them frozen." if frozen else ".")
    )
    if step:
        console.print(f"Going on from update {step}.")

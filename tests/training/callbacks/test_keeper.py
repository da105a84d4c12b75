"""training/callbacks/keeper.py: when a run is measured, what of it is kept, when it stops early."""

import itertools
import json

import keras
import numpy as np
import pytest

from training.callbacks.finite_loss import FiniteLoss
from training.callbacks.keeper import Keeper
from training.callbacks.stop_signals import StopSignals
from training.callbacks.updates import Updates
from training.keeping.checkpoints import Checkpoints
from training.recipe import load_recipe
from training.train import _final_files

EPOCH = 4  # updates


class Batches:
    """Of an epoch."""

    def __len__(self):
        return EPOCH

    def token_counts(self, epoch):
        return [10] * EPOCH


class Process:
    """A process that trains in a directory, without training: update n makes all weights n.

    `values` gives what an evaluation after an update finds.
    """

    def __init__(self, run, values, *settings, metric="nll"):
        x = keras.Input((2,))
        self.model = keras.Model(x, keras.layers.Dense(2)(x))
        self.model.compile("adam", "mse")
        self.recipe = load_recipe("demo", settings)
        self.checkpoints = Checkpoints(run, self.model)
        self.checkpoints.restore()
        self.checkpoints.clean()
        self.told = []
        self.values = values
        self.metric = metric
        updates = Updates(self.checkpoints.state, Batches(), StopSignals())
        finite = FiniteLoss(run, updates, type("Translator", (), {"tokenizers": None}))
        self.keeper = Keeper(
            self.recipe, self.checkpoints, updates, finite, self.evaluate, [self.told.append]
        )
        self.callbacks = [updates, finite, self.keeper]
        for callback in self.callbacks:
            callback.set_model(self.model)
        self.model.stop_training = False

    def evaluate(self):
        value = self.values[self.checkpoints.step]
        if isinstance(value, BaseException):
            raise value
        return {f"val_{self.metric}": value}

    def train(self, last, stop=None):
        """Up to the update `last`, as `fit` does, or to Ctrl-C after `stop`; where it is then."""
        self.keeper.tidy()
        if self.keeper.line_is_due():
            self.keeper.write_line()
        self.model.stop_training = self.keeper.stops_early()
        first = self.checkpoints.step
        while self.checkpoints.step < last and not self.model.stop_training:
            step = self.checkpoints.step
            if step % EPOCH == 0 or step == first:
                for callback in self.callbacks:
                    callback.on_epoch_begin(step // EPOCH)
            for callback in self.callbacks:
                callback.on_train_batch_begin(step)
            self.model.set_weights([np.full_like(w, step + 1) for w in self.model.get_weights()])
            self.model.stop_training = step + 1 == last
            for callback in self.callbacks:
                callback.on_train_batch_end(step, {"loss": 1.0})
            if step + 1 == stop:
                self.callbacks[0].record()
                self.checkpoints.save_state()
                break
        return self.checkpoints.step

    def final(self):
        return [int(path.name.split("-")[1].split(".")[0]) for path in self.files()]

    def files(self):
        return _final_files(self.recipe, self.checkpoints)


@pytest.fixture
def run(tmp_path):
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


def history(run):
    return [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]


def evaluated(run, name="val_nll"):
    return [line["step"] for line in history(run) if name in line]


@pytest.mark.parametrize(
    ("settings", "lines", "evaluations"),
    [
        ([], [4, 8, 10], [4, 8, 10]),
        (["evaluation.every_epochs=2"], [4, 8, 10], [8, 10]),
        (["evaluation.every_steps=3"], [3, 4, 6, 8, 9, 10], [3, 4, 6, 8, 9, 10]),
        (["evaluation.every_steps=8", "evaluation.every_epochs=9"], [4, 8, 10], [8, 10]),
    ],
)
def test_when_a_run_is_told_and_measured(run, settings, lines, evaluations):
    process = Process(run, dict.fromkeys(range(20), 2.0), *settings)
    assert process.train(10) == 10  # in the middle of the third epoch
    assert [line["step"] for line in history(run)] == lines == [x["step"] for x in process.told]
    assert evaluated(run) == evaluations
    assert [line["epoch"] for line in history(run)] == [step / EPOCH for step in lines]


NLL = {2: 5.0, 4: 4.0, 6: 3.0, 8: 3.5, 10: 3.0, 12: 3.2, 14: 3.1, 16: 1.0}
EARLY = ("evaluation.every_steps=2", "training.patience=3", "training.keep_checkpoints=2")


def test_a_run_stops_early_when_patience_is_over(run):
    """Best at update 6, of which 10 is only as good: 8, 10 and 12 were no better."""
    assert Process(run, NLL, *EARLY).train(20) == 12
    again = Process(run, NLL, *EARLY)
    assert again.keeper.stops_early()
    more = Process(run, NLL, *EARLY, "training.patience=5")
    assert not more.keeper.stops_early()
    assert more.train(16) == 16  # 14 is the fourth, 16 is better
    assert more.checkpoints.state.since_best("nll") == 0


def test_more_bleu_is_better(run):
    bleu = {2: 5.0, 4: 9.0, 6: 8.0, 8: 9.0, 10: 7.0, 12: 50.0}
    settings = (*EARLY, "evaluation.bleu=greedy", "evaluation.metric=bleu")
    process = Process(run, bleu, *settings, metric="bleu")
    assert process.train(20) == 10
    assert process.checkpoints.state.ranked("bleu") == [4, 8, 6, 10, 2]


@pytest.mark.parametrize("stops", [(1, 2, 5, 9, 11), (3, 4, 6, 7, 8, 10), (12,)])
def test_patience_and_the_best_survive_a_stop(run, stops):
    best = (*EARLY, "training.final_weights=best", "training.average_checkpoints=2")
    for step in stops:
        assert Process(run, NLL, *best).train(20, stop=step) == step
    process = Process(run, NLL, *best)
    assert process.train(20) == 12
    assert evaluated(run) == [2, 4, 6, 8, 10, 12]
    assert process.final() == [6, 10]


def test_an_evaluation_that_was_cut_short_is_made_up_for(run):
    values = {**dict.fromkeys(range(20), 2.0), 8: KeyboardInterrupt()}
    process = Process(run, values)
    with pytest.raises(KeyboardInterrupt):
        process.train(12)
    assert evaluated(run) == [4] and process.checkpoints.is_saved
    again = Process(run, {**values, 8: 1.5})
    assert again.checkpoints.step == 8
    again.train(12)
    assert [(x["step"], x["val_nll"]) for x in history(run)] == [(4, 2.0), (8, 1.5), (12, 2.0)]
    assert history(run)[1]["loss"] == 1.0


@pytest.mark.parametrize(
    ("which", "kept", "final"), [("last", [8, 10, 12], [10, 12]), ("best", [6, 10, 12], [6, 10])]
)
def test_the_last_or_the_best_are_kept_and_chosen(run, which, kept, final):
    values = {**NLL, 12: 9.0}
    settings = (f"training.final_weights={which}", "training.average_checkpoints=2")
    keep = "training.keep_checkpoints=3" if which == "last" else "training.keep_checkpoints=2"
    process = Process(run, values, "evaluation.every_steps=2", *settings, keep)
    process.train(12)
    names = [path.name for path in process.checkpoints.weights()]
    assert names == [f"step-{step}.weights.h5" for step in kept]
    assert process.final() == final


def test_the_best_of_what_is_there(run):
    """Kept were the last; who asks for the best afterwards gets the best of these."""
    Process(run, NLL, "evaluation.every_steps=2", "training.keep_checkpoints=2").train(12)
    settings = ("training.final_weights=best", "training.average_checkpoints=1")
    assert Process(run, NLL, *settings).final() == [10]


def test_minutes_between_two_saves(run, monkeypatch):
    clock = itertools.count(0, 20)  # seconds, at each look
    monkeypatch.setattr("training.callbacks.keeper.time.monotonic", lambda: next(clock))
    monkeypatch.setattr(Batches, "__len__", lambda self: 1000)
    monkeypatch.setattr(Batches, "token_counts", lambda self, epoch: [1] * 1000)
    process = Process(run, {12: 2.0}, "training.save_every_minutes=1")
    save, saved = process.checkpoints.save_state, []

    def save_state():
        saved.append(process.checkpoints.step)
        save()

    monkeypatch.setattr(process.checkpoints, "save_state", save_state)
    process.train(12)
    # The fourth look after a save is the first past 60 s; at the end before and after measuring.
    assert saved == [4, 8, 12, 12]

"""`tf-transformer train` itself: the whole of it, stopped by the clock."""

from pathlib import Path

from .train_batches import recipe_of
from .train_clock import Clock, Finished


def run(size: str, data: Path, folder: Path, clock: Clock, batch_tokens: int) -> None:
    """A run of the recipe in `folder`, with its pipeline, logs and saves."""
    from rich.console import Console

    from training.callbacks.keeper import Keeper
    from training.train import train

    last = Keeper.on_train_batch_end  # of the last of the run's callbacks
    counts: dict[int, list[int]] = {}

    def told(self: Keeper, batch: int, logs=None) -> None:
        last(self, batch, logs)
        feed = self.updates.batches
        epoch, place = divmod(self.updates.state.step - 1, len(feed))
        if epoch not in counts:
            counts[epoch] = feed.token_counts(epoch)
        clock.update(counts[epoch][place])

    Keeper.on_train_batch_end = told
    recipe = recipe_of(size, folder, batch_tokens)
    try:
        train(recipe, data, folder / "run", Console(stderr=True))
    except Finished:
        pass

"""How long a run lasts at most."""

import time
from collections.abc import Callable
from typing import Any

import keras

from ..keeping.run_state import RunState


class Limits(keras.callbacks.Callback):
    """Stops after a number of updates or minutes.

    Args:
        state: says how many updates were made; a callback before this one counts them.
        max_steps: most updates of the run; None has no limit.
        max_minutes: most minutes of this process; None has no limit.
        agree: for one of several processes, whether the time of any is over.
    """

    def __init__(
        self,
        state: RunState,
        max_steps: int | None = None,
        max_minutes: float | None = None,
        agree: Callable[[bool], bool] = bool,
    ) -> None:
        super().__init__()
        self.state = state
        self.max_steps = max_steps
        self.deadline = None if max_minutes is None else time.monotonic() + 60 * max_minutes
        self.agree = agree

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Looks at both."""
        out_of_steps = self.max_steps is not None and self.state.step >= self.max_steps
        # With no deadline nothing is asked: every process has one, or none has.
        late = self.deadline is not None and self.agree(time.monotonic() > self.deadline)
        if out_of_steps or late:
            self.model.stop_training = True

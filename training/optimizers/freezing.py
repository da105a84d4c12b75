"""Weights that training leaves as they are."""

import fnmatch
import math
from collections.abc import Sequence

import keras

from tf_transformer.errors import InputError


def freeze(model: keras.Model, names: Sequence[str]) -> None:
    """Makes the weights of the named layers untrainable, before `compile`.

    The optimizer then has no state for them, weight decay and moving average leave them alone.

    Args:
        model: from `build_transformer`.
        names: as the paths of weights begin, `"encoder"`, `"decoder/layer_0"`, or patterns of the
            shell, `"*embedding"`, `"encoder/layer_[0-3]"`, `"*/norm"`.

    Raises:
        InputError: a name is no layer's, or no weight is left.
    """
    for name in names:
        chosen = [weight for weight in model.weights if _is_in(weight.path, name)]
        if not chosen:
            raise InputError(
                f"training.freeze: no layer is called {name!r}; there are "
                f"{', '.join(_layers(model))} and those inside them, such as "
                f"{model.weights[-1].path.rpartition('/')[0]}."
            )
        for weight in chosen:
            weight.trainable = False
    if not model.trainable_weights:
        raise InputError(f"training.freeze leaves nothing to train: {', '.join(names)}.")


def count_frozen(model: keras.Model) -> int:
    """How many numbers of the weights are not trained."""
    frozen = [weight for weight in model.weights if not weight.trainable]
    return sum(math.prod(weight.shape) for weight in frozen)


def _is_in(path: str, pattern: str) -> bool:
    parts = path.split("/")
    beginnings = ("/".join(parts[:end]) for end in range(1, len(parts) + 1))
    return any(fnmatch.fnmatchcase(beginning, pattern) for beginning in beginnings)


def _layers(model: keras.Model) -> list[str]:
    """The outer two levels of names, without the weights themselves."""
    names: dict[str, None] = {}
    for weight in model.weights:
        layers = weight.path.split("/")[:-1]
        for end in range(1, min(2, len(layers)) + 1):
            names["/".join(layers[:end])] = None
    return list(names)

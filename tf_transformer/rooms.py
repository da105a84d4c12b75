"""Where the rooms `training` and `export` are: beside this package in a checkout, inside it in a
wheel. The package never imports them by name; what has to reach them asks here."""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def room(name: str) -> ModuleType | None:
    """The module `name`, such as `"training.objective.losses"`, of this very installation, or None.

    A folder of the same name that belongs to somebody else is never taken for ours.
    """
    package = Path(__file__).parent
    top = name.partition(".")[0]
    if (package / top).is_dir():
        return importlib.import_module(f"tf_transformer.{name}")
    # In a checkout the room is called as its folder is, wherever that can be imported.
    spec = sys.modules.get(top) or importlib.util.find_spec(top)
    found = getattr(spec, "__file__", None) or getattr(spec, "origin", None)
    if found and Path(found).parent.parent == package.parent:
        return importlib.import_module(name)
    if importlib.util.find_spec(f"tf_transformer.{top}") is not None:
        return importlib.import_module(f"tf_transformer.{name}")
    return None


def need(name: str) -> ModuleType:
    """The module, or an ImportError that says how it went missing."""
    found = room(name)
    if found is None:
        raise ImportError(f"This installation of tf_transformer lacks its folder {name!r}.")
    return found


def register_keras_classes() -> None:
    """Imports what compiled models name in their files: losses, metrics, schedules."""
    for module in (
        "training.objective.losses",
        "training.objective.metrics",
        "training.optimizers.optimizer",
        "training.optimizers.schedule",
    ):
        room(module)

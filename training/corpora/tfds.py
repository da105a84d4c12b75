"""Parallel text of TensorFlow Datasets, https://www.tensorflow.org/datasets, where installed."""

import importlib
from collections.abc import Iterator
from typing import Any

from tf_transformer.errors import InputError

from .corpus import Corpus
from .pairs import corpus_of

TFDS = "tfds:"  # begins the name of such a corpus
_FORM = "tfds:NAME:SPLIT or tfds:NAME:SPLIT:SOURCE:TARGET"


def read_tfds(name: str) -> Corpus:
    """The pairs of a dataset, which is downloaded when it is used first.

    Args:
        name: `tfds:ted_hrlr_translate/pt_to_en:train`, dataset and split. The sides are the
            dataset's own input and target; `tfds:ted_hrlr_translate/pt_to_en:train:en:pt` names
            two of its text features instead.

    Raises:
        InputError: tensorflow-datasets is not installed, does not know the name, or can't read it.
    """
    parts = name.removeprefix(TFDS).split(":")
    if len(parts) not in (2, 4) or not all(parts):
        raise InputError(f"A corpus of TensorFlow Datasets is called {_FORM}. Received: {name!r}")
    try:
        tfds: Any = importlib.import_module("tensorflow_datasets")
    except ImportError:
        raise InputError(f"{name} needs `pip install 'tf_transformer[tfds]'`.") from None
    try:
        builder = tfds.builder(parts[0])
        builder.download_and_prepare()
        sides = parts[2:] or builder.info.supervised_keys
        if sides is None:
            raise InputError(f"{name} does not say what is source and target: add :SOURCE:TARGET.")
        dataset = builder.as_dataset(split=parts[1])
        return corpus_of(_sides(tfds.as_numpy(dataset), sides), name)
    except KeyError as error:
        features = ", ".join(builder.info.features)
        raise InputError(f"{name} has the features {features}, not {error}.") from error
    except (ValueError, OSError, AssertionError, RuntimeError) as error:
        if isinstance(error, InputError):
            raise
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InputError(f"{name} can't be read: {reason}") from error


def _sides(examples: Any, sides: Any) -> Iterator[tuple[Any, Any]]:
    source, target = sides[:2]
    for example in examples:
        yield example[source], example[target]

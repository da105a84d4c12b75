"""Parallel text from Python: a list, a generator, or a tf.data pipeline of pairs."""

from collections.abc import Iterable, Iterator
from typing import Any

from tf_transformer.errors import InputError

from .corpus import Corpus, clean


def corpus_of(pairs: "Corpus | Iterable[Any]", name: str = "the pairs given") -> Corpus:
    """A corpus of what is given; it is read once, to its end.

    Args:
        pairs: a source and a target each, `str` or UTF-8 `bytes`; or a `tf.data.Dataset` whose
            elements are two string scalars; or a `Corpus`, which is returned.
        name: what messages call it.

    Raises:
        InputError: an element is no pair of texts, bytes are not UTF-8, or no pair is left.
    """
    if isinstance(pairs, Corpus):
        return pairs
    if hasattr(pairs, "as_numpy_iterator"):  # tf.data, without importing TensorFlow
        pairs = pairs.as_numpy_iterator()
    if isinstance(pairs, (str, bytes)) or not isinstance(pairs, Iterable):
        raise InputError(f"{name} must be pairs of texts. Received: {pairs!r}")
    return clean(_checked(pairs, name), name)


def _checked(pairs: Iterable[Any], name: str) -> Iterator[tuple[str, str]]:
    for number, pair in enumerate(pairs, start=1):
        is_pair = isinstance(pair, (tuple, list)) and len(pair) == 2
        if not is_pair or not all(isinstance(text, (str, bytes)) for text in pair):
            raise InputError(f"{name} must be pairs of texts. Received: number {number}, {pair!r}")
        try:
            source, target = (t.decode() if isinstance(t, bytes) else t for t in pair)
        except UnicodeDecodeError:
            raise InputError(f"{name} must be UTF-8, but pair {number} is not.") from None
        yield source, target

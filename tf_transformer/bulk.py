"""Many texts through a function that translates a batch: sorted by length, order restored."""

import logging
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import tensorflow as tf

_log = logging.getLogger(__name__)

Translate = Callable[[tf.Tensor], dict[str, tf.Tensor]]

_WINDOW = 4096  # texts sorted together: bounds the memory for a file of any length
_BATCH_BYTES = 8192  # of the longest text times the rows: bounds the memory of a batch
_BATCH_ROWS = 128


def translate_in_batches(translate: Translate, texts: Iterable[str]) -> list[str]:
    """All translations, in the order of `texts`."""
    return [translation["text"] for translation in stream(translate, texts)]


def stream(translate: Translate, texts: Iterable[str]) -> Iterator[dict[str, Any]]:
    """One dictionary of `text` and `score` for each text, in order, a window at a time."""
    if isinstance(texts, (str, bytes)):  # else each letter is taken for a text
        raise ValueError(f"`texts` must be a list of strings. Received: {texts!r}")
    remaining = iter(texts)
    while window := list(islice(remaining, _WINDOW)):
        encoded = [text.encode("utf-8", "replace") for text in window]
        results: list[dict[str, Any]] = [{}] * len(window)
        for places in _batches(encoded):
            found = translate(tf.constant([encoded[place] for place in places], tf.string))
            translations, scores = found["text"].numpy(), found["score"].numpy()
            for place, text, score in zip(places, translations, scores, strict=True):
                results[place] = {"text": text.decode("utf-8"), "score": float(score)}
        yield from results


def watch_lengths(
    texts: Iterable[str], limit: int, count_tokens: Callable[[str], int]
) -> Iterator[str]:
    """The texts as they come; one of more than `limit` tokens is logged with its line number.

    Args:
        texts: one a line.
        limit: most tokens of a source, END counted.
        count_tokens: of one text, END counted.
    """
    for line, text in enumerate(texts, 1):
        # A token is a letter at least (a byte, with byte pieces): most lines need no look.
        if len(text.encode("utf-8", "replace")) >= limit and (length := count_tokens(text)) > limit:
            _log.warning(
                "Line %d has %d tokens and is cut at max_source_length = %d.", line, length, limit
            )
        yield text


def _batches(encoded: list[bytes]) -> Iterator[list[int]]:
    by_length = sorted(range(len(encoded)), key=lambda place: (len(encoded[place]), place))
    batch: list[int] = []
    for place in by_length:
        rows = len(batch) + 1
        if batch and (rows > _BATCH_ROWS or rows * len(encoded[place]) > _BATCH_BYTES):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch

"""Many texts through a function of a batch: sorted by tokens, order restored, memory bounded."""

import dataclasses
import logging
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tf_transformer.errors import InputError

_log = logging.getLogger(__name__)

# Tensors of strings (B,), one of each column, to a dictionary of tensors (B, ...).
Answer = Callable[..., dict[str, tf.Tensor]]

_WINDOW_BYTES = 1 << 24  # lines of megabytes: fewer of them are sorted together
_BYTES_A_TOKEN = 4  # where nobody counts the tokens


class Column(NamedTuple):
    """A column of the input: how its tokens are counted, and how many of them are read."""

    name: str  # for messages
    lengths: Callable[[tf.Tensor], tf.Tensor] | None = None  # strings (B,) -> tokens (B,), END too
    limit: int | None = None  # of tokens, END counted; what is longer is cut


@dataclasses.dataclass(frozen=True, kw_only=True)
class Batching:
    """How texts are put together.

    Args:
        batch_tokens: most tokens of a batch, the longest row times the rows; a longer row is
            alone.
        batch_rows: most rows of a batch; fewer where else a worker would have nothing to do.
        window: texts that are sorted together, read ahead of the first answer.
        workers: batches at work at the same time, each in a thread.

    Raises:
        InputError: one is not a whole number of at least 1.
    """

    batch_tokens: int = 4096
    batch_rows: int = 64
    window: int = 4096
    workers: int = 1

    def __post_init__(self) -> None:
        for name, value in dataclasses.asdict(self).items():
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InputError(
                    f"`{name}` must be a whole number of at least 1. Received: {name}={value!r}"
                )


def stream(
    answer: Answer,
    rows: Iterable[str] | Iterable[tuple[str, ...]],
    columns: tuple[Column, ...] = (Column("source"),),
    batching: Batching | None = None,
    watch: Callable[[int, int], None] | None = None,
) -> Iterator[dict[str, Any]]:
    """One dictionary for each row, in order, a window at a time.

    Rows are read only when they are needed, so a file of any length takes the memory of a window.
    A row with more tokens than its column's limit is logged with its line number.

    Args:
        answer: of a batch; called with one tensor of strings (B,) for each column. It cuts long
            texts itself.
        rows: texts, or tuples of as many texts as there are columns.
        columns: one for each text of a row.
        batching: default `Batching()`.
        watch: called with the rows and the input tokens of each batch when it is answered.

    Yields:
        The texts by the names of their columns; `truncated`, whether one was cut; and what `answer`
        gives, without the batch axis: scalars as `str`, `float`, `int` or `bool`, the rest as
        arrays as wide as the batch's widest.
    """
    if isinstance(rows, (str, bytes)):  # else each letter is taken for a text
        raise ValueError(f"`texts` must be a list of strings. Received: {rows!r}")
    batching = batching or Batching()
    lines = 0
    for window in _windows(rows, batching.window):
        lengths, truncated = _measure(window, columns, lines)
        results: list[dict[str, Any]] = [{}] * len(window)
        # The longest first: what does not fit is found at once, and no thread ends far behind
        # the others.
        batches = list(_batches(lengths, batching))[::-1]
        for places, found in _answers(answer, window, batches, batching.workers):
            for place, one in zip(places, found, strict=True):
                texts = zip(columns, window[place], strict=True)
                given = {column.name: text.decode("utf-8") for column, text in texts}
                results[place] = {**given, "truncated": truncated[place], **one}
            if watch:
                watch(len(places), int(lengths[places].sum()))
        yield from results
        lines += len(window)


def _answers(
    answer: Answer, window: list[tuple[bytes, ...]], batches: list[list[int]], workers: int
) -> Iterator[tuple[list[int], list[dict[str, Any]]]]:
    """The places of each batch with their answers, in the order in which they are done."""
    if workers == 1:  # in the thread of the caller, whose device and context it has
        for places in batches:
            yield places, _ask(answer, window, places)
        return
    pool = ThreadPoolExecutor(workers)
    try:
        work = {pool.submit(_ask, answer, window, places): places for places in batches}
        for done in as_completed(work):
            yield work[done], done.result()
    finally:  # after Ctrl-C too: what has not begun never does
        pool.shutdown(wait=False, cancel_futures=True)


def _windows(
    rows: Iterable[str] | Iterable[tuple[str, ...]], size: int
) -> Iterator[list[tuple[bytes, ...]]]:
    remaining = iter(rows)
    while True:
        window, weight = [], 0
        for row in islice(remaining, size):
            texts = (row,) if isinstance(row, str) else row
            # Half a surrogate pair is no text, and may stand in a Python string all the same.
            window.append(tuple(text.encode("utf-8", "replace") for text in texts))
            weight += sum(map(len, window[-1]))
            if weight > _WINDOW_BYTES:
                break
        if not window:
            return
        yield window


def _measure(
    window: list[tuple[bytes, ...]], columns: tuple[Column, ...], lines: int
) -> tuple[np.ndarray, list[bool]]:
    """Tokens that are read of each row, and whether that is not all of them."""
    total = np.zeros(len(window), np.int64)
    truncated = np.zeros(len(window), bool)
    for column, texts in zip(columns, zip(*window, strict=True), strict=True):
        if column.lengths is None:
            lengths = np.array([1 + len(text) // _BYTES_A_TOKEN for text in texts])
        else:
            lengths = np.asarray(column.lengths(tf.constant(texts, tf.string))).astype(np.int64)
            if column.limit is not None:
                for place in np.flatnonzero(lengths > column.limit):
                    _log.warning(
                        "Line %d: the %s has %d tokens and is cut at %d.",
                        *(lines + place + 1, column.name, lengths[place], column.limit),
                    )
                truncated |= lengths > column.limit
                lengths = np.minimum(lengths, column.limit)
        total += lengths
    return total, truncated.tolist()


def _batches(lengths: np.ndarray, batching: Batching) -> Iterator[list[int]]:
    """Places of rows of like length, the shortest first."""
    batch: list[int] = []
    most_rows = min(batching.batch_rows, -(-len(lengths) // batching.workers))
    for place in np.argsort(lengths, kind="stable").tolist():
        rows = len(batch) + 1
        too_many = rows > most_rows or rows * lengths[place] > batching.batch_tokens
        if batch and too_many:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def _ask(
    answer: Answer, window: list[tuple[bytes, ...]], places: list[int]
) -> list[dict[str, Any]]:
    texts = zip(*(window[place] for place in places), strict=True)
    found = answer(*(tf.constant(column, tf.string) for column in texts))
    arrays = {name: np.asarray(value) for name, value in found.items()}
    return [
        {name: _plain(array[row]) for name, array in arrays.items()} for row in range(len(places))
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8")
    return value.item() if value.ndim == 0 else value

"""Requests that wait together run together: one batch instead of many rows of one."""

import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import NamedTuple

import numpy as np

from .errors import unavailable

Arrays = dict[str, np.ndarray]
Run = Callable[[str, Arrays], Arrays]


class Closed(Exception):
    """The version was replaced while the request was on its way."""


class _Job(NamedTuple):
    signature: str
    inputs: Arrays
    rows: int | None
    answer: "Future[Arrays]"

    def kind(self) -> tuple:
        """Jobs of one kind can be one batch: the same signature, types and inner shapes."""
        if self.rows is None:
            return (id(self),)
        shapes = ((k, x.dtype.str, x.shape[1:]) for k, x in sorted(self.inputs.items()))
        return (self.signature, *shapes)


class Batcher:
    """Answers requests from many threads, those that come together in one call.

    Args:
        run: answers a signature; every input and output has the batch in front.
        max_rows: of a batch; a request of more is a batch of its own.
        wait: seconds for which a first request waits for others.
        max_waiting: requests that may wait; one more is refused as UNAVAILABLE.
        threads: batches at work at the same time.
    """

    def __init__(
        self,
        run: Run,
        max_rows: int = 64,
        wait: float = 0.002,
        max_waiting: int = 128,
        threads: int = 1,
    ) -> None:
        self._run, self._max_rows, self._wait = run, max_rows, wait
        self._jobs: queue.Queue[_Job | None] = queue.Queue(max_waiting + threads)
        self._max_waiting = max_waiting
        self._lock, self._closed = threading.Lock(), False
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    def __call__(self, signature: str, inputs: Arrays) -> Arrays:
        """The answer; raises what `run` raises for this request alone."""
        sizes = {x.shape[:1] for x in inputs.values()}
        # Without a batch in front it is run by itself, and the model says what is wrong with it.
        rows = next(iter(sizes))[0] if len(sizes) == 1 and () not in sizes else None
        job = _Job(signature, inputs, rows, Future())
        with self._lock:
            if self._closed:
                raise Closed
            if self._jobs.qsize() >= self._max_waiting:
                raise unavailable(
                    "The batch scheduling queue to which this task was submitted is full"
                )
            self._jobs.put(job)
        return job.answer.result()

    def close(self) -> None:
        """Answers what waits, then stops; later requests raise `Closed`."""
        with self._lock:
            self._closed = True
            for _ in self._threads:
                self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (first := self._jobs.get()) is not None:
            jobs, last = self._gather(first)
            for batch in self._batches(jobs):
                self._answer(batch)
            if last:
                return

    def _gather(self, first: _Job) -> tuple[list[_Job], bool]:
        """What comes within the waiting time, and whether the end came with it."""
        jobs, rows, until = [first], first.rows or 0, time.monotonic() + self._wait
        while rows < self._max_rows:
            try:
                job = self._jobs.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                break
            if job is None:
                return jobs, True
            jobs.append(job)
            rows += job.rows or 0
        return jobs, False

    def _batches(self, jobs: list[_Job]) -> Iterator[list[_Job]]:
        kinds: dict[tuple, list[_Job]] = {}
        for job in jobs:
            batch = kinds.setdefault(job.kind(), [])
            if batch and sum(other.rows or 0 for other in [*batch, job]) > self._max_rows:
                yield batch
                kinds[job.kind()] = batch = []
            batch.append(job)
        yield from kinds.values()

    def _answer(self, jobs: list[_Job]) -> None:
        if len(jobs) == 1:
            try:
                jobs[0].answer.set_result(self._run(jobs[0].signature, jobs[0].inputs))
            except Exception as error:
                jobs[0].answer.set_exception(error)
            return
        try:
            answers = self._together(jobs)
        except Exception:  # one of them is bad: the others must not pay for it
            for job in jobs:
                self._answer([job])
            return
        for job, answer in zip(jobs, answers, strict=True):
            job.answer.set_result(answer)

    def _together(self, jobs: list[_Job]) -> list[Arrays]:
        inputs = {k: np.concatenate([job.inputs[k] for job in jobs]) for k in jobs[0].inputs}
        outputs = self._run(jobs[0].signature, inputs)
        ends = np.cumsum([job.rows for job in jobs])
        if any(x.shape[:1] != (ends[-1],) for x in outputs.values()):
            raise ValueError("An output has no batch in front: it can't be told whose is what.")
        parts = {k: np.split(x, ends[:-1]) for k, x in outputs.items()}
        return [{k: part[place] for k, part in parts.items()} for place in range(len(jobs))]

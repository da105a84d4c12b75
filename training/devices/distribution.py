"""Where a training runs: on one device, on all of a machine, on several machines."""

import functools
import json
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tf_transformer.errors import InputError

from ..batches.feed import Feed
from ..objective.losses import over_replicas
from ..settings.sections import TrainingSettings

_STREAM = 1_000_003  # between the seeds of two replicas


class Distribution:
    """A `tf.distribute` strategy, or none, and what is done otherwise with it.

    Args:
        strategy: None is one device.
        is_chief: whether this process is the one that has the run directory.
    """

    def __init__(
        self, strategy: tf.distribute.Strategy | None = None, is_chief: bool = True
    ) -> None:
        self.strategy: Any = strategy
        self.is_chief = is_chief

    @classmethod
    def open(
        cls, settings: TrainingSettings, say: Callable[[str], None] = lambda text: None
    ) -> "Distribution":
        """The distribution of a recipe; with several workers it waits for all of them.

        Args:
            settings: [training].
            say: is told what is waited for.

        Raises:
            InputError: there are not as many devices, TensorFlow is in use already, or TF_CONFIG
                is missing or wrong.
        """
        if settings.strategy == "mirrored":
            return cls(_mirrored(_devices(settings.replicas)))
        if settings.strategy == "multi_worker":
            kind, index, workers = read_tf_config()
            say(f"This is {kind} {index}; waiting for all {workers} workers of TF_CONFIG.")
            is_chief = kind == "chief" or (index == 0 and not _has_chief())
            try:
                return cls(_multi_worker(), is_chief)
            except RuntimeError as error:
                raise InputError(
                    "Several workers must be the first thing that a process does with "
                    f"TensorFlow: {error}"
                ) from error
        return cls()

    @property
    def replicas(self) -> int:
        """Of all processes."""
        return 1 if self.strategy is None else self.strategy.num_replicas_in_sync

    @property
    def has_peers(self) -> bool:
        """Whether there are other processes."""
        return isinstance(self.strategy, tf.distribute.MultiWorkerMirroredStrategy)

    def scope(self) -> AbstractContextManager:
        """Model and optimizer are made in it."""
        return nullcontext() if self.strategy is None else self.strategy.scope()

    def dataset(self, feed: Feed, first: int | None) -> Any:
        """`feed` from update `first` on, or one pass of it, in shares for this process's replicas.

        Where there are replicas the passes of None have no end: take `len(feed)` steps.
        """
        if self.strategy is None:
            return feed.dataset(first)

        def of_process(context: tf.distribute.InputContext) -> tf.data.Dataset:
            here = context.num_replicas_in_sync // context.num_input_pipelines
            begin = context.input_pipeline_id * here
            return feed.dataset(first, range(begin, begin + here), context.num_replicas_in_sync)

        return self.strategy.distribute_datasets_from_function(of_process)

    def draw_apart(self, model: keras.Model) -> None:
        """Gives each replica dropout of its own; call it once, after the state is restored.

        Random generators are variables that all replicas have alike. What is saved is the first
        replica's, which this does not change.
        """
        states = [v for v in model.variables if v.path.endswith("seed_generator_state")]
        if self.replicas == 1 or not states:
            return

        def apart() -> None:
            replica = tf.distribute.get_replica_context().replica_id_in_sync_group
            for state in states:
                move = tf.stack([replica * _STREAM, 0])
                state.value.assign_add(tf.cast(move, state.value.dtype))

        self.strategy.run(tf.function(apart))

    def any(self, flag: bool) -> bool:
        """Whether it is true in any process; all must ask the same, in the same order."""
        if not self.has_peers:
            return flag
        return bool(self.strategy.reduce("SUM", tf.constant(float(flag)), axis=None) > 0)

    def share(self, variables: Sequence[keras.Variable]) -> None:
        """Gives the variables of all processes the chief's values."""
        if self.has_peers:
            values = self._from_chief([tf.convert_to_tensor(v.value) for v in variables])
            for variable, value in zip(variables, values, strict=True):
                variable.assign(tf.cast(value, variable.dtype))

    def tell(self, text: bytes) -> bytes:
        """The chief's text, in all processes."""
        if not self.has_peers:
            return text
        size = self._from_chief([tf.constant(len(text), tf.int64)])[0]
        numbers = np.zeros(int(size), np.int32)
        if self.is_chief:
            numbers[:] = np.frombuffer(text, np.uint8)
        return np.asarray(self._from_chief([tf.constant(numbers)])[0]).astype(np.uint8).tobytes()

    def _from_chief(self, values: list[tf.Tensor]) -> list[tf.Tensor]:
        @tf.function
        def take() -> Any:
            is_first = tf.distribute.get_replica_context().replica_id_in_sync_group == 0
            # One dtype for all, as collectives want; float64 has every float32 and 32-bit integer.
            wide = [tf.cast(value, tf.float64) for value in values]
            return over_replicas([tf.where(is_first, v, tf.zeros_like(v)) for v in wide])

        results = self.strategy.run(take)
        return [self.strategy.experimental_local_results(value)[0] for value in results]


def read_tf_config() -> tuple[str, int, int]:
    """This process's role, its number, and how many workers there are, from TF_CONFIG.

    Raises:
        InputError: it is missing, no JSON, or names no such worker.
    """
    text = os.environ.get("TF_CONFIG", "")
    wanted = (
        'TF_CONFIG must be set to {"cluster": {"worker": ["host:port", ...]}, '
        '"task": {"type": "worker", "index": n}} for training.strategy = "multi_worker"'
    )
    if not text:
        raise InputError(f"{wanted}; it is not set.")
    try:
        config = json.loads(text)
        cluster, task = config["cluster"], config["task"]
        workers = {kind: list(cluster.get(kind, [])) for kind in ("chief", "worker")}
        kind, index = str(task["type"]), int(task["index"])
        workers[kind][index]
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise InputError(f"{wanted}; received {text!r}.") from error
    return kind, index, sum(map(len, workers.values()))


def _has_chief() -> bool:
    return bool(json.loads(os.environ["TF_CONFIG"])["cluster"].get("chief"))


# One for all trainings of a process: the numbers by which replicas find each other begin anew in
# each strategy, and TensorFlow takes those of a second one for the first's.
@functools.cache
def _mirrored(devices: tuple[str, ...]) -> tf.distribute.Strategy:
    return tf.distribute.MirroredStrategy(devices)


@functools.cache
def _multi_worker() -> tf.distribute.Strategy:
    return tf.distribute.MultiWorkerMirroredStrategy()


def _devices(replicas: int | None) -> tuple[str, ...]:
    """The devices to mirror on: GPUs, or as many parts of the CPU as asked for."""
    gpus = tf.config.list_logical_devices("GPU") if tf.config.list_physical_devices("GPU") else []
    if gpus:
        if replicas is not None and replicas > len(gpus):
            raise InputError(
                f"training.replicas must be at most the number of GPUs, {len(gpus)}; "
                f"received {replicas}."
            )
        return tuple(gpu.name for gpu in gpus[:replicas])
    wanted = replicas or 1
    parts = [tf.config.LogicalDeviceConfiguration()] * wanted
    try:
        tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], parts)
    except RuntimeError as error:  # in use, which is no matter where there are as many
        if len(tf.config.list_logical_devices("CPU")) < wanted:
            raise InputError(
                f"training.replicas = {replicas} on CPUs must be set up before the process uses "
                "TensorFlow; it has begun to."
            ) from error
    return tuple(cpu.name for cpu in tf.config.list_logical_devices("CPU")[:wanted])

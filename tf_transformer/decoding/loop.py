"""The loop that all searches run in."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import tensorflow as tf

from tf_transformer.decoding.buffers import shape_invariants

_SERIAL = b"SINGLE_THREADED_EXECUTOR"  # knows CPUs only
_for_any_device: ContextVar[bool] = ContextVar("for_any_device", default=False)


@contextmanager
def for_any_device() -> Iterator[None]:
    """What is traced in here may run elsewhere: on a GPU too."""
    token = _for_any_device.set(True)
    try:
        yield
    finally:
        _for_any_device.reset(token)


def search_loop(going: Callable[..., tf.Tensor], body: Callable[..., Any], start: tuple) -> tuple:
    """`tf.while_loop`; on a machine without a GPU its steps run operation by operation.

    A step is a chain of small operations with nothing to run side by side. TensorFlow's executor
    hands many of them to its pool of threads all the same, which takes longer than most of them;
    its serial one does not: a small model answers one sentence 1.4 times as fast. Inside an
    operation all threads work as ever. Who saves such a graph for other machines traces it in
    `for_any_device`.

    Args:
        going: loop variables -> () bool.
        body: loop variables -> loop variables.
        start: the loop variables.
    """
    end = tf.while_loop(going, body, start, shape_invariants=shape_invariants(start))
    elsewhere = _for_any_device.get() or tf.config.list_physical_devices("GPU")
    if not tf.executing_eagerly() and not elsewhere:
        _run_serially(tf.nest.flatten(end)[0].op)
    return end


def _run_serially(op: tf.Operation) -> None:
    """Marks the loop that `op` comes from, and its functions, for the serial executor."""
    while op.type not in ("While", "StatelessWhile"):
        op = op.inputs[0].op
    attributes = tf.compat.v1.AttrValue
    op._set_attr("_lower_using_switch_merge", attributes(b=False))
    for name in ("cond", "body"):
        function = attributes()
        function.CopyFrom(op.node_def.attr[name])
        function.func.attr["_executor"].s = _SERIAL
        op._set_attr(name, function)

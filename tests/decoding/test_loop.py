"""The loop of the searches: TensorFlow's, on its serial executor."""

import numpy as np
import pytest
import tensorflow as tf

from tf_transformer.decoding import SEARCHES
from tf_transformer.decoding.loop import for_any_device, search_loop


def going(index, sums, grown):
    return index < 5


def body(index, sums, grown):
    column = tf.cast(tf.fill([2, 1], index), tf.float32)
    return index + 1, sums + 2.0 * column, tf.concat([grown, column], 1)


def run():
    return search_loop(going, body, (tf.constant(0), tf.zeros([2, 1]), tf.zeros([2, 0])))


@pytest.mark.parametrize("way", [run, tf.function(run)], ids=["eager", "graph"])
def test_it_loops(way):
    index, sums, grown = way()
    assert index == 5
    np.testing.assert_array_equal(sums, [[20.0], [20.0]])  # 2 * (0 + 1 + 2 + 3 + 4)
    np.testing.assert_array_equal(grown, [[0, 1, 2, 3, 4]] * 2)


def loops_of(graph):
    return [op for op in graph.get_operations() if op.type in ("While", "StatelessWhile")]


@pytest.mark.skipif(bool(tf.config.list_physical_devices("GPU")), reason="the executor is of CPUs")
@pytest.mark.parametrize("name", SEARCHES)
def test_the_steps_of_every_search_run_serially(name):
    search = SEARCHES[name]()

    def step(token_ids, state, index):
        return tf.zeros([tf.shape(token_ids)[0], 9]), state

    @tf.function
    def found(limits):
        return search(step, (), limits).token_ids

    graph = found.get_concrete_function(tf.TensorSpec([None], tf.int32)).graph
    assert loops_of(graph)
    for loop in loops_of(graph):
        assert not loop.get_attr("_lower_using_switch_merge")
        body = loop.node_def.attr["body"].func
        assert body.attr["_executor"].s == b"SINGLE_THREADED_EXECUTOR"


def test_what_may_run_on_a_gpu_does_not():
    """The serial executor refuses to: memory of two kinds is in the step."""

    @tf.function
    def traced():
        with for_any_device():
            return run()

    (loop,) = loops_of(traced.get_concrete_function().graph)
    assert "_executor" not in loop.node_def.attr["body"].func.attr
    assert loop.get_attr("_lower_using_switch_merge")
    np.testing.assert_array_equal(traced()[1], run()[1])

"""A beam and paths with every rule in LiteRT, by its built-in operations alone."""

import numpy as np
import pytest
import tensorflow as tf

from tests.decoding.brute_force import draw
from tests.decoding.steps import make_step, say, silence, start
from tests.decoding.test_search import every_rule
from tf_transformer.decoding import SEARCHES, ForcedPrefix, RowOptions

ROWS = 4
REQUEST = dict(
    limits=np.array([5, 3, 7, 1], "int32"),
    alpha=np.array([0.6, -1.0, 0.0, 2.0], "float32"),
    num_beams=np.array([1, 2, 3, 4], "int32"),
    prefix=np.array([[4, 5], [0, 0], [6, 0], [4, 0]], "int32"),
)


def as_module(search):
    """A function of one request, rules and all."""
    language = draw("history", ROWS, 9, seed=3)
    step, count = say(make_step(language, search.num_beams)), ROWS * search.num_beams
    module = tf.Module()

    @tf.function(
        input_signature=[
            tf.TensorSpec([ROWS], tf.int32, "limits"),
            tf.TensorSpec([ROWS], tf.float32, "alpha"),
            tf.TensorSpec([ROWS], tf.int32, "num_beams"),
            tf.TensorSpec([ROWS, None], tf.int32, "prefix"),
        ],
        autograph=False,
    )
    def searching(limits, alpha, num_beams, prefix):
        found = search(
            step,
            start(language, ROWS, search.num_beams),
            limits,
            extras=silence(count),
            rows=RowOptions(alpha, num_beams, seeds=limits),
            rules=[*every_rule(ROWS)[:-1], ForcedPrefix(prefix)],
        )
        return {**found._asdict(), **found.extras, "extras": tf.zeros([])}

    module.searching = searching
    return module


@pytest.mark.parametrize("name", ["beam", "sampling"])
def test_it_finds_there_what_it_finds_here(name, tmp_path):
    interpreters = pytest.importorskip("ai_edge_litert.interpreter", reason="extra `litert`")
    search = SEARCHES[name](**({"top_p": 0.8, "num_beams": 3} if name == "sampling" else {}))
    module = as_module(search)
    tf.saved_model.save(module, str(tmp_path), module.searching.get_concrete_function())
    converted = tf.lite.TFLiteConverter.from_saved_model(str(tmp_path)).convert()
    found = interpreters.Interpreter(model_content=converted).get_signature_runner()(**REQUEST)
    expected = module.searching(**{key: tf.constant(value) for key, value in REQUEST.items()})
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        # Its arithmetic has no infinity: the lowest float stands in for it.
        finite = np.nan_to_num(value, neginf=np.finfo("float32").min)
        np.testing.assert_allclose(np.nan_to_num(found[key]), finite, rtol=1e-5, atol=1e-5)

"""Section 3.5 and its descendants: the tables against the oracle and literals, and `start`."""

import numpy as np
import pytest

from tests import oracle
from tests.layers.checks import check_layer
from tests.weights import fill_with_random
from tf_transformer.layers import POSITIONS, positions

ADDED = {
    "sinusoidal": oracle.sinusoid,
    "sinusoidal_halves": oracle.sinusoid_halves,
}


def table(name, width, places, **arguments):
    """What a scheme adds at the given places, a row each."""
    layer = POSITIONS[name](**arguments)
    zero = np.zeros((1, 1, width), "float32")
    return np.concatenate([np.asarray(layer(zero, start=int(place)))[0] for place in places])


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


@pytest.mark.parametrize("width", [4, 8, 64])
@pytest.mark.parametrize("name", ADDED)
def test_sinusoids_equal_the_oracle(name, width):
    x = draw(2, 50, width)
    expected = x + ADDED[name](range(50), width)
    np.testing.assert_allclose(POSITIONS[name]()(x), expected, atol=1e-5)


@pytest.mark.parametrize("width", [1, 3, 5, 33])
def test_odd_widths_equal_the_oracle(width):
    x = np.zeros((1, 20, width), "float32")
    expected = oracle.sinusoid(range(20), width)[None]
    np.testing.assert_allclose(POSITIONS["sinusoidal"]()(x), expected, atol=1e-5)


@pytest.mark.parametrize("name", ADDED)
def test_sinusoids_far_away_equal_the_oracle(name):
    """There is no longest position; float32 angles are good to about position * 2e-7."""
    expected = ADDED[name]([2_047, 5_000], 512)
    np.testing.assert_allclose(table(name, 512, [2_047, 5_000]), expected, atol=2e-3)


@pytest.mark.case("01")
def test_the_paper_order_has_the_values_of_the_formula():
    expected = [
        [0, 1, 0, 1, 0, 1, 0, 1],
        [0.841471, 0.540302, 0.099833, 0.995004, 0.010000, 0.999950, 0.001000, 1.000000],
        [0.909297, -0.416147, 0.198669, 0.980067, 0.019999, 0.999800, 0.002000, 0.999998],
        [-0.262375, 0.964966, -0.958924, 0.283662, 0.479426, 0.877583, 0.049979, 0.998750],
    ]
    np.testing.assert_allclose(table("sinusoidal", 8, [0, 1, 2, 50]), expected, atol=5e-6)
    odd = [[0.141120, -0.989992, 0.075285, 0.997162, 0.001893]]
    np.testing.assert_allclose(table("sinusoidal", 5, [3]), odd, atol=5e-6)


@pytest.mark.case("01")
@pytest.mark.parametrize("width", [2, 5])
def test_halves_refuse_widths_that_have_none(width):
    with pytest.raises(ValueError, match=rf"even width.*{width}\)"):
        POSITIONS["sinusoidal_halves"]()(np.zeros((1, 3, width), "float32"))


def test_get_timing_signal_1d_values():
    """tensor2tensor, 4 channels: rates 1 and 1e-4, sines first, position 0 first."""
    one = np.array([0, 1, 2])
    expected = np.stack([np.sin(one), np.sin(one * 1e-4), np.cos(one), np.cos(one * 1e-4)], -1)
    np.testing.assert_allclose(table("sinusoidal_halves", 4, one), expected, atol=1e-6)


@pytest.mark.parametrize("name", ["sinusoidal", "sinusoidal_halves", "learned"])
def test_one_place_at_a_time_equals_all_at_once(name):
    x = draw(2, 6, 8)
    layer = POSITIONS[name]()
    whole = np.asarray(layer(x))
    steps = [np.asarray(layer(x[:, i : i + 1], start=i)) for i in range(6)]
    np.testing.assert_allclose(np.concatenate(steps, axis=1), whole, atol=1e-6)


@pytest.mark.parametrize("name", ["sinusoidal", "sinusoidal_halves"])
@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_half_precision_rounds_the_table_once(name, policy):
    """A table whose angles are made in half precision is off by up to 2 at position 2,047."""
    far = table(name, 64, [2_047], dtype=policy)
    half_step = 2e-3 if policy == "mixed_float16" else 1e-2
    np.testing.assert_allclose(far.astype("float64"), ADDED[name]([2_047], 64), atol=half_step)


def test_learned_adds_its_rows_and_repeats_the_last():
    layer = POSITIONS["learned"](max_positions=3)
    layer.build((None, None, 4))
    fill_with_random(layer, 1)
    rows = np.asarray(layer.positions.value)
    x = draw(2, 5, 4)
    np.testing.assert_array_equal(layer(x), x + rows[[0, 1, 2, 2, 2]])
    np.testing.assert_array_equal(layer(x[:, :1], start=7), x[:, :1] + rows[2])


@pytest.mark.parametrize("start", [0, 3, 2_000])
def test_rotary_equals_the_oracle(start):
    heads = draw(2, 3, 5, 8)
    turned = POSITIONS["rotary"]().rotate(heads, start)
    tolerance = 1e-5 if start < 100 else 1e-3
    np.testing.assert_allclose(turned, oracle.rotary(heads, start), atol=tolerance)


def test_rotary_scores_depend_on_the_distance_alone():
    layer = POSITIONS["rotary"]()
    query, key = draw(1, 1, 1, 8), draw(1, 1, 1, 8, seed=1)

    def score(i, j):
        return float(np.sum(np.asarray(layer.rotate(query, i)) * np.asarray(layer.rotate(key, j))))

    assert score(3, 1) == pytest.approx(score(13, 11), abs=1e-4)
    assert abs(score(3, 1) - score(3, 2)) > 1e-3


def test_relative_at_a_later_start_is_the_same_row():
    layer = POSITIONS["relative"](max_distance=2)
    layer.build((None, 1, None, 4))
    fill_with_random(layer, 1)
    query, key = draw(1, 2, 6, 4), draw(1, 2, 6, 4, seed=1)
    whole = np.asarray(layer.score_bias(query, key))
    last = np.asarray(layer.score_bias(query[:, :, 4:5], key, start=4))
    np.testing.assert_allclose(last[:, :, 0], whole[:, :, 4], atol=1e-6)


# Relative has no `call` of its own: test_attention.py and test_encoder.py check it inside.
PARAMETERS = {"sinusoidal": 0, "sinusoidal_halves": 0, "learned": 512 * 8, "rotary": 0}


@pytest.mark.parametrize("name", PARAMETERS)
def test_is_a_good_keras_layer(name, tmp_path):
    x = draw(2, 5, 8)
    check_layer(POSITIONS[name], {}, {"x": x}, x.shape, PARAMETERS[name], tmp_path)


def test_get_makes_a_fresh_layer_of_any_form():
    assert positions.get(None) is None and positions.get("none") is None
    first = positions.get("learned")
    copy = positions.get(first)
    assert copy is not first and copy.get_config() == first.get_config()
    assert positions.get(positions.serialize(first)).get_config() == first.get_config()
    with pytest.raises(ValueError, match="sinusoidal_halves.*'sine'"):
        positions.get("sine")

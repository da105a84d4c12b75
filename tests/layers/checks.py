"""check_layer: what every layer of tf_transformer owes to Keras, in one call."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np

from tests.weights import fill_with_random

POLICIES = ("float32", "mixed_bfloat16", "mixed_float16")
# Of the answer's root mean square; single places of bfloat16, which has 8 bits, may be off by more.
TOLERANCE = {"float32": 1e-5, "mixed_bfloat16": 2e-2, "mixed_float16": 2e-3}


def check_layer(
    layer_class: type[keras.layers.Layer],
    arguments: dict[str, Any],
    inputs: Mapping[str, np.ndarray],
    output_shape: tuple[int, ...],
    parameters: int,
    directory: Path,
) -> None:
    """Asserts that a layer is a good Keras citizen.

    Args:
        layer_class: the layer.
        arguments: for its constructor.
        inputs: argument name of `call` -> array; the batch and the lengths may vary.
        output_shape: of the call on `inputs`.
        parameters: the number of numbers in all its weights, from arithmetic.
        directory: where to save to.
    """
    _check_config(layer_class, arguments)
    _check_build(layer_class, arguments, inputs, parameters)
    model = _functional_model(layer_class(**arguments), inputs)
    fill_with_random(model, seed=1)
    answer = np.asarray(model(dict(inputs)))
    assert answer.shape == output_shape
    assert model.count_params() == parameters
    _check_shapes(layer_class(**arguments), inputs, output_shape)
    _check_saving(layer_class, arguments, model, inputs, answer, directory)
    _check_precisions(layer_class, arguments, model, inputs, answer)
    _check_fit(model, inputs, answer)


def _check_config(layer_class: type[keras.layers.Layer], arguments: dict[str, Any]) -> None:
    config = layer_class(**arguments).get_config()
    through_json = json.loads(json.dumps(config))
    again = layer_class.from_config(through_json)
    assert json.loads(json.dumps(again.get_config())) == through_json
    for name, value in arguments.items():
        if isinstance(value, (int, float, str, bool)) and name not in ("position", "activation"):
            assert config[name] == value, f"{name} is lost in the config"


def _check_build(
    layer_class: type[keras.layers.Layer],
    arguments: dict[str, Any],
    inputs: Mapping,
    parameters: int,
) -> None:
    layer = layer_class(**arguments)
    names = [name for name in inputs if f"{name}_shape" in layer.build.__code__.co_varnames]
    if names:
        layer.build(**{f"{name}_shape": inputs[name].shape for name in names})
    else:
        layer.build(next(iter(inputs.values())).shape)
    assert layer.built
    built = sorted((weight.path.split("/", 1)[1], weight.shape) for weight in layer.weights)
    assert layer.count_params() == parameters, built
    layer(**inputs)
    called = sorted((weight.path.split("/", 1)[1], weight.shape) for weight in layer.weights)
    assert called == built, "the first call made weights that build had not made"


def _functional_model(layer: keras.layers.Layer, inputs: Mapping) -> keras.Model:
    symbolic = {
        name: keras.Input(
            (*[None] * (array.ndim - 2), array.shape[-1])
            if array.ndim > 2 and array.dtype != bool
            else [None] * (array.ndim - 1),
            dtype=array.dtype.name,
            name=name,
        )
        for name, array in inputs.items()
    }
    return keras.Model(symbolic, layer(**symbolic))


def _check_shapes(layer: keras.layers.Layer, inputs: Mapping, output_shape: tuple) -> None:
    model = _functional_model(layer, inputs)
    assert len(model.output.shape) == len(output_shape)
    for known, expected in zip(model.output.shape, output_shape, strict=True):
        assert known in (None, expected)
    assert model.output.shape[-1] == output_shape[-1], "the last axis must be known symbolically"
    twice = {name: np.concatenate([array, array]) for name, array in inputs.items()}
    assert np.asarray(model(twice)).shape == (2 * output_shape[0], *output_shape[1:])


def _check_saving(
    layer_class: type[keras.layers.Layer],
    arguments: dict[str, Any],
    model: keras.Model,
    inputs: Mapping,
    answer: np.ndarray,
    directory: Path,
) -> None:
    model.save(directory / "model.keras")
    loaded = keras.models.load_model(directory / "model.keras")  # no custom_objects
    np.testing.assert_array_equal(np.asarray(loaded(dict(inputs))), answer)
    model.save_weights(directory / "model.weights.h5")
    fresh = _functional_model(layer_class(**arguments), inputs)
    fresh.load_weights(directory / "model.weights.h5")  # before its first call
    np.testing.assert_array_equal(np.asarray(fresh(dict(inputs))), answer)


def _check_precisions(
    layer_class: type[keras.layers.Layer],
    arguments: dict[str, Any],
    model: keras.Model,
    inputs: Mapping,
    answer: np.ndarray,
) -> None:
    for policy in POLICIES:
        half = _functional_model(layer_class(**arguments, dtype=policy), inputs)
        half.set_weights(model.get_weights())
        for weight in half.weights:
            assert weight.dtype == "float32", f"{weight.path} must stay float32 under {policy}"
        output = np.asarray(half(dict(inputs))).astype("float64")
        assert np.isfinite(output).all(), policy
        assert _root_mean_square(output - answer) < TOLERANCE[policy] * _root_mean_square(answer)


def _root_mean_square(x: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(x))))


def _check_fit(model: keras.Model, inputs: Mapping, answer: np.ndarray) -> None:
    if not model.trainable_weights:
        return
    before = model.get_weights()
    model.compile(keras.optimizers.SGD(0.1), "mse")
    history = model.fit(dict(inputs), answer + 1.0, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    assert all(np.isfinite(weight).all() for weight in model.get_weights())
    moved = [np.abs(a - b).max() for a, b in zip(before, model.get_weights(), strict=True)]
    assert max(moved) > 0.0, "one step of training changed nothing"

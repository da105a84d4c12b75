"""TensorFlow functions as one LiteRT file: weights frozen, built-in operations only."""

import inspect
import tempfile
from collections.abc import Callable, Collection, Mapping
from typing import Any

import tensorflow as tf
from tensorflow.lite.python import schema_py_generated as schema
from tensorflow.python.framework.convert_to_constants import (
    convert_variables_to_constants_v2,
)

from .result import ExportError

QUANTIZATIONS = ("float16", "int8")

Function = Callable[..., dict[str, tf.Tensor]]


def convert(
    functions: dict[str, tuple[Function, list[tf.TensorSpec]]],
    custom: Mapping[str, Collection[str]],
    quantization: str | None = None,
) -> bytes:
    """One LiteRT file with a signature for each function; all share its weights.

    Args:
        functions: signature to function and inputs; the names of the inputs are the specs'.
        custom: signature to the operations of it that are not built in, and may be there.
        quantization: of QUANTIZATIONS: "float16" weights, or "int8" weights with arithmetic of
            either kind ("dynamic range"); None keeps float32.

    Raises:
        ExportError: an operation is neither built in nor in `custom`.
    """
    module, signatures = tf.Module(), {}
    for name, (function, inputs) in functions.items():
        signatures[name] = _frozen(function, inputs)
        setattr(module, f"call_{name}", signatures[name])
    with tempfile.TemporaryDirectory(prefix="litert_") as folder:
        # The route on which the file keeps weights that are read inside a loop, and signatures.
        tf.saved_model.save(module, folder, signatures=signatures)
        converter = tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=[*functions])
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
        converter.allow_custom_ops = any(custom.values())
        if quantization is not None:
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if quantization == "float16":
            converter.target_spec.supported_types = [tf.float16]
        try:
            content = converter.convert()
        except Exception as error:  # the converter has many of its own
            reason = str(error).strip().splitlines() or [type(error).__name__]
            raise ExportError(f"LiteRT has no such operations: {reason[0]}") from error
    _refuse_others(content, {op for ops in custom.values() for op in ops})
    return content


def custom_operations(content: bytes) -> set[str]:
    """The names of the operations in a LiteRT file that are not built in."""
    codes = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0)).operatorCodes
    return {code.customCode.decode() for code in codes if code.customCode}


def _frozen(function: Function, inputs: list[tf.TensorSpec]) -> Any:
    """The function with its variables as constants, under the same names."""
    traced = tf.function(function, inputs, autograph=False).get_concrete_function()
    constant = convert_variables_to_constants_v2(traced, lower_control_flow=False)
    # As structured outputs are flattened.
    keys = sorted(traced.structured_outputs)

    def call(*arguments: tf.Tensor) -> dict[str, tf.Tensor]:
        found = constant(*arguments)
        return dict(zip(keys, found if isinstance(found, (list, tuple)) else [found], strict=True))

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(spec.name, kind) for spec in inputs]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return tf.function(call, input_signature=inputs, autograph=False)


def _refuse_others(content: bytes, allowed: set[str]) -> None:
    # `allow_custom_ops` hides an operation that no runtime has until it is called.
    others = custom_operations(content) - allowed
    if others:
        raise ExportError(
            f"LiteRT has no operation {', '.join(sorted(others))}, and the model needs it."
        )

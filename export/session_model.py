"""A SavedModel under the session loader, the one of TensorFlow Serving."""

import os
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the tokenizers' ops)

Arrays = dict[str, np.ndarray]


class SessionModel:
    """Answers requests as a server does: by signature, arrays by name in and out.

    Python's object loader proves nothing about a server: it restores variables and tokenizers by a
    way of its own. Any number of threads may ask.

    Args:
        saved_model: a version folder.
        on_cpu: without any GPU.

    Raises:
        tf.errors.OpError, OSError, ValueError: it does not load.

    Attributes:
        signatures: name -> SignatureDef.
    """

    def __init__(self, saved_model: str | os.PathLike[str], on_cpu: bool = False) -> None:
        config = tf.compat.v1.ConfigProto(device_count={"GPU": 0} if on_cpu else {})
        self._session = tf.compat.v1.Session(graph=tf.Graph(), config=config)
        with self._session.graph.as_default():
            loaded = tf.compat.v1.saved_model.load(self._session, ["serve"], os.fspath(saved_model))
        self.signatures: dict[str, Any] = {
            k: v for k, v in loaded.signature_def.items() if not k.startswith("__")
        }

    def __call__(self, signature: str, inputs: Arrays) -> Arrays:
        """The answer of a signature; all its inputs must be there, and no others."""
        called = self.signatures[signature]
        if set(inputs) != set(called.inputs):
            raise ValueError(
                f"{signature} takes {sorted(called.inputs)}. Received: {sorted(inputs)}"
            )
        outputs = {key: tensor.name for key, tensor in called.outputs.items()}
        feeds = {called.inputs[key].name: value for key, value in inputs.items()}
        return self._session.run(outputs, feeds)

    def close(self) -> None:
        """Frees its variables."""
        self._session.close()

    def __enter__(self) -> "SessionModel":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

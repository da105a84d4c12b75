"""The versions of one model in a folder: found, loaded, replaced while requests run."""

import logging
import os
import re
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import tensorflow as tf

from tf_transformer.errors import InputError
from tf_transformer.rooms import need
from tf_transformer.saved import is_saved_model, versions

from .batching import Arrays, Batcher, Closed
from .errors import RequestError, invalid, unavailable

_Stamp = list[tuple[str, int, int]]  # name, size and time of all files of a folder
_log = logging.getLogger(__name__)


class Version:
    """One loaded version, which answers requests in batches. Its warm-up has been replayed.

    Args:
        number: its folder's name.
        folder: the SavedModel.
        batching: arguments of `Batcher`.

    Raises:
        tf.errors.OpError, OSError, ValueError: it does not load, or a record of the warm-up fails.
    """

    def __init__(self, number: int, folder: Path, batching: dict[str, Any]) -> None:
        self.number = number
        self.model = need("export.session_model").SessionModel(folder)
        warm_up = need("export.warmup").check_warmup(folder, self.model)
        if not warm_up.ok:
            self.model.close()
            raise InputError(f"warm-up: {warm_up.detail}")
        self.signatures = self.model.signatures
        self._batcher = Batcher(self._run, **batching)

    def signature(self, name: str) -> Any:
        """Its SignatureDef; RequestError where there is none."""
        if name not in self.signatures:
            raise RequestError(
                grpc.StatusCode.FAILED_PRECONDITION, f'Serving signature key "{name}" not found.'
            )
        return self.signatures[name]

    def predict(self, name: str, inputs: Arrays) -> Arrays:
        """The outputs of a signature.

        Raises:
            RequestError: no such signature, other inputs than it takes, or they cannot be run.
        """
        expected = self.signature(name).inputs
        missing, extra = set(expected) - set(inputs), set(inputs) - set(expected)
        if missing or extra:
            sent, wanted = (",".join(sorted(names)) for names in (inputs, expected))
            raise invalid(
                f"input size does not match signature: {len(inputs)}!={len(expected)} "
                f"len({{{sent}}}) != len({{{wanted}}}). Sent extra: {{{','.join(sorted(extra))}}}. "
                f"Missing but required: {{{','.join(sorted(missing))}}}."
            )
        for key, tensor in expected.items():
            _check(key, tensor, inputs[key])
        return self._batcher(name, inputs)

    def close(self) -> None:
        """Answers what waits, then frees the weights."""
        self._batcher.close()
        self.model.close()

    def _run(self, name: str, inputs: Arrays) -> Arrays:
        try:
            return self.model(name, inputs)
        except (tf.errors.OpError, ValueError, TypeError) as error:
            raise invalid(str(error).splitlines()[0]) from error


def _check(key: str, tensor: Any, given: np.ndarray) -> None:
    dtype = tf.dtypes.as_dtype(tensor.dtype)
    if tf.dtypes.as_dtype(given.dtype) != dtype:
        raise invalid(
            f"Expects arg[0] to be {dtype.name} but {tf.dtypes.as_dtype(given.dtype).name} is "
            f"provided: {key}"
        )
    sizes = [dim.size for dim in tensor.tensor_shape.dim]
    fits = len(sizes) == given.ndim and all(
        wanted in (-1, size) for wanted, size in zip(sizes, given.shape, strict=False)
    )
    if not fits and not tensor.tensor_shape.unknown_rank:
        raise invalid(f"{key} must have shape {sizes}, -1 for any. Received: {list(given.shape)}")


def _stamp(folder: Path) -> _Stamp:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files]


class Models:
    """A model by name: the highest version of its folder, always.

    Args:
        folder: of versions, as TensorFlow Serving reads one; new ones are found by `refresh`.
        name: that clients use.
        batching: arguments of `Batcher`.

    Raises:
        InputError: there is no version that loads, or the name can't be part of a URL.
    """

    def __init__(self, folder: str | os.PathLike[str], name: str, **batching: Any) -> None:
        self.folder, self.name = Path(folder), name
        self._batching = batching
        self._broken: dict[int, _Stamp] = {}
        if not re.fullmatch(r"[^/:\s]+", name):
            raise InputError(f"The model's name must be without / : and blanks. Received: {name!r}")
        self.current: Version | None = None
        if not versions(self.folder):
            raise InputError(f"{self.folder} has no version: no folder called 1, 2, ...")
        self.refresh()
        if self.current is None:
            raise InputError(f"No version in {self.folder} loads; `tf-transformer check` says why.")

    def refresh(self) -> bool:
        """Loads the highest version if it is new; whether it was. The old one then goes.

        One that does not load is left out until its files change: it may be half copied.
        """
        found = {n: path for n, path in versions(self.folder).items() if is_saved_model(path)}
        for number in reversed(found):
            if self.current is not None and number == self.current.number:
                return False
            stamp = _stamp(found[number])
            if self._broken.get(number) == stamp:
                continue
            try:
                new = Version(number, found[number], self._batching)
            except (tf.errors.OpError, OSError, ValueError) as error:
                self._broken[number] = stamp
                reason = str(error).strip().splitlines()[0]
                _log.warning("Version %d does not load and is left out: %s", number, reason)
                continue
            self._replace(new)
            return True
        return False

    def _replace(self, new: Version) -> None:
        old, self.current = self.current, new
        _log.info("Version %d of %s is served.", new.number, self.name)
        if old is not None:
            old.close()

    def find(self, name: str, version: int | None = None) -> Version:
        """The version that a request means; RequestError where it is not served."""
        if not name:
            raise invalid("ModelSpec has no name specified.")
        current = self.current
        wanted = f"Latest({name})" if version is None else f"Specific({name}, {version})"
        if current is None or name != self.name or version not in (None, current.number):
            raise RequestError(
                grpc.StatusCode.NOT_FOUND, f"Servable not found for request: {wanted}"
            )
        return current

    def state(self, name: str, version: int | None = None) -> Version:
        """As `find`, with the words of a server that is asked for a status."""
        try:
            return self.find(name, version)
        except RequestError as error:
            if error.code != grpc.StatusCode.NOT_FOUND:
                raise
            missing = "any versions" if version is None else f"version {version}"
            raise RequestError(error.code, f"Could not find {missing} of model {name}") from None

    def predict(
        self, name: str, version: int | None, signature: str, inputs: Arrays
    ) -> tuple[Version, Arrays]:
        """Who answered, and the outputs; RequestError as `find` and `Version.predict` say."""
        while True:
            found = self.find(name, version)
            try:
                return found, found.predict(signature, inputs)
            except Closed:  # replaced in between: its successor answers
                if found is self.current:
                    raise unavailable("The server is shutting down") from None

    def close(self) -> None:
        """Answers what waits, then frees the weights."""
        if self.current is not None:
            self.current.close()

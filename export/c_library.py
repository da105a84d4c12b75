"""Runs a SavedModel with TensorFlow's C library, as a C++ server does, without Python TensorFlow.

A program by itself on the standard library alone, so that nothing of Python's TensorFlow can help:

    echo '[["je suis étudiant", ""], []]' | python c_library.py SAVED_MODEL INPUT OUTPUT...

INPUT and OUTPUT are tensor names such as `serving_default_text:0`. Standard input is a JSON list of
batches of texts (bytes that are not UTF-8 as lone surrogates, `surrogateescape`), standard output
the list of their outputs. Exit code 3 means that the libraries are not there.
"""

import ctypes
import importlib.util
import json
import sys
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_int64, c_size_t, c_void_p
from pathlib import Path
from typing import Any

NO_LIBRARY = 3  # exit code
_STRING, _FLOAT = 7, 1  # TF_DataType
_STRING_BYTES = 24  # sizeof(TF_TString)


class _Output(Structure):
    _fields_ = [("operation", c_void_p), ("index", c_int)]


_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "TF_NewStatus": (c_void_p, []),
    "TF_GetCode": (c_int, [c_void_p]),
    "TF_Message": (c_char_p, [c_void_p]),
    "TF_LoadLibrary": (c_void_p, [c_char_p, c_void_p]),
    "TF_NewGraph": (c_void_p, []),
    "TF_NewSessionOptions": (c_void_p, []),
    "TF_LoadSessionFromSavedModel": (
        c_void_p,
        [c_void_p, c_void_p, c_char_p, POINTER(c_char_p), c_int, c_void_p, c_void_p, c_void_p],
    ),
    "TF_GraphOperationByName": (c_void_p, [c_void_p, c_char_p]),
    "TF_AllocateTensor": (c_void_p, [c_int, POINTER(c_int64), c_int, c_size_t]),
    "TF_TensorData": (c_void_p, [c_void_p]),
    "TF_TensorType": (c_int, [c_void_p]),
    "TF_TensorElementCount": (c_int64, [c_void_p]),
    "TF_StringInit": (None, [c_void_p]),
    "TF_StringCopy": (None, [c_void_p, c_char_p, c_size_t]),
    "TF_StringGetDataPointer": (c_void_p, [c_void_p]),
    "TF_StringGetSize": (c_size_t, [c_void_p]),
    "TF_SessionRun": (
        None,
        [c_void_p, c_void_p, POINTER(_Output), POINTER(c_void_p), c_int, POINTER(_Output)]
        + [POINTER(c_void_p), c_int, c_void_p, c_int, c_void_p, c_void_p],
    ),
}


class LibraryNotFound(Exception):
    """TensorFlow is installed without its shared libraries, or not at all."""


class CLibrary:
    """TensorFlow's C functions with tensorflow_text's operations registered.

    Raises:
        LibraryNotFound: a package or its shared library is not there.
    """

    def __init__(self) -> None:
        package = _package("tensorflow")
        ctypes.CDLL(str(_one(package, "libtensorflow_framework.*")), ctypes.RTLD_GLOBAL)
        self._library = ctypes.CDLL(str(_one(package, "libtensorflow_cc.*")), ctypes.RTLD_GLOBAL)
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(self._library, name)
            function.restype, function.argtypes = result, arguments
        self._status = self._library.TF_NewStatus()
        for operations in sorted((_package("tensorflow_text") / "python").rglob("_*.so")):
            self.checked("TF_LoadLibrary", str(operations).encode())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)

    def checked(self, name: str, *arguments: Any) -> Any:
        """Calls a function whose last argument is the status; RuntimeError if that is not OK."""
        result = getattr(self._library, name)(*arguments, self._status)
        if self._library.TF_GetCode(self._status):
            raise RuntimeError(self._library.TF_Message(self._status).decode("utf-8", "replace"))
        return result


class Session:
    """A SavedModel's graph with its variables and tables loaded."""

    def __init__(self, library: CLibrary, saved_model: str) -> None:
        self._library = library
        self._graph = library.TF_NewGraph()
        options, tags = library.TF_NewSessionOptions(), (c_char_p * 1)(b"serve")
        arguments = options, None, saved_model.encode(), tags, 1, self._graph, None
        self._session = library.checked("TF_LoadSessionFromSavedModel", *arguments)

    def run(self, source: str, targets: list[str], texts: list[bytes]) -> list[list[Any]]:
        """The tensors called `targets` for one batch of texts, strings or floats, flat."""
        inputs, outputs = (_Output * 1)(self._output(source)), (_Output * len(targets))()
        for place, name in enumerate(targets):
            outputs[place] = self._output(name)
        given, found = (c_void_p * 1)(self._string_tensor(texts)), (c_void_p * len(targets))()
        arguments = inputs, given, 1, outputs, found, len(targets), None, 0, None
        self._library.checked("TF_SessionRun", self._session, None, *arguments)
        return [self._values(tensor) for tensor in found]

    def _output(self, name: str) -> _Output:
        operation, _, index = name.partition(":")
        found = self._library.TF_GraphOperationByName(self._graph, operation.encode())
        if not found:
            raise RuntimeError(f"the graph has no tensor {name}")
        return _Output(found, int(index))

    def _string_tensor(self, texts: list[bytes]) -> int:
        shape, size = byref(c_int64(len(texts))), _STRING_BYTES * len(texts)
        tensor = self._library.TF_AllocateTensor(_STRING, shape, 1, size)
        start = self._library.TF_TensorData(tensor) or 0
        for place, text in enumerate(texts):
            self._library.TF_StringInit(start + _STRING_BYTES * place)
            self._library.TF_StringCopy(start + _STRING_BYTES * place, text, len(text))
        return tensor

    def _values(self, tensor: int | None) -> list[Any]:
        count = self._library.TF_TensorElementCount(tensor)
        kind = self._library.TF_TensorType(tensor)
        start = self._library.TF_TensorData(tensor) or 0
        if kind == _FLOAT:
            return list((ctypes.c_float * count).from_address(start)) if count else []
        if kind != _STRING:
            raise RuntimeError(f"only strings and floats can be read, not TF_DataType {kind}")
        strings = [start + _STRING_BYTES * place for place in range(count)]
        read, size = self._library.TF_StringGetDataPointer, self._library.TF_StringGetSize
        return [ctypes.string_at(read(string), size(string)) for string in strings]


def main(saved_model: str, source: str, *targets: str) -> None:
    """Reads batches from standard input, writes their outputs to standard output."""
    batches = [[t.encode("utf-8", "surrogateescape") for t in b] for b in json.load(sys.stdin)]
    try:
        library = CLibrary()
    except LibraryNotFound as error:
        print(error, file=sys.stderr)
        sys.exit(NO_LIBRARY)
    try:
        session = Session(library, saved_model)
        found = [session.run(source, list(targets), texts) for texts in batches]
    except RuntimeError as error:
        sys.exit(str(error).strip().partition("\n")[0])
    if "tensorflow" in sys.modules:
        sys.exit("Python's TensorFlow was loaded: this was no test of the library alone.")
    print(json.dumps(found, default=lambda text: text.decode("utf-8", "surrogateescape")))


def _package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise LibraryNotFound(f"the package {name} is not installed")
    return Path(spec.origin).parent


def _one(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if not found:
        raise LibraryNotFound(f"there is no {pattern} in {folder}")
    return found[0]


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])

"""Runs a SavedModel with TensorFlow's C library, as a C++ server does, without Python TensorFlow.

A program by itself on the standard library alone, so that nothing of Python's TensorFlow can help:

    python c_library.py SAVED_MODEL < requests.json

Standard input is a JSON list of requests, standard output the list of their answers:

    {"inputs": {"serving_default_text:0": [7, [2], ["je suis étudiant", ""]]},
     "outputs": {"text": "StatefulPartitionedCall:0"}}
    {"outputs": {"text": [7, [2], ["I am a student", ""]]}}    or, where it fails, {"error": "..."}

A tensor is its TF_DataType, its shape and its values in one row; bytes that are not UTF-8 are lone
surrogates (`surrogateescape`). Exit code 3 means that the libraries are not there.
"""

import ctypes
import importlib.util
import json
import sys
from ctypes import POINTER, Structure, c_char_p, c_int, c_int64, c_size_t, c_void_p
from pathlib import Path
from typing import Any

NO_LIBRARY = 3  # exit code
_STRING = 7  # TF_DataType
_STRING_BYTES = 24  # sizeof(TF_TString)
_NUMBERS: dict[int, Any] = {1: ctypes.c_float, 2: ctypes.c_double, 10: ctypes.c_bool}
_NUMBERS |= {6: ctypes.c_int8, 5: ctypes.c_int16, 3: ctypes.c_int32, 9: ctypes.c_int64}
_NUMBERS |= {4: ctypes.c_uint8, 17: ctypes.c_uint16, 22: ctypes.c_uint32, 23: ctypes.c_uint64}
Tensor = list[Any]  # dtype, shape, values


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
    "TF_NumDims": (c_int, [c_void_p]),
    "TF_Dim": (c_int64, [c_void_p, c_int]),
    "TF_TensorElementCount": (c_int64, [c_void_p]),
    "TF_DeleteTensor": (None, [c_void_p]),
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

    def run(self, inputs: dict[str, Tensor], outputs: dict[str, str]) -> dict[str, Tensor]:
        """The values of the tensors that `outputs` names, fed with `inputs` by tensor name."""
        feeds, fetches = (_Output * len(inputs))(), (_Output * len(outputs))()
        given, found = (c_void_p * len(inputs))(), (c_void_p * len(outputs))()
        for place, (name, tensor) in enumerate(inputs.items()):
            feeds[place], given[place] = self._output(name), self._tensor(*tensor)
        for place, name in enumerate(outputs.values()):
            fetches[place] = self._output(name)
        arguments = feeds, given, len(feeds), fetches, found, len(fetches), None, 0, None
        try:
            self._library.checked("TF_SessionRun", self._session, None, *arguments)
            return {name: self._read(x) for name, x in zip(outputs, found, strict=True)}
        finally:
            for tensor in (*given, *found):
                if tensor:
                    self._library.TF_DeleteTensor(tensor)

    def _output(self, name: str) -> _Output:
        operation, _, index = name.partition(":")
        found = self._library.TF_GraphOperationByName(self._graph, operation.encode())
        if not found:
            raise RuntimeError(f"the graph has no tensor {name}")
        return _Output(found, int(index))

    def _tensor(self, kind: int, shape: list[int], values: list[Any]) -> int:
        sizes = (c_int64 * len(shape))(*shape)
        if kind != _STRING:
            numbers = (_number(kind) * len(values))(*values)
            size = ctypes.sizeof(numbers)
            tensor = self._library.TF_AllocateTensor(kind, sizes, len(shape), size)
            ctypes.memmove(self._library.TF_TensorData(tensor) or 0, numbers, size)
            return tensor
        size = _STRING_BYTES * len(values)
        tensor = self._library.TF_AllocateTensor(kind, sizes, len(shape), size)
        start = self._library.TF_TensorData(tensor) or 0
        for place, value in enumerate(values):
            text = value.encode("utf-8", "surrogateescape")
            self._library.TF_StringInit(start + _STRING_BYTES * place)
            self._library.TF_StringCopy(start + _STRING_BYTES * place, text, len(text))
        return tensor

    def _read(self, tensor: int) -> Tensor:
        library, kind = self._library, self._library.TF_TensorType(tensor)
        shape = [library.TF_Dim(tensor, axis) for axis in range(library.TF_NumDims(tensor))]
        count, start = library.TF_TensorElementCount(tensor), library.TF_TensorData(tensor) or 0
        if not count:
            return [kind, shape, []]
        if kind != _STRING:
            return [kind, shape, list((_number(kind) * count).from_address(start))]
        strings = [start + _STRING_BYTES * place for place in range(count)]
        read, size = library.TF_StringGetDataPointer, library.TF_StringGetSize
        texts = [ctypes.string_at(read(string), size(string)) for string in strings]
        return [kind, shape, [text.decode("utf-8", "surrogateescape") for text in texts]]


def main(saved_model: str) -> None:
    """Reads requests from standard input, writes their answers to standard output."""
    requests = json.load(sys.stdin)
    try:
        session = Session(CLibrary(), saved_model)
    except LibraryNotFound as error:
        print(error, file=sys.stderr)
        sys.exit(NO_LIBRARY)
    except RuntimeError as error:
        sys.exit(_first_line(error))
    answers: list[dict[str, Any]] = []
    for request in requests:
        try:
            answers.append({"outputs": session.run(request["inputs"], request["outputs"])})
        except RuntimeError as error:
            answers.append({"error": _first_line(error)})
    if "tensorflow" in sys.modules:
        sys.exit("Python's TensorFlow was loaded: this was no test of the library alone.")
    json.dump(answers, sys.stdout)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _number(kind: int) -> Any:
    if kind not in _NUMBERS:
        raise RuntimeError(f"tensors of TF_DataType {kind} are not read here")
    return _NUMBERS[kind]


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
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])

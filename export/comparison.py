"""One set of requests answered in several ways: what is right, who differs, what cannot be sent."""

from collections.abc import Callable

import numpy as np

from .answers import Answer, Refused, Request, reason
from .c_library import LibraryNotFound
from .probes import plain
from .result import CheckResult

# Of scores between -1 and -10. The kernels are the same, what the graph optimizer fuses may not be.
_TOLERANCE = 1e-4

Way = Callable[[list[Request]], list[Answer]]


class Comparison:
    """Requests, and what is right, as the first way to ask them has it.

    Args:
        requests: those that it does not accept are replaced by plainer ones, or dropped.
        is_ours: then each has to be accepted.

    Attributes:
        expected: the right answers, None before a way has loaded.
        found: the latest answers.
    """

    def __init__(self, requests: list[Request], is_ours: bool) -> None:
        self.requests, self.is_ours = requests, is_ours
        self.expected: list[Answer] | None = None
        self.found: list[Answer] = []

    def result(self, name: str, way: Way) -> CheckResult:
        """What a way says, against the first."""
        try:
            if self.expected is None:
                return self._first(name, way)
            self.found = found = way(self.requests)
        except LibraryNotFound as error:
            return CheckResult(name, True, f"skipped: {error}")
        except Exception as error:  # what does not load is a finding, whatever it raises
            return CheckResult(name, False, f"it does not load: {reason(error)}")
        for request, right, answer in zip(self.requests, self.expected, found, strict=True):
            problem = _difference(right, answer)
            if problem:
                return CheckResult(name, False, f"{request.signature}: {problem}")
        return CheckResult(name, True, f"{len(found)} requests answered alike")

    def _first(self, name: str, way: Way) -> CheckResult:
        pairs = list(zip(self.requests, way(self.requests), strict=True))
        self.found = [x for _, x in pairs]
        refusals = {request.signature: x for request, x in pairs if isinstance(x, Refused)}
        if self.is_ours and refusals:
            signature, why = next(iter(refusals.items()))
            return CheckResult(name, False, f"{signature}: it does not answer: {why}")
        if refusals:
            plainer = [plain(request) for request, x in pairs if isinstance(x, Refused)]
            pairs += zip(plainer, way(plainer), strict=True)
        accepted = [(request, x) for request, x in pairs if not isinstance(x, Refused)]
        self.requests = [request for request, _ in accepted]
        self.found = self.expected = [x for _, x in accepted]
        asked = {x.signature for x in self.requests if any(y.size for y in x.inputs.values())}
        notes = [f"{len(asked)} signatures, {len(self.requests)} requests answered"]
        notes += [
            f"skipped: {signature} accepts no probe: {why}"
            for signature, why in refusals.items()
            if signature not in asked
        ]
        return CheckResult(name, True, "; ".join(notes))


def check_sendable(requests: list[Request], answers: list[Answer]) -> CheckResult:
    """Whether a server can send the answers: batches that it can split, text and plain numbers."""
    problems: list[str] = []
    shapes: dict[tuple[str, str], tuple[int, ...]] = {}
    for request, answer in zip(requests, answers, strict=True):
        rows = {len(x) for x in request.inputs.values() if x.ndim}
        for key, values in answer.items() if not isinstance(answer, Refused) else ():
            problem = _server_problem(key, values, rows)
            if values.shape[1:] != shapes.setdefault((request.signature, key), values.shape[1:]):
                problem = "is as wide as its batch, and a server joins the requests of strangers"
            problems += [f"{request.signature}: output `{key}` {problem}"] if problem else []
    detail = "; ".join(dict.fromkeys(problems)) or f"{len(shapes)} outputs"
    return CheckResult("sendable", not problems, detail)


def _server_problem(key: str, values: np.ndarray, rows: set[int]) -> str:
    if len(rows) == 1 and (not values.ndim or {len(values)} != rows):
        return f"has the shape {values.shape} for {max(rows)} rows"
    if values.dtype == object and not key.endswith("_bytes"):
        bad = [x for x in values.ravel() if x.decode("utf-8", "replace").encode() != x]
        return f"is {bad[0]!r}, which is not UTF-8" if bad else ""
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        return "is not finite, and JSON has no word for that"
    return ""


def _difference(right: Answer, answer: Answer) -> str:
    if isinstance(right, Refused) or isinstance(answer, Refused):
        return f"it does not answer: {answer if isinstance(answer, Refused) else right}"
    for key, values in right.items():
        if key not in answer or answer[key].shape != values.shape:
            return f"the output `{key}` is missing or of another shape"
        if values.dtype.kind == "f":
            same = np.isclose(answer[key], values, rtol=_TOLERANCE, atol=_TOLERANCE, equal_nan=True)
        else:
            same = answer[key] == values
        if not np.all(same):
            place = tuple(np.argwhere(~same)[0].tolist())
            row = f"row {place[0]} of `{key}`" if place else f"`{key}`"
            return f"{row} is {answer[key][place]!r}, not {values[place]!r}"
    return ""

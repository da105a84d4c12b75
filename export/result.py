"""What a check says."""

import dataclasses

from tf_transformer.errors import InputError


@dataclasses.dataclass(frozen=True)
class CheckResult:
    """One line of a report.

    >>> print(CheckResult("signatures", False, "input `n` is a scalar"))
    FAILED signatures: input `n` is a scalar

    Args:
        name: of the check.
        ok: whether the SavedModel may be served. A check that could not run is ok, and says so.
        detail: what was seen; begins with "skipped: " where the check could not run.
    """

    name: str
    ok: bool
    detail: str

    def __str__(self) -> str:
        return f"{'ok    ' if self.ok else 'FAILED'} {self.name}: {self.detail}"


class ExportError(InputError):
    """A translator that cannot be exported: a check refused what was written."""

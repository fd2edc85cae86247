"""Row of a run: a check in one dtype on one device."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from veriformer.verify.judging.check import Check
from veriformer.verify.results import Result, Status
from veriformer.verify.targets.kinds import MODELS

_OF_MODELS = "fp64"
"""Format in which a model is judged where it can be called in it: it tells most."""


@dataclass(frozen=True)
class CheckRun:
    """Row of a run: a check, a dtype and a device."""

    check: Check
    dtype: str
    device: str = "cpu"

    @property
    def key(self) -> str:
        """Name of the row, equal in every run."""
        return f"{self.check.requirement.slug}[{self.dtype}-{self.device}]"

    @property
    def group(self) -> str:
        """Group of the row: rows of one group run in order on one worker, so that prerequisites come first."""
        return f"{self.check.operation}-{self.dtype}"

    def result(self, status: Status, **fields: object) -> Result:
        """Return a Result for this row."""
        requirement = self.check.requirement
        return Result(
            requirement=requirement.slug,
            operation=requirement.operation,
            equations=list(requirement.equations),
            dtype=self.dtype,
            device=self.device,
            status=status,
            bug_class=requirement.bug_class or None,
            kind=requirement.kind.value,
            weight=requirement.weight.value,
            **fields,  # type: ignore[arg-type]
        )


def plan(checks: Sequence[Check], dtypes: Sequence[str], device: str = "cpu") -> list[CheckRun]:
    """Return every row of a run, in the order in which results are listed.

    An operation that is judged in one format alone, as schedules and models are, is judged in that whatever is asked.
    """
    asked = {check.operation for check in checks if not set(dtypes).isdisjoint(check.dtypes)}
    return [CheckRun(check, dtype, device) for check in checks for dtype in _formats(check, dtypes, asked)]


def _formats(check: Check, dtypes: Sequence[str], asked: Collection[str]) -> list[str]:
    own = [dtype for dtype in dtypes if dtype in check.dtypes]
    if check.operation in MODELS and _OF_MODELS not in own and _OF_MODELS in check.dtypes:
        return [_OF_MODELS, *own]
    return own if check.operation in asked else list(check.dtypes[:1])

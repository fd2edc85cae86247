"""Result of a comparison, as an object and as results.json."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from veriformer.spec import suite
from veriformer.verify.comparison.causes import Cause, causes
from veriformer.verify.comparison.evidence import Evidence, Observed
from veriformer.verify.comparison.script import script
from veriformer.verify.engine import environment
from veriformer.verify.presentation.error import FindingsError
from veriformer.verify.presentation.ranked import by_weight
from veriformer.verify.results import Counterexample, Result, Results, Status, Verdict, write
from veriformer.verify.results.finding import Finding
from veriformer.verify.scripts.script import describe

BLIND = 0.5
"""A relative deviation: where only larger ones would be found in the given call, there is no verdict."""

_SHOWN = 64
"""Numbers of an argument that are written down."""


@dataclass
class Comparison:
    """Result of comparing two implementations.

    findings: every kind of difference, the gravest first. power: the relative deviation that would have been found in
    the given call, None where nothing was judged. why: why there is no verdict, where there is none.
    """

    reference: str
    candidate: str
    findings: list[Finding] = field(default_factory=list)
    power: float | None = None
    calls: int = 0
    cases: int = 0
    notes: list[str] = field(default_factory=list)
    why: str = ""
    seconds: float = 0.0
    rows: list[Result] = field(default_factory=list)
    started: str = ""
    device: str = "cpu"

    @property
    def verdict(self) -> Verdict:
        """``holds`` where they agree, ``violated`` where they differ, ``inconclusive`` where nothing can be said."""
        if self.grave:
            return Verdict.VIOLATED
        return Verdict.INCONCLUSIVE if self.why else Verdict.HOLDS

    @property
    def grave(self) -> list[Finding]:
        """The findings that the verdict rests on: all but advice."""
        return [one for one in self.findings if not one.weight.advice]

    @property
    def exit_status(self) -> int:
        """0 they agree, 1 they differ, 3 there is no verdict."""
        return {Verdict.HOLDS: 0, Verdict.VIOLATED: 1}.get(self.verdict, 3)

    def raise_for_findings(self) -> None:
        """Return where they agree; else raise FindingsError with what the terminal shows."""
        if self.verdict != Verdict.HOLDS:
            from veriformer.verify.comparison.terminal import as_text

            raise FindingsError(as_text(self), self.grave)

    def results(self) -> Results:
        """Return the comparison as results.json: one row for each kind of difference that was looked for, in each
        dtype."""
        return Results(
            suite=suite.record(),
            implementation={
                "target": self.candidate,
                "name": self.candidate,
                "version": None,
                "claims": {"reference": self.reference},
            },
            environment=environment.environment(self.device),
            profile="compare",
            seed="0",
            started=self.started,
            duration_s=round(self.seconds, 3),
            planned=len(self.rows),
            findings=self.findings,
            results=self.rows,
        )

    def write(self, path: Path) -> None:
        """Write results.json."""
        write(self.results(), path)


def concluded(found: Observed) -> Comparison:
    """The comparison from what was observed."""
    known = causes(found)
    told = [_finding(found, cause) for cause in known]
    first = next((one for one in found.of("first") if one.name in ("given", "weights", "small")), None)
    power = first.judged.power if first is not None else None
    why = found.why or _why(found, power)
    notes = [seen["note"] for seen in found.seen if seen.get("note")]
    if found.prepared.get("random"):
        notes.append("draws random numbers as it is given: compared by their distribution, and in evaluation mode")
    if found.untried:
        notes.append(f"not tried for want of time: {', '.join(found.untried[:6])}")
    findings = by_weight(told)
    return Comparison(
        found.reference,
        found.candidate,
        findings,
        power,
        calls=len(found.evidence),
        cases=len(found.references),
        notes=list(dict.fromkeys(notes)),
        why=why,
        seconds=found.seconds,
        rows=list(_rows(found, findings)),
        started=found.started,
        device=found.device,
    )


def _why(found: Observed, power: float | None) -> str:
    if not found.evidence:
        return "no call was judged"
    if power is not None and power > BLIND:
        return f"rounding alone moves the reference's result so far that only deviations above {power:.1g} would show"
    return ""


def _finding(found: Observed, cause: Cause) -> Finding:
    sentence = f"{cause.what}{f' ({cause.when})' if cause.when else ''}"
    kinds = dict.fromkeys(_dtype(one) for one in cause.calls)
    return Finding(
        id=cause.slug,
        weight=cause.weight,
        operation=_name(found),
        what=cause.what,
        when=cause.when,
        dtypes=tuple(kinds),
        requirements=(f"compare.{cause.slug}",),
        counterexample=_counterexample(found, cause, sentence),
        confirmed=cause.confirmed,
    )


def _name(found: Observed) -> str:
    return str(found.prepared.get("name", found.reference))


def _counterexample(found: Observed, cause: Cause, sentence: str) -> dict[str, Any]:
    one = cause.calls[0] if cause.calls else None
    arguments: dict[str, Any] = {}
    scalars = None
    if one is not None:
        from veriformer.verify.comparison.calling import leaves_of
        from veriformer.verify.comparison.holding import Prepared

        prepared = Prepared.load(found.folder, one.name.partition(".")[0], "cpu")
        tensors = leaves_of(prepared.inputs)
        scalars = sum(x.numel() for x in tensors.values())
        for name, x in tensors.items():
            small = x.numel() <= _SHOWN
            arguments[name] = describe(x) if small else f"{str(x.dtype).removeprefix('torch.')} {list(x.shape)}"
    worst = cause.difference.worst if cause.difference is not None else ()
    columns: Sequence[Any] = list(zip(*[item[1:] for item in worst], strict=True)) or (None, None, None)
    observed, exact, bound = (None if column is None else list(column) for column in columns)
    return vars(
        Counterexample(
            arguments=arguments,
            observed=observed,
            exact=exact,
            bound=bound,
            script=script(found, cause, sentence),
            scalars=scalars,
        )
    )


_ASPECTS = {
    "values": ("values", "not finite", "shape", "dtype", "parts", "type", "raises"),
    "gradients": ("gradient", "no gradient"),
    "state": ("state",),
    "purity": ("changed", "alias", "late", "overwritten"),
}


def _dtype(one: Evidence) -> str:
    if one.case.dtype:
        return {"bfloat16": "bf16", "float16": "fp16", "float64": "fp64", "float32": "fp32"}[one.case.dtype]
    return "given"


def _rows(found: Observed, findings: list[Finding]) -> list[Result]:
    rows = []
    for dtype in dict.fromkeys(_dtype(one) for one in found.evidence):
        calls = [one for one in found.evidence if _dtype(one) == dtype and one.process != "alone"]
        for aspect, kinds in _ASPECTS.items():
            asked = [one for one in calls if one.case.gradient or aspect != "gradients"]
            if not asked:
                continue
            off = [one for one in asked if one.differs(*kinds)]
            grave = any(not finding.weight.advice for finding in findings)
            ratio = max(one.judged.worst for one in asked)
            rows.append(
                Result(
                    requirement=f"compare.{aspect}",
                    operation=_name(found),
                    equations=[],
                    dtype=dtype,
                    device=found.device,
                    status=Status.PASS if not off else Status.FAIL if grave else Status.ADVICE,
                    examples=len(asked),
                    worst_ratio=ratio if aspect == "values" else None,
                )
            )
    return rows

"""Failing cases again: with more perturbed runs, in processes of their own, at smaller sizes, after the reference."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from typing import Any

import torch

from veriformer.verify.comparison.judgement import NUMERIC, Evidence, Observed, failing_calls, judge, take
from veriformer.verify.comparison.references import RUNS
from veriformer.verify.comparison.session import Ran, Session
from veriformer.verify.operations.models.noise import factor

MORE_RUNS = 40
"""Perturbed runs more of a case in which the first few leave open whether rounding explains it."""

ALONE, SMALLER = 6, (2, 3, 5)
"""Failing cases that are repeated in processes of their own; sizes that are tried for a smaller counterexample."""

COARSEST = 2.0**-5
"""Relative errors above this are no matter of the format."""


def look_closer(session: Session, found: Observed, budget: float) -> None:
    """Perturb further the cases that few runs leave undecided, and judge all their calls anew."""
    strict, loose = factor(RUNS, found.numbers()), factor(10**6, found.numbers())
    open_ = {
        one.name.partition(".")[0]
        for one in found.evidence
        if loose / strict < one.judged.worst and not any(d.ratio > 4 * strict for d in one.differs(*NUMERIC))
    }
    names = [name for name in found.references if name in open_ and found.references[name]["runs"] == RUNS]
    if not names or not budget:
        return
    more = session.evaluate(
        found.reference, found.folder, names, budget, stateful=found.prepared["stateful"], first=RUNS, runs=MORE_RUNS,
        case_s=budget / len(names),
    )  # fmt: skip
    for name in names:
        record = more.record(name)
        if record is not None:
            _merge(found.references[name], record)
    count = found.numbers()
    for one in found.evidence:
        of = one.name.partition(".")[0]
        if of in names:
            one.judged = replace(judge(found.references[of], one.judged.record, count), record=one.judged.record)


def _merge(mine: dict[str, Any], more: dict[str, Any]) -> None:
    a, b = mine["runs"], more["runs"]
    for name, x in mine["spread"].items():
        y = more["spread"].get(name)
        if y is None or y.shape != x.shape:
            continue
        mine["spread"][name] = ((a * x.square() + b * y.square()) / (a + b)).sqrt()
        mine["most"][name] = torch.maximum(mine["most"][name], more["most"][name])
    mine["runs"] = a + b


def confirm(session: Session, found: Observed, until: float) -> None:
    """Repeat failing cases in fresh processes; then find out what makes those differ that differ there too."""
    names = list(dict.fromkeys(one.name.partition(".")[0] for one in failing_calls(found)))
    order = list(found.cases)
    names = sorted(names, key=lambda name: (not found.cases[name].ordinary, order.index(name)))[:ALONE]
    known = {"stateful": found.prepared["stateful"]}
    wrong = []
    for name in names:
        if time.monotonic() > until:
            return
        ran = session.candidate(found.candidate, found.folder, [name], 10.0, **known)
        alone = take(found, "alone", ran)
        if any(one.differs(*NUMERIC, "shape", "dtype") for one in alone):
            wrong.append(name)
        elif not any(one.differs("raises") for one in alone):
            ran = session.candidate(found.candidate, found.folder, [name], 10.0, fill=True, **known)
            found.filled[name] = _differs(found, ran, name)
    if not wrong or time.monotonic() > until:
        return
    _shrink(session, found, wrong[0])
    name = wrong[0]
    for keep in (True, False):
        ran = session.candidate(
            found.candidate, found.folder, [name], 10.0, reference=found.reference, keep=keep, **known
        )
        found.after[name] = found.after.get(name, False) or (name in ran.records and not _differs(found, ran, name))
    found.similarity = _similarity(session, found, wrong)


def _shrink(session: Session, found: Observed, name: str) -> None:
    """Try the failing case at the smallest sizes, and keep the first that fails as well."""
    case, symbols = found.cases[name], found.prepared["symbols"]
    now = dict(case.sizes)
    known = {"stateful": found.prepared["stateful"]}
    smaller = {
        f"{name} with sizes of {n}": case.but(sizes=tuple((size, min(n, now.get(size, size))) for size in symbols))
        for n in SMALLER
    }
    given = {one: other.to_dict() for one, other in smaller.items()}
    folder, taken = session.prepare(found.reference, found.inputs, 10.0, cases=given)
    done = session.evaluate(found.reference, folder, taken["cases"], 10.0, **known)
    ran = session.candidate(found.candidate, folder, taken["cases"], 10.0, **known)
    for one in taken["cases"]:
        record = done.record(one)
        if one not in ran.records or record is None:
            continue
        judged = judge(record, ran.records[one], found.numbers())
        if any(d.kind in NUMERIC for d in judged.differences):
            judged.record = ran.records[one]
            shutil.copytree(folder, found.folder, dirs_exist_ok=True)
            found.seen.append({**ran.found, "process": "smaller"})
            found.evidence.append(Evidence(one, smaller[one], "smaller", judged))
            return


def _differs(found: Observed, ran: Ran, name: str) -> bool:
    record = ran.records.get(name)
    return record is not None and bool(judge(found.references[name], record, found.numbers()).differences)


def _similarity(session: Session, found: Observed, names: list[str]) -> float | None:
    """Correlate errors at nearby inputs: 1 for another formula, about 0 for rounding."""
    for name in names:
        alone = [one for one in found.of("alone") if one.name == name]
        errors = [d.error for one in alone for d in one.differs("values")]
        if not errors or not 0 < max(errors) < COARSEST:
            continue
        jitter = 8 * max(errors)
        folder, known = session.prepare(
            found.reference, found.inputs, 10.0, cases={"moved": found.cases[name].but(jitter=jitter).to_dict()}
        )
        if not known["cases"]:
            return None
        stateful = found.prepared["stateful"]
        ran = session.candidate(found.candidate, folder, ["moved"], 10.0, stateful=stateful)
        done = session.evaluate(found.reference, folder, ["moved"], 10.0, stateful=stateful)
        moved = done.record("moved")
        if "moved" not in ran.records or moved is None:
            return None
        a = _errors(found.references[name], alone[0].judged.record)
        b = _errors(moved, ran.records["moved"])
        if a.shape != b.shape or not a.numel():
            return None
        size = float((a.square().sum() * b.square().sum()).sqrt())
        return float((a * b).sum()) / size if size else None
    return None


def _errors(reference: dict[str, Any], record: dict[str, Any]) -> torch.Tensor:
    """Return the errors of a result relative to its numbers' sensitivity to rounding, each clipped."""
    found = []
    for place, x in reference["record"]["results"].items():
        y = record["results"].get(place)
        if not isinstance(x, torch.Tensor) or not isinstance(y, torch.Tensor) or not x.is_floating_point():
            continue
        exact = reference["exact"].get(f"result{place}", x)
        error = (y.double() - exact.double()) / (reference["spread"][f"result{place}"] + torch.finfo(x.dtype).tiny)
        error = (
            error[error.isfinite()].flatten() if error.isfinite().all() else error.nan_to_num(0.0, 0.0, 0.0).flatten()
        )
        limit = 4 * error.abs().median() if error.numel() else 0.0
        found.append(error.clamp(-limit, limit))
    return torch.cat(found) if found else torch.empty(0)

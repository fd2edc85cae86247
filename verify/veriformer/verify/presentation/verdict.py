"""The verdict on a run in two lines: what it comes to, and for what part of the contract that holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set

from veriformer.spec.requirement import Weight
from veriformer.verify.findings.record import Finding
from veriformer.verify.presentation.clean import one_line
from veriformer.verify.presentation.ranked import advice, grave
from veriformer.verify.presentation.run import HARNESS_ERROR, HELD, Run, named, number

_DTYPES = ("fp64", "fp32", "bf16", "fp16")


def target(run: Run) -> str:
    """The implementation by the word it was asked for by."""
    return one_line(run.implementation["target"], 80)


def headline(run: Run) -> str:
    """The run in one sentence, for somebody who has never seen this suite; begins with the name of the target."""
    said = {"violated": _violated, "holds": _holds, "inconclusive": _inconclusive, "invalid": _invalid}
    return f"{target(run)} {said[str(run.verdict)](run)}"


def _violated(run: Run) -> str:
    found = grave(run)
    counts = counted(found)
    weights = {finding.weight for finding in found}
    if not found:
        return "is narrower than the contract, and is held strictly: no finding"
    if weights <= {Weight.FRAGILE}:
        return f"follows the published mathematics on ordinary input and fails at the edges: {counts}"
    if Weight.LEAK in weights and Weight.WRONG not in weights:
        return f"lets through what must not be seen: {counts}"
    if all(weight.advice for weight in weights):
        return f"does not meet the contract strictly: {counts}"
    return f"does not compute the published mathematics: {counts}"


def counted(found: Sequence[Finding]) -> str:
    """``3 findings (2 wrong, 1 leak)``."""
    tally = Counter(finding.weight for finding in found)
    return f"{number(len(found), 'finding')} ({', '.join(f'{tally[w]} {w}' for w in Weight if tally[w])})"


def _holds(run: Run) -> str:
    spare = advice(run)
    more = f"; {number(len(spare), 'piece')} of advice" if spare else ""
    return f"computes the published mathematics, as far as it was tried: no finding{more}"


def _inconclusive(run: Run) -> str:
    if all(row.status == "not-provided" for row in run.results):
        return f"was not judged: it has none of the operations that were asked for{_meant(run)}"
    return f"was not judged well enough for a verdict: {one_line('; '.join(run.gaps), 200)}"


def _meant(run: Run) -> str:
    """Names of the target's own that come close to those of the contract, where that is why nothing was found."""
    near = (str(row.message) for row in run.results if "did you mean" in str(row.message))
    return "".join(f"; {one_line(message, 120)}" for message in list(dict.fromkeys(near))[:2])


def _invalid(run: Run) -> str:
    reasons, errors = [], run.summary.get(HARNESS_ERROR, 0)
    if len(run.results) != run.planned:
        reasons.append(f"{len(run.results)} of {run.planned} planned rows ran")
    if errors:
        reasons.append(f"the suite itself broke in {number(errors, 'row')}")
    found = grave(run)
    so_far = f"; so far {counted(found)}" if found else ""
    return f"has no valid verdict, nothing here may be relied on: {' and '.join(reasons)}{so_far}"


def scope(run: Run) -> str:
    """For what it holds: operations, dtypes, directions, and how much of the contract's features there is."""
    held = [row for row in run.results if row.status in HELD]
    if not held:
        return ""
    operations = _operations(run)
    judged = [named(operations, 3), _formats(run), _directions(run, HELD if operations else {*HELD, "fail"})]
    start = "Judged" if not operations else "Holds" if run.verdict == "holds" else "Otherwise it holds"
    return f"{start} for {', '.join(filter(None, judged))}{_features(run)}"


def _operations(run: Run) -> list[str]:
    """The operations of which something was seen to hold, and that no finding is about."""
    found = {name for finding in grave(run) for name in finding.operation.split(", ")}
    held = dict.fromkeys(row.operation for row in run.results if row.status in HELD)
    return [name for name in held if name not in found]


def _formats(run: Run) -> str:
    met = {row.dtype for row in run.results if row.status in HELD}
    return named([name for name in _DTYPES if name in met], 4)


def _directions(run: Run, counted: Set[str]) -> str:
    """Whether rows of gradients ended so as well; nothing where none were asked for."""
    judged = {row.operation for row in run.results if row.status in counted}
    asked = {row.status for row in run.results if row.kind == "gradient" and row.operation in judged}
    if asked & counted:
        return "forward and backward"
    return "forward only" if asked else ""


def _features(run: Run) -> str:
    domains = run.domain.values()
    provided = sum(len(domain.provided) for domain in domains)
    refused = [feature for domain in domains for feature in domain.refused if " + " not in feature]
    rules = list(dict.fromkeys(one_line(rule, 60) for domain in domains for rule in domain.rules))
    if not provided + len(refused):
        return ""
    without = f" (without {named([one_line(f, 40) for f in dict.fromkeys(refused)], 3)})" if refused else ""
    where = f"; only where {named(rules, 3)}" if rules else ""
    return f"; {provided} of {provided + len(refused)} features provided{without}{where}"

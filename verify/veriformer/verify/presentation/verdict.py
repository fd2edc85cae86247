"""The verdict on a run in two lines: the outcome, and the part of the contract for which it holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from veriformer.spec.requirement import Weight
from veriformer.verify.presentation.known_failures import known_failures
from veriformer.verify.presentation.ranked import advice, grave, weaknesses
from veriformer.verify.presentation.recognised import outside
from veriformer.verify.results import Results, Status
from veriformer.verify.results.domain import Domain
from veriformer.verify.results.finding import Finding
from veriformer.verify.results.foreign import named, number, one_line
from veriformer.verify.results.unseen import describe_all
from veriformer.verify.results.verdict import HELD

_FEW = 3
"""Things that were not seen, as far as the first line names them."""

_DTYPES = ("fp64", "fp32", "bf16", "fp16")


def target(run: Results) -> str:
    """Return the implementation's name on the command line."""
    return one_line(run.implementation["target"], 80)


def word(run: Results) -> str:
    """Return the verdict in a few words: ``holds``, or ``holds with 2 weaknesses``."""
    weak = len(weaknesses(run))
    counted = f" with {weak} weakness{'' if weak == 1 else 'es'}" if weak and run.verdict == "holds" else ""
    return f"{run.verdict}{counted}"


def headline(run: Results) -> str:
    """Return the run in one sentence for a first-time reader; the target's name begins it."""
    said = {"violated": _violated, "holds": _holds, "inconclusive": _inconclusive, "invalid": _invalid}
    return f"{target(run)} {said[str(run.verdict)](run)}"


def _violated(run: Results) -> str:
    found = grave(run)
    counts = counted(found)
    weights = {finding.weight for finding in found}
    if not found:
        return "is narrower than the contract, and is held strictly: no finding"
    if all(weight.advice for weight in weights):
        return f"does not meet the contract, whose lesser weights were asked for as well: {counts}"
    if Weight.WRONG not in weights and Weight.LEAK not in weights:
        return f"follows the published mathematics on ordinary input and fails at the edges: {counts}"
    if Weight.LEAK in weights and Weight.WRONG not in weights:
        return f"lets through what must not be seen: {counts}"
    return f"does not compute the published mathematics: {counts}"


def counted(found: Sequence[Finding]) -> str:
    """Return ``3 findings (2 wrong, 1 leak)``."""
    tally = Counter(finding.weight for finding in found)
    return f"{number(len(found), 'finding')} ({', '.join(f'{tally[w]} {w}' for w in Weight if tally[w])})"


def _holds(run: Results) -> str:
    spare = [finding for finding in advice(run) if finding.weight is not Weight.WEAKNESS]
    known = len(known_failures(run))
    more = f"; {number(known, 'known failure')}" if known else ""
    more += f"; {number(len(spare), 'piece')} of advice" if spare else ""
    left, beside = describe_all(run.domain), _not_judged(run)
    what = f"computes the published mathematics{_of_operations(run) if left or beside else ''}"
    if not left:
        return f"{what}, as far as it was tried{beside}: no finding{more}"
    return f"{what} in what was run: {_some(left)}{beside}{more}"


def _not_judged(run: Results) -> str:
    """Return what else the code offers, as the end of a sentence: it is said to hold of what was judged alone."""
    refused = [one["name"] for one in run.implementation.get("not_recognised", ())]
    names = list(dict.fromkeys([*refused, *outside(run.implementation)]))
    also = list(run.implementation.get("also_judged", ()))
    by_equation = f"; {one_line(named(also, _FEW), 120)} by equation and purity alone" if also else ""
    return f"{by_equation}; {one_line(named(names, _FEW), 120)} not judged" if names else by_equation


def _of_operations(run: Results) -> str:
    operations = _operations(run)
    return f" for {named(operations, 3)}" if operations else ""


def _some(said: Sequence[str]) -> str:
    """Return the first few, and how many more there are."""
    more = f" and {len(said) - _FEW} more" if len(said) > _FEW else ""
    return one_line(", ".join(said[:_FEW]), 240) + more


def _inconclusive(run: Results) -> str:
    if unasked := _unasked(run):
        return f"was not judged: no row of {named(unasked, 3)}, which it has, was asked for by --only and --dtype"
    if all(row.status == "not-provided" for row in run.results):
        return f"was not judged: it has none of the operations that were asked for{_meant(run)}"
    if list(run.gaps) == list(run.unseen):
        left = list(dict.fromkeys([*run.unseen, *describe_all(run.domain)]))
        return f"was not judged whole: {_some(left)}; --partial accepts that"
    return f"was not judged well enough for a verdict: {one_line('; '.join(run.gaps), 200)}"


def _unasked(run: Results) -> list[str]:
    """Return recognised operations without a row in the selected dtypes."""
    found = dict.fromkeys(one["operation"] for one in run.implementation.get("recognised", ()))
    rows = {row.operation for row in run.results}
    return [] if any(name in rows for name in found) else list(found)


def _meant(run: Results) -> str:
    """Return names of the target that come close to those of the contract, where that is why nothing was found."""
    near = (str(row.message) for row in run.results if "did you mean" in str(row.message))
    return "".join(f"; {one_line(message, 120)}" for message in list(dict.fromkeys(near))[:2])


def _invalid(run: Results) -> str:
    reasons, errors = [], run.summary.get(Status.HARNESS_ERROR, 0)
    if len(run.results) != run.planned:
        reasons.append(f"{len(run.results)} of {run.planned} planned rows ran")
    if errors:
        reasons.append(f"the suite itself broke in {number(errors, 'row')}")
    found = grave(run)
    so_far = f"; so far {counted(found)}" if found else ""
    return f"has no valid verdict, nothing here may be relied on: {' and '.join(reasons)}{so_far}"


def scope(run: Results) -> str:
    """Return the scope of the verdict: operations, dtypes, directions, and the share of the contract's features.

    An operation holds in the dtypes in which its equation was answered and was right, and in no other.
    """
    operations = _operations(run)
    judged = [_held(run, operations) or named(_judged(run), 4), _directions(run, operations)]
    if not judged[0]:
        return ""
    start = "Judged" if not operations else "Holds" if run.verdict == "holds" else "Otherwise it holds"
    return f"{start} for {', '.join(filter(None, judged))}{_features(run)}"


def _operations(run: Results) -> list[str]:
    """Return the operations whose equation was seen to hold, and that no finding is about."""
    found = {name for finding in grave(run) for name in finding.operation.split(", ")}
    return [name for name in run.held if name not in found]


def _held(run: Results, operations: Sequence[str]) -> str:
    """Return operations with the dtypes in which they hold; those that share theirs together."""
    by_dtypes: dict[str, list[str]] = {}
    held = run.held
    for name in operations:
        by_dtypes.setdefault(named([dtype for dtype in _DTYPES if dtype in held[name]], 4), []).append(name)
    if len(by_dtypes) == 1:
        return next(f"{named(names, 3)}, {dtypes}" for dtypes, names in by_dtypes.items())
    return "; ".join(f"{named(names, 3)} ({dtypes})" for dtypes, names in by_dtypes.items())


def _judged(run: Results) -> list[str]:
    """Return the dtypes in which an equation was seen to hold, whatever findings there are."""
    met = {dtype for dtypes in run.held.values() for dtype in dtypes}
    return [name for name in _DTYPES if name in met]


def _directions(run: Results, operations: Sequence[str]) -> str:
    """Return whether gradients of what holds, else of what was judged, were seen as well; nothing if unasked.

    operations: those that hold.
    """
    counted = HELD if operations else {*HELD, "fail"}
    asked = [row for row in run.results if row.kind == "gradient" and row.operation in (operations or run.held)]
    if any(row.status in counted for row in asked):
        return "forward and backward"
    return "forward only" if asked else ""


def _in_a_format(domain: Domain) -> Iterator[str]:
    """Yield the features that one format alone refuses: a mask in fp16."""
    for label in domain.refused:
        dtype, _, feature = label.partition(" + ")
        if feature and dtype in _DTYPES:
            yield f"{feature} in {dtype}"


def _features(run: Results) -> str:
    domains = run.domain.values()
    provided = sum(len(domain.provided) for domain in domains)
    refused = [feature for domain in domains for feature in domain.refused if " + " not in feature]
    rules = list(dict.fromkeys(one_line(rule, 60) for domain in domains for rule in domain.rules))
    if not provided + len(refused):
        return ""
    lacking = dict.fromkeys((*(said for domain in domains for said in _in_a_format(domain)), *refused))
    without = f" (without {named([one_line(f, 40) for f in lacking], 3)})" if lacking else ""
    where = f"; only where {named(rules, 3)}" if rules else ""
    return f"; {provided} of {provided + len(refused)} features provided{without}{where}"

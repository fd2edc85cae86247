"""Causes of observed differences, each with the condition under which it shows.

A condition is a feature, or two, that the calls that fail have and those that hold have not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from veriformer.spec.requirement import Weight
from veriformer.verify.comparison.case import Case
from veriformer.verify.comparison.confirmation import COARSEST
from veriformer.verify.comparison.judgement import NUMERIC, Difference, Evidence, Observed

_DECORRELATED = 0.9
"""Errors less alike than this at arguments that hardly differ are those of rounding."""

_MAY_REFUSE = ("another size", "an axis of", "an expanded", "channels last", "one tensor passed", "storage ")
"""Beginnings of features that the reference takes, and a candidate may openly refuse."""

_WHAT = {"values": "gives other values", "gradient": "gives other gradients", "state": "leaves another state"}
_HALVES = ("bfloat16", "float16")
_SINGLE = 2.0**-22
"""Resolution of float32: a smaller error in float64 alone is one of precision, alike at arguments nearby or not."""

_FORMATS = ((2.0**-8, "bfloat16"), (2.0**-11, "TF32 or float16"), (2.0**-24, "float32"))


@dataclass(frozen=True)
class Cause:
    """Kind of difference of the candidate.

    slug: its class. what: one sentence without its subject. calls: where it was seen, the most telling first;
    difference: the one seen there. confirmed: whether a process of its own showed it again.
    """

    slug: str
    weight: Weight
    what: str
    when: str | None = None
    calls: tuple[Evidence, ...] = ()
    difference: Difference | None = None
    confirmed: bool = True


def causes(found: Observed) -> list[Cause]:
    """Return every cause of a difference, in the order of the searches."""
    known = [*_tampering(found), *_endings(found)]
    known += [*_history(found), *_numbers(found), *_forms(found), *_chance(found), *_purity(found)]
    return known


def _tampering(found: Observed) -> Iterator[Cause]:
    """Yield replaced functions and changed global state of the candidate's process."""
    replaced = sorted({name for seen in found.seen for name in seen["replaced"]})
    if replaced:
        yield Cause("replaces", Weight.WRONG, f"replaces {_listed(replaced)} for the whole process")
    changed: dict[str, set[str]] = {}
    for seen in found.seen:
        for when, what in seen["changes"].items():
            changed.setdefault(when, set()).update(what)
    for one in _both(found):
        mine = found.references[one.name.partition(".")[0]]["record"].get("touched", [])
        changed.setdefault("a call", set()).update(set(one.judged.record.get("touched", [])) - set(mine))
    for when, names in ((when, names) for when, names in changed.items() if names):
        yield Cause("state", Weight.WRONG, f"changes global state in {when}: {_listed(sorted(names))}")


def _endings(found: Observed) -> Iterator[Cause]:
    """Yield causes of calls that raise or do not return."""
    calls = [one for one in _both(found) if one.differs("raises")]
    groups: dict[str, list[Evidence]] = {}
    for one in calls:
        groups.setdefault(one.differs("raises")[0].said[:80], []).append(one)
    # The same refusal in other words, with other numbers in it, is told once.
    wanted: dict[tuple[bool, str], list[Evidence]] = {}
    for said, members in groups.items():
        kind = said.partition(":")[0]
        wanted.setdefault((_mild(kind, members), kind), []).extend(members)
    for (mild, kind), members in wanted.items():
        of = condition([one.case for one in members], _held(found, members))
        said = members[0].differs("raises")[0].said
        if kind in ("ends", "hangs"):
            slug, weight, what = kind, Weight.WRONG, said.partition(": ")[2]
        elif mild:
            slug, weight, what = "refuses", Weight.UNGUARDED, f"refuses what the reference takes: {_one(said)}"
        else:
            slug, weight, what = "raises", of.weight, f"raises {_one(said)}"
        yield Cause(slug, weight, what, of.words, tuple(members), members[0].differs()[0])


def _mild(kind: str, members: Sequence[Evidence]) -> bool:
    """Return whether it is a refusal of nothing but sizes, layouts or formats beside the given ones, or of
    gradients."""
    if kind in ("ends", "hangs", "SystemExit", "KeyboardInterrupt", "GeneratorExit"):
        return False
    return all(one.case.gradient or one.case.dtype or _openly(one.case.features) for one in members)


def _openly(features: Collection[str]) -> bool:
    return any(name.startswith(_MAY_REFUSE) or name.endswith(" storage") for name in features)


def _history(found: Observed) -> Iterator[Cause]:
    """Yield causes of results that are right alone, and wrong after other calls or over uninitialized memory."""
    alone = {one.name for one in found.of("alone") if not one.differs(*NUMERIC, "shape", "dtype", "raises")}
    tested = {one.name for one in found.of("alone")}
    off = [one for one in _both(found) if one.differs(*NUMERIC, "shape", "dtype")]
    unwritten = [one for one in off if found.filled.get(one.name.partition(".")[0])]
    if unwritten:
        yield Cause("unwritten", Weight.LEAK, "gives what it finds in memory that it has not written",
                    None, tuple(unwritten), unwritten[0].differs(*NUMERIC)[0])  # fmt: skip
        return
    late = [one for one in off if one.name.partition(".")[0] in alone]
    if not late:
        return
    plain = [one for one in late if not one.history]
    same = [one for one in late if one.history in ("refilled", "replaced")]
    counted = [one for one in late if one.history.startswith("call")]
    first = (plain or same or counted or late)[0]
    if not plain and same:
        what = "gives an old result for new values in the same place: it goes by which tensor it is given"
    elif not plain and counted:
        what = f"gives other values from call {min(int(one.history.rpartition(' ')[2]) for one in counted)} or so on"
    else:
        what = "gives results that depend on earlier calls: right in a new process, wrong after other calls"
    yield Cause("history", Weight.LEAK, what, None, (first, *late), (first.differs(*NUMERIC) or first.differs())[0],
                bool(tested))  # fmt: skip


def _numbers(found: Observed) -> Iterator[Cause]:
    """Yield causes of values, gradients and statistics that differ whatever was called before."""
    alone = {one.name for one in found.of("alone") if not one.differs(*NUMERIC, "shape", "dtype")}
    confirmed = {one.name for one in found.of("alone") if one.differs(*NUMERIC)}
    tested = bool(found.of("alone"))
    if tested and not confirmed:
        return  # what differs does so by its history alone
    if any(found.after.values()):
        calls = [one for one in found.of("alone") if one.differs(*NUMERIC)]
        yield Cause("memory", Weight.LEAK,
                    "is right only where the reference ran before in the same process: it finds the result in memory",
                    None, tuple(calls), calls[0].differs(*NUMERIC)[0])  # fmt: skip
        return
    for kinds in (("values", "not finite"), ("gradient",), ("state",)):
        calls = [
            one
            for one in _both(found)
            if one.differs(*kinds) and one.name not in alone and not one.history and not one.differs("late", "type")
        ]
        known = kinds == ("gradient",) and any(one.differs("values") for one in calls)
        if calls and not known:
            yield from _numeric(found, kinds, calls, confirmed)


def _numeric(found: Observed, kinds: tuple[str, ...], calls: list[Evidence], confirmed: set[str]) -> Iterator[Cause]:
    held = _held(found, calls, lambda one: one.case.gradient or kinds != ("gradient",))
    of = condition([one.case for one in calls], held)
    shown = sorted(calls, key=lambda one: (not one.case.ordinary, one.name not in confirmed, _size(one)))
    shown = [*(one for one in found.of("smaller") if one.differs(*kinds)), *shown]
    worst = max(shown[0].differs(*kinds), key=lambda d: d.ratio)
    error = max((d.error for one in calls for d in one.differs(*kinds)), default=0.0)
    rounding = found.similarity is not None and abs(found.similarity) < _DECORRELATED
    finite = all(math.isfinite(d.ratio) for one in calls for d in one.differs(*kinds))
    bits = -math.log2(error) if error > 0 else 0.0
    sure = any(one.name in confirmed for one in calls)
    unseen = all(one.case.dtype == "float64" for one in calls) and error <= _SINGLE
    if kinds[0] == "values" and finite and (unseen or (rounding and error < COARSEST)):
        slug, weight, what = "precision", Weight.FRAGILE, f"loses precision: about {bits:.0f} bits are left"
        if of.words is None or all(one.case.dtype for one in calls):
            weight, what = Weight.IMPRECISE, f"computes with about {bits:.0f} bits{_as(error, calls)}"
    else:
        slug, weight, what = kinds[0], of.weight, _sentence(kinds, worst)
    yield Cause(slug, weight, what, of.words, tuple(shown), worst, sure)


def _sentence(kinds: tuple[str, ...], worst: Difference) -> str:
    what = "gives what is not finite where the reference is" if worst.kind == "not finite" else _WHAT[kinds[0]]
    if not worst.worst:
        return f"{what}: {worst.place} {worst.said}".rstrip()
    index, got, want, bound = worst.worst[0]
    place = f"{worst.place}{list(index)}" if index else worst.place
    share = f" ({worst.wrong} of {worst.total} numbers)" if worst.total > 1 else ""
    return f"{what}: {place} is {got:.6g} instead of {want:.6g} ± {bound:.1g}{share}"


def _forms(found: Observed) -> Iterator[Cause]:
    """Yield causes of shapes, dtypes, types and parts of results."""
    for kind in ("shape", "dtype", "parts", "type"):
        calls = [one for one in _both(found) if one.differs(kind)]
        if calls:
            of = condition([one.case for one in calls], _held(found, calls))
            first = calls[0].differs(kind)[0]
            noun = {"shape": "has another shape: ", "dtype": "has another dtype: "}.get(kind, "")
            yield Cause(kind, Weight.WRONG, f"{first.place} {noun}{first.said}", of.words, tuple(calls), first)
    calls = [one for one in _both(found) if one.differs("no gradient")]
    if calls:
        yield Cause("gradients", Weight.UNGUARDED, "gives no gradients, where the reference does", None, tuple(calls))


def _purity(found: Observed) -> Iterator[Cause]:
    """Yield side effects on arguments and results: changed in place, late, overwritten or aliased."""
    told = (
        ("changed", Weight.WRONG, "modifies {place} in place"),
        ("late", Weight.WRONG, "returns before its result is finished: {place} changes after the call"),
        ("overwritten", Weight.WRONG, "writes the next result into the same memory: {place} changes with a later call"),
        ("alias", Weight.FRAGILE, "returns {place} in the memory of {said}, so that changing one changes the other"),
    )
    for kind, weight, sentence in told:
        calls = [one for one in _both(found) if one.differs(kind)]
        if calls:
            first = calls[0].differs(kind)[0]
            of = condition([one.case for one in calls], _held(found, calls))
            when = of.words if kind in ("changed", "alias") and len(calls) < len(_both(found)) / 2 else None
            yield Cause(kind, weight, sentence.format(place=first.place, said=first.said), when, tuple(calls), first)


def _chance(found: Observed) -> Iterator[Cause]:
    """Yield causes of calls that draw random numbers: other distributions, and exceptions."""
    if found.raised:
        yield Cause("raises", Weight.WRONG, f"raises {_one(found.raised)}", "in calls that draw random numbers")
    for place, (what, mine, theirs) in found.chances.items():
        said = f"draws other random numbers: the {what} of result{place} is {theirs:.4g} instead of {mine:.4g}"
        yield Cause("chance", Weight.WRONG, said)


def _both(found: Observed) -> list[Evidence]:
    return [one for one in found.evidence if one.process in ("first", "second")]


def _held(
    found: Observed, failed: Sequence[Evidence], comparable: Callable[[Evidence], bool] = lambda one: True
) -> list[Case]:
    names = {one.name.partition(".")[0] for one in failed}
    fine = {one.name: one.case for one in _both(found) if not one.history and comparable(one) and one.name not in names}
    return list(fine.values())


def _size(one: Evidence) -> int:
    found = one.judged.record.get("results", {}).values()
    return sum(x.numel() for x in found if hasattr(x, "numel"))


def _as(error: float, calls: Sequence[Evidence]) -> str:
    """Return the phrase that names the dtype with this roundoff, ``, as bfloat16 has``; in half precision none is
    named.
    """
    if all(one.case.dtype in _HALVES for one in calls):
        return ", fewer than the format has"
    return f", as {min(_FORMATS, key=lambda item: abs(math.log2(item[0]) - math.log2(error)))[1]} has"


def _one(said: str) -> str:
    return " ".join(said.split())[:200]


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(names[:4]) + more


_NAMED = 3
"""Conditions that are named; what more there are is counted."""


@dataclass(frozen=True)
class Condition:
    """Condition of a cause. words: the end of a sentence, None where every call fails; weight: that of the finding."""

    words: str | None
    weight: Weight


def condition(failed: Sequence[Case], held: Sequence[Case]) -> Condition:
    """Return the features that explain which calls fail; none where a plain call on the given input fails too."""
    ordinary = any(case.ordinary for case in failed)
    weight = Weight.WRONG if ordinary else Weight.FRAGILE
    if any(case.features.keys() <= {"other sizes"} for case in failed) or not held:
        return Condition(None, weight)
    open_, named = list(failed), []
    while open_:
        best = max(_features(open_), key=lambda names: _score(names, open_, held), default=frozenset())
        if not best or _score(best, open_, held) <= 0:
            break
        named.append(best)
        open_ = [case for case in open_ if not best <= case.features.keys()]
    if not named:
        return Condition("in some calls", weight)
    more = f" and in {len(named) - _NAMED} more cases" if len(named) > _NAMED else ""
    shown = [_words(name) for name in named[:_NAMED]]
    return Condition(f"{' or '.join(shown)}{more}", weight)


def _features(cases: Sequence[Case]) -> list[frozenset[str]]:
    """Return every feature, and every two that a case has at once."""
    alone = {frozenset([name]): None for case in cases for name in case.features}
    both = {frozenset(pair): None for case in cases for pair in combinations(case.features, 2)}
    return [*alone, *both]


def _score(names: frozenset[str], failed: Sequence[Case], held: Sequence[Case]) -> float:
    """Score features: failing calls that have them, less two for each passing call; two features score lower."""
    met = sum(names <= case.features.keys() for case in failed)
    wrongly = sum(names <= case.features.keys() for case in held)
    return met - 2 * wrongly + (0.5 if wrongly == 0 else 0) - 0.25 * (len(names) - 1)


def _words(names: frozenset[str]) -> str:
    modes = sorted(name for name in names if name.endswith(" mode") or name.startswith(("bfloat", "float")))
    others = sorted(names - {*modes, "gradients"})
    things = [f"with {' and '.join(others)}"] if others else []
    asked = ["when gradients are taken"] if "gradients" in names else []
    return " ".join([*things, *(f"in {name}" for name in modes), *asked])

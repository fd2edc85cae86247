"""From the evidence on one operation to its root causes: conditions found, each borne out by an experiment."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from veriformer.spec.requirement import Weight
from veriformer.verify.contract import dtypes
from veriformer.verify.findings.condition import Condition, conditions
from veriformer.verify.findings.evidence import Example, Failing, Signature, failing, passing
from veriformer.verify.judging.row import CheckRun

Experiment = Callable[[CheckRun, Sequence[Condition]], list[Example]]
"""New examples of a row, those left out that meet a condition."""

MOST = 12
"""Causes of one operation that are looked for; what is left after so many is told by requirement."""

SELDOM = 0.6
"""A condition under which fewer calls than this fail holds for some of them only; without features it explains little.
"""

CERTAIN = 0.9
"""A condition under which at least so many calls fail is told although calls without it fail as well, of something
else."""

_TRIES = 4
"""Conditions that are tried on one kind of failure before it is told by requirement."""

_SLACK = 8.0
"""Bits by which a condition may be worse than the best for failures of another kind and still explain them."""

_ROWS = 6
"""Rows of a cause that an experiment repeats."""


@dataclass(frozen=True)
class Cause:
    """Root cause.

    condition: the features that the failing calls share. explained: the examples that it makes fail. confirmed: whether
    no example failed in the same way with the condition left out. share: the share of failures among the examples under
    the condition. source: the failure that the others follow from, where that is known.
    """

    condition: Condition
    explained: tuple[Example, ...] = field(repr=False)
    confirmed: bool = False
    share: float = 1.0
    source: Signature | None = None

    @property
    def rows(self) -> list[CheckRun]:
        """The rows it explains."""
        return list(dict.fromkeys(example.row for example in self.explained))

    @property
    def signature(self) -> Signature:
        """The commonest kind of failure; what is said of gradients and properties only where nothing else fails."""
        if self.source is not None:
            return self.source
        counts = Counter(example.signature for example in self.explained if example.signature)
        return max(counts, key=lambda one: (one.kind not in (Failing.GRADIENT, Failing.PROPERTY), counts[one]))


def kind(example: Example) -> tuple[str, str]:
    """Return the key that separates failures of different causes before anything is known of their conditions.

    NaN and infinity that come of hidden values are of another kind than those that come of finite numbers.
    """
    assert example.signature is not None
    how = example.signature.kind
    if example.signature.lost:
        hidden = how is Failing.NOT_FINITE and example.weight is Weight.LEAK
        return Failing.NOT_FINITE.value, "hidden" if hidden else ""
    return how.value, example.signature.about if how in (Failing.RAISES, Failing.PROPERTY) else ""


def relevant(held: Iterable[Example], failed: Sequence[Example]) -> list[Example]:
    """Return those that held and could have failed in the same way: of the same formats, with the same gradients asked
    for, and judged by their values where it is these that are wrong."""
    formats = {example.row.dtype for example in failed}
    asked = {name for example in failed if example.signature for name in example.signature.gradients}
    of_values = any(one.signature is not None and one.signature.kind in _OF_VALUES for one in failed)
    alike = (one for one in held if one.row.dtype in formats and (not asked or asked & one.gradients))
    return [one for one in alike if not of_values or not one.row.check.requirement.slug.endswith(_OF_FORM)]


_OF_VALUES = (Failing.VALUE, Failing.NOT_FINITE, Failing.GRADIENT)
_OF_FORM = (".contract", ".result_dtype")
"""Requirements that hold whatever the values are."""


NO_GRADIENT = "the result carries no gradient"
"""Message where none of the arguments whose gradients are asked for has one."""


class Search:
    """The search for the causes of an operation's failures."""

    def __init__(self, operation: str, evidence: Iterable[Example], again: Experiment) -> None:
        self.operation = operation
        self.evidence = list(evidence)
        self.again = again
        self.open = failing(self.evidence)
        self.causes: list[Cause] = []
        self.refuted: dict[tuple[str, str], set[Condition]] = {}
        self.fitting: dict[tuple[str, str], dict[Condition, float]] = {}

    def run(self) -> list[Cause]:
        """Return the causes in the order in which they were found, each without what an earlier one explains."""
        while self.open and len(self.causes) < MOST:
            found = self._best()
            if found is None:
                break
            self.fitting.clear()
            self._try(*found)
        self._left_over()
        for cause in list(self.causes):
            self._put_under_another(cause)
        return self.causes

    def _best(self) -> tuple[tuple[str, str], Condition] | None:
        """Return the condition that explains most, with the kind of failure that it explains."""
        best: tuple[float, tuple[str, str], Condition] | None = None
        for what in dict.fromkeys(map(kind, self.open)):
            refuted = self.refuted.setdefault(what, set())
            if len(refuted) >= _TRIES:
                continue
            for gain, condition in self._separate(what, refuted)[:1]:
                if best is None or gain > best[0]:
                    best = gain, what, condition
        return None if best is None else best[1:]

    def _try(self, what: tuple[str, str], condition: Condition) -> None:
        kinds = {what, *(other for other in map(kind, self.open) if condition.names and self._fits(condition, other))}
        explained = [one for one in self.open if kind(one) in kinds and _under(condition, one)]
        if not condition.names:
            self._accept(condition, explained, confirmed=True)
            return
        known = [cause.condition for cause in self.causes if cause.condition.names]
        alike = [example for example in explained if kind(example) == what]
        fresh = [one for row in _spread(alike) for one in self.again(row, [*known, condition])]
        still = [example for example in failing(fresh) if kind(example) == what]
        rows = {example.row for example in alike}
        before = [example for example in self.evidence if example.row in rows]
        apart = [example for example in before if not condition.met(example.calls)]
        expected = (_rate(what, before) + _rate(what, apart)) / 2
        self.evidence += fresh
        self.open += failing(fresh)
        if len(still) > expected * len(fresh):  # as if nothing had been left out
            self.refuted[what].add(condition)
        else:
            self._accept(condition, explained, confirmed=not still)

    def _put_under_another(self, cause: Cause) -> None:
        """Let a wrong result under a condition explain what else fails under it, and, as an experiment tells, only
        there: NaN behind a mask that is ignored is no second cause, and neither is NaN that a law about hidden
        values meets in calls whose gradients are NaN by themselves."""
        if not any(cause is one for one in self.causes):
            return  # one that has been given what another explained
        for place, other in enumerate(self.causes):
            if other is cause or not other.condition.names or not _may_explain(other.signature, cause.signature):
                continue
            degenerate = other.condition.weight is Weight.FRAGILE  # of such calls one finding is enough
            if cause.signature.kind is Failing.RAISES and not degenerate:
                continue
            if not all(_under(other.condition, one) for one in cause.explained):
                continue
            fresh = [one for row in _spread(cause.explained) for one in self.again(row, [other.condition])]
            self.evidence += fresh
            if not failing(fresh):
                self.causes[place] = followed_by(other, cause)
                self.causes = [one for one in self.causes if one is not cause]
                return

    def _separate(self, what: tuple[str, str], refuted: Collection[Condition] = ()) -> list[tuple[float, Condition]]:
        """Return the conditions of a kind of failure with what each saves; a wrong value speaks against raising."""
        failed = _sharpest([example for example in self.open if kind(example) == what])
        came_back = failing(self.evidence) if what[0] == Failing.RAISES else []
        others = [example for example in came_back if kind(example)[0] != Failing.RAISES]
        held = relevant([*passing(self.evidence), *others], failed)
        return conditions(self.operation, failed, held, refuted)

    def _fits(self, condition: Condition, what: tuple[str, str]) -> bool:
        """Return whether the condition separates failures of another kind within _SLACK of the best condition for
        them."""
        if what not in self.fitting:
            self.fitting[what] = {one: saved for saved, one in self._separate(what)}
        saved = self.fitting[what]
        return condition in saved and saved[condition] >= max(saved.values()) - _SLACK

    def _held(self, condition: Condition, alike: Sequence[Example]) -> int:
        return sum(condition.met(example.calls) for example in relevant(passing(self.evidence), alike))

    def _accept(self, condition: Condition, explained: Sequence[Example], *, confirmed: bool) -> None:
        held = self._held(condition, explained) if condition.requirement is None else 0
        share = len(explained) / max(1, len(explained) + held)
        confirmed = confirmed and (bool(condition.names) or share >= SELDOM)
        self.causes.append(Cause(condition, tuple(explained), confirmed, share))
        gone = set(map(id, explained))
        self.open = [example for example in self.open if id(example) not in gone]

    def _left_over(self) -> None:
        """Add the failures that no condition explains as causes, by requirement and kind of failure."""
        groups: dict[tuple[str, tuple[str, str]], list[Example]] = {}
        for example in self.open:
            groups.setdefault((example.row.check.requirement.slug, kind(example)), []).append(example)
        for (slug, _), examples in groups.items():
            total = sum(one.row.check.requirement.slug == slug for one in self.evidence)
            condition = Condition(self.operation, requirement=slug)
            self.causes.append(Cause(condition, tuple(examples), False, len(examples) / max(1, total)))
        self.open = []


def wrong_result(signature: Signature) -> bool:
    """Return whether a result is wrong by its numbers or by how many there are."""
    return signature.kind is Failing.VALUE or signature.about == "shape"


def _may_explain(one: Signature, other: Signature) -> bool:
    """Return whether a failure may explain another under the same condition: a wrong result any, NaN the same NaN."""
    lost = one.lost and other.lost
    return wrong_result(one) or (lost and one.gradients == other.gradients)


def _rate(what: tuple[str, str], examples: Sequence[Example]) -> float:
    return sum(one.failed and kind(one) == what for one in examples) / max(1, len(examples))


def _sharpest(failed: Sequence[Example]) -> list[Example]:
    """Return the failures in float32 and float64, whose bounds hide least, or all if there are none."""
    return [example for example in failed if example.row.dtype not in dtypes.HALVES] or list(failed)


def _under(condition: Condition, example: Example) -> bool:
    slug = example.row.check.requirement.slug
    return condition.met(example.calls) and condition.requirement in (None, slug)


def _spread(examples: Sequence[Example]) -> list[CheckRun]:
    """Select a few rows of these examples, of as many requirements as possible."""
    rows = dict.fromkeys(example.row for example in examples)
    first = {row.check.requirement.slug: row for row in reversed(rows)}
    return [*first.values(), *(row for row in rows if row not in first.values())][:_ROWS]


def joined(causes: Sequence[Cause]) -> list[Cause]:
    """Merge causes by condition, and results that follow from another wrong result into its cause."""
    by_condition: dict[object, Cause] = {}
    for index, cause in enumerate(causes):
        key = cause.condition if cause.condition.names else index
        earlier = by_condition.get(key)
        by_condition[key] = cause if earlier is None else united(earlier, cause)
    return _without_echoes(_weakly(_same_exceptions(_without_echoes(list(by_condition.values())))))


def _same_exceptions(causes: Sequence[Cause]) -> list[Cause]:
    """Merge an exception without a condition into its occurrence under a condition if an experiment confirmed that one.

    Otherwise the conditions distinguish some of the exception's calls by chance: all are merged under none.
    """
    found = list(causes)
    for loose in causes:
        if loose.signature.kind is not Failing.RAISES or loose.condition.names:
            continue
        if not any(one is loose for one in found):
            continue  # it has been joined
        same = [one for one in found if one is not loose and one.signature == loose.signature]
        borne_out = [] if loose.condition.always else [one for one in same if one.condition.names and one.confirmed]
        if borne_out:
            found = _replaced(found, [borne_out[0], loose], followed_by(borne_out[0], loose))
        elif same:
            found = _replaced(found, [loose, *same], functools.reduce(united, same, loose))
    return found


def _replaced(causes: Sequence[Cause], some: Sequence[Cause], by: Cause) -> list[Cause]:
    """Return the causes with one in place of some, where the first of these stood."""
    gone = set(map(id, some))
    first = next(place for place, one in enumerate(causes) if id(one) in gone)
    return [by if place == first else one for place, one in enumerate(causes) if place == first or id(one) not in gone]


def _without_echoes(causes: list[Cause]) -> list[Cause]:
    """Merge each cause that is an echo into the cause that it follows from."""
    found = causes
    for echo in [cause for cause in found if not cause.condition.names]:
        others = [cause for cause in found if cause is not echo]
        source = next((place for place, cause in enumerate(others) if _echoes(echo, cause)), None)
        if source is not None and len(others) < len(found):
            others[source] = followed_by(others[source], echo)
            found = others
    return found


def _weakly(causes: Sequence[Cause]) -> list[Cause]:
    """Merge causes of one kind whose conditions predict little: wrong results for some of the calls of each."""
    found: dict[object, Cause] = {}
    for index, cause in enumerate(causes):
        kind_of, gradients = cause.signature.kind, cause.signature.gradients
        least = SELDOM if cause.confirmed else CERTAIN
        weak = kind_of in (Failing.VALUE, Failing.GRADIENT) and cause.share < least
        fragile = cause.condition.weight is Weight.FRAGILE
        key: object = (kind_of, gradients, fragile) if weak else index
        found[key] = united(found[key], cause) if key in found else cause
    return list(found.values())


def followed_by(cause: Cause, echo: Cause) -> Cause:
    """Return a cause with the examples of an echo added, its name unchanged."""
    return replace(cause, explained=(*cause.explained, *echo.explained), source=cause.signature)


def united(cause: Cause, other: Cause) -> Cause:
    """Merge two equal causes: under their condition, or under none where they have two."""
    condition = cause.condition if cause.condition == other.condition else Condition(cause.condition.operation)
    return replace(cause, condition=condition, explained=(*cause.explained, *other.explained))


def _echoes(echo: Cause, cause: Cause) -> bool:
    """Return whether one failure follows from another: any failure from a result that is always wrong, and the laws
    about a gradient from that gradient where it is always wrong."""
    mine, other = echo.signature, cause.signature
    by_itself = {Failing.VALUE: ".equation", Failing.GRADIENT: ".gradient"}.get(other.kind)
    ordinary = any(one.row.check.requirement.slug.endswith((".equation", ".gradient")) for one in cause.explained)
    always = cause.condition.always and (cause.confirmed or ordinary)
    if not always and not (by_itself and str(cause.condition.requirement).endswith(by_itself)):
        return False
    formats = {row.dtype for row in echo.rows} <= {row.dtype for row in cause.rows}
    if other.kind is Failing.VALUE:
        return formats and mine.kind is not Failing.RAISES
    if other.kind is Failing.GRADIENT and mine.about == NO_GRADIENT:
        return formats
    if other.kind is Failing.GRADIENT:
        wrong = {name for example in cause.explained if example.signature for name in example.signature.gradients}
        return formats and bool(wrong & set(mine.gradients))
    return other.kind is Failing.RAISES and mine.kind is Failing.RAISES and mine.about == other.about

"""Findings that are told while a run goes on: those of what an operation computes, from its first rows alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from veriformer.spec.requirement import Weight
from veriformer.verify.engine.journal import Journal
from veriformer.verify.engine.plan import Plan
from veriformer.verify.engine.probe import TargetInfo
from veriformer.verify.engine.run import LEAST_S_OF_FINDINGS, with_place
from veriformer.verify.findings import everything
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.results import Result, json_safe
from veriformer.verify.results.finding import Finding
from veriformer.workers.session import Item, Outcome

_OF_RESULT, _OF_GRADIENT = ("contract", "equation"), ("contract", "equation", "purity", "gradient")
"""Requirements of what an operation computes. Their rows run first, and what fails in them is looked into at once."""

WAIT = 4.0
"""Wall-clock limit of an operation's findings, as a multiple of their own time."""


def rank(row: CheckRun) -> int:
    """Return the place of a row: first what an operation computes, then its gradients, then all others."""
    law = _law(row.check.requirement.slug)
    return 0 if law in _OF_RESULT else 1 if law in _OF_GRADIENT else 2


def _law(slug: str) -> str:
    return slug.split(".")[1]


@dataclass
class EarlyFindings:
    """Findings of an operation that computes something wrong, from its first rows alone.

    Its results are looked into as soon as they are judged, and where nothing was found, its gradients. All rows are
    looked into at the end, as if nothing had been told: more of them may tell more of the same fault.
    """

    plan: Plan
    described: TargetInfo
    journal: Journal
    waive: Callable[[Result], Result]
    find: Callable[[Finding], None]
    told: set[str] = field(default_factory=set)

    def items(self, pending: Mapping[str, CheckRun], resources: Mapping[str, float]) -> list[Item]:
        """Return an item for each equation and each gradient; none where the run ends with the rows that it needs."""
        rows: dict[tuple[str, str], list[str]] = {}
        for key, row in pending.items():
            rows.setdefault((row.check.operation, _law(row.check.requirement.slug)), []).append(key)
        found: dict[str, Item] = {}
        for law, laws in (("equation", _OF_RESULT), ("gradient", _OF_GRADIENT)):
            for operation in [operation for operation, own in rows if own == law]:
                needs = [key for one in laws for key in rows.get((operation, one), ())]
                before = [name for name in (f"{operation}.equation",) if name in found]
                if len(needs) < len(pending):
                    name, limit = f"{operation}.{law}", WAIT * LEAST_S_OF_FINDINGS
                    found[name] = Item(name=name, needs=(*needs, *before), limit_s=limit, resources=resources)
        return list(found.values())

    def failing(self, item: Item) -> dict[str, Any]:
        """Return the rows that failed of those that it needs, none where the operation has been told of, and the
        seconds that it may take."""
        operation, law = item.name.split(".")
        laws = () if operation in self.told else _OF_RESULT if law == "equation" else _OF_GRADIENT
        rows = [row for row in self.journal.results().values() if row.operation == operation]
        failed = everything.unmet([self.waive(row) for row in rows if _law(row.requirement) in laws])
        return {"seconds": LEAST_S_OF_FINDINGS, "rows": [json_safe(row.to_dict()) for row in failed]}

    def receive(self, item: Item, outcome: Outcome) -> None:
        """Tell the findings that violate, but for those of another operation's fault, which is told by itself."""
        for one in everything.merged(Finding.from_dict(entry) for entry in outcome.value or ()):
            weighs = self.plan.strict or one.weight.at_least(Weight(self.plan.fail_on))
            if weighs and not one.follows:
                self.told.add(one.operation)
                self.find(with_place(one, self.described.implementation))

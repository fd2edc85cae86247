"""Work items of a run for workers: its rows and findings, and the probe of its target. Each is made where it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from veriformer.verify.engine import probe
from veriformer.verify.engine.check_run import give_memory_back
from veriformer.verify.engine.plan import Plan
from veriformer.verify.engine.runner import Runner, confine, loaded
from veriformer.verify.findings import everything
from veriformer.verify.judging import global_state
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.results import Result, Status, json_safe
from veriformer.verify.results.finding import Finding
from veriformer.verify.targets.shipping import Shipped


class Judgement:
    """Task that runs rows and diagnoses failing ones.

    item: a row's key; extra: the statuses that it rests on. Any other item asks for findings; extra: an operation's
    rows, and the seconds that it may take.
    """

    def __init__(self, payload: Mapping[str, Any]) -> None:
        self.plan = Plan.from_dict(payload["plan"])
        confine(self.plan)
        self.rows: dict[str, CheckRun] = {row.key: row for row in self.plan.every_row()}
        self.target = loaded(self.plan, Shipped(**payload["target"]))
        self.runner = Runner(self.plan, self.target, may_kill=True)
        # Calls of a diagnosis count neither as coverage nor as changes of global state by the rows.
        self.unwatched = replace(self.target, watch=None, changes={})

    def run(self, item: str, extra: Mapping[str, Any]) -> Any:
        """Return a row's result, with the changes of global state and code coverage recorded so far; or findings."""
        if item not in self.rows:
            return self._findings(extra)
        result = self.runner.run(self.rows[item], {key: Status(value) for key, value in extra.items()})
        told = {"changes": self.runner.changes(), "seen": self.runner.seen()}
        return {"result": json_safe(result.to_dict()), **told}

    def _findings(self, extra: Mapping[str, Any]) -> list[dict[str, Any]]:
        rows = everything.by_operation([Result.from_dict(row) for row in extra["rows"]])
        told: list[Finding] = []
        with (  # the rows that follow in this process begin as if nothing had been called for these
            global_state.guarded(global_state.OF_ROWS, _ignore),
            global_state.environment(_ignore),
            global_state.streams(),
        ):
            everything.diagnose_operations(
                rows, self.unwatched, self.plan.seed, extra["seconds"], lambda operation, found: told.extend(found)
            )
        entries = [json_safe(one.to_dict()) for one in told]
        give_memory_back()
        return entries


def _ignore(change: str) -> None:
    return None


class Probe:
    """Task that probes the target on its device; items have no meaning."""

    def __init__(self, payload: Mapping[str, Any]) -> None:
        self.plan = Plan.from_dict(payload["plan"])
        self.there = payload["target"]["there"]
        self.seconds = payload["seconds"]

    def run(self, item: str, extra: Any) -> dict[str, Any]:
        """Probe the target and return its description as a dictionary."""
        plan = self.plan
        return asdict(probe.probe(self.there, plan.device, plan.operations(), plan.dtypes, self.seconds))

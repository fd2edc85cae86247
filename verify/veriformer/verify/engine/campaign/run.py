"""A campaign: turns of rows until a given time.

State is kept from one campaign to the next, beside Hypothesis' own database, in one JSON file.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path

from veriformer.verify.domain.probe import SECONDS
from veriformer.verify.engine import remote, waivers
from veriformer.verify.engine.campaign.plan import Campaign, CampaignError
from veriformer.verify.engine.campaign.power import Arm, choose
from veriformer.verify.engine.campaign.turn import DIRECTED, Kind, database, stored_examples
from veriformer.verify.engine.plan import Plan
from veriformer.verify.engine.probe import TargetInfo
from veriformer.verify.engine.runner import died
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.results import Result, Results, Status, json_safe, write_json
from veriformer.verify.targets.shipping import Parcel, parcel
from veriformer.workers.controller import Controller
from veriformer.workers.files import read
from veriformer.workers.session import Item, LostError, Outcome, Session
from veriformer.workers.versions import versions

_SCHEMA = "veriformer/campaign-state/1"


@dataclass
class State:
    """campaigns: how many there have been. findings: ids that the last one ended with, by target."""

    arms: dict[str, Arm] = field(default_factory=dict)
    campaigns: int = 0
    findings: dict[str, list[str]] = field(default_factory=dict)


def read_state(folder: Path) -> State:
    """Return the state that earlier campaigns left, empty where there was none. Raises CampaignError."""
    path = folder / "campaign.json"
    if not path.is_file():
        return State()
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["schema"] != _SCHEMA:
            raise ValueError(f"schema {document['schema']!r}")
        arms = [Arm.from_dict(entry) for entry in document["arms"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CampaignError(f"{path}: expected what a campaign has left ({_SCHEMA}): {error}") from error
    return State({arm.name: arm for arm in arms}, document["campaigns"], document["findings"])


def write_state(folder: Path, state: State, arms: Sequence[Arm]) -> None:
    """Write the present state; rows outside of this campaign stay unchanged."""
    every = {**state.arms, **{arm.name: arm for arm in arms}}
    document = {
        "schema": _SCHEMA,
        "campaigns": state.campaigns,
        "findings": state.findings,
        "arms": [arm.to_dict() for arm in every.values()],
    }
    write_json(document, folder / "campaign.json")


TURN_S = (0.1, 5.0)
"""Bounds in seconds of a turn's length, which is a tenth of each row's equal share of the time: at least long enough
for the cost of sending a turn, at most short enough to choose again."""

DIRECTED_EVERY = 5
"""Of the turns of a row, one in so many seeks to come nearer to its bound and to cover what few examples have, where it
takes no longer than so many turns."""

_SAVE_S = 30.0
_SLACK_S = 60.0


@dataclass
class Ran:
    """A campaign that has ended. results: by plan, the last result of every row. new: findings that are new, by plan.

    before: what was known of each row when it began, by name: how many independent examples. stopped: why it ended
    before its time, None where it did not.
    """

    campaign: Campaign
    seed: str
    started: datetime
    arms: list[Arm]
    results: dict[str, Results]
    before: dict[str, int]
    new: dict[str, list[str]] = field(default_factory=dict)
    gone: dict[str, list[str]] = field(default_factory=dict)
    ended_waivers: list[str] = field(default_factory=list)
    replayed: int = 0
    stopped: str | None = None


@dataclass
class Runs:
    """Running campaign. hours: its wall-clock length. tell: called with every turn."""

    campaign: Campaign
    place: remote.Place
    seed: str
    hours: float
    tell: Callable[[Arm, Result], None]
    today: date
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.state = read_state(self.campaign.store)
        self.plans = self.campaign.plans(self.seed)
        self.waived = {
            name: waivers.of_run(plan.target, self.campaign.waivers, plan.rows()) for name, plan in self.plans.items()
        }
        self.plans = {
            name: replace(plan, stored=waivers.stored(self.waived[name], plan.rows()))
            for name, plan in self.plans.items()
        }
        self.database = database(self.campaign.database)
        self.described: dict[str, TargetInfo] = {}
        self.latest: dict[str, dict[str, Result]] = {name: {} for name in self.plans}
        self.turn: dict[str, tuple[Arm, Kind]] = {}
        self.replayed = 0

    def go(self) -> Ran:
        """Look at the targets, then take turns until the time is over. Raises TargetError, ClusterError, LostError."""
        started = datetime.now(UTC)
        for name, plan in self.plans.items():
            self.described[name] = self.place.look(plan, SECONDS)
            self.plans[name] = replace(
                plan, domains=self.described[name].domains, recognised=self.described[name].recognised
            )
        self.rows = {name: {row.key: row for row in plan.rows()} for name, plan in self.plans.items()}
        self.arms = [self._arm(name, row) for name, rows in self.rows.items() for row in rows.values()]
        before = {arm.name: arm.independent for arm in self.arms}
        self.began = self.saved = time.monotonic()
        self.zero = self.clock()
        self.until = float("inf")  # the time begins with the first turn that has ended: processes have to load first
        stopped = None
        try:
            with self.place.controller(self._session()) as side:
                self.resources = {name: remote.demand(plan, side.resources) for name, plan in self.plans.items()}
                threads = sum(one["threads"] for one in side.resources)
                share = 0.1 * 3600 * self.hours * threads / max(1, len(self.arms))
                self.turn_s = min(max(share, TURN_S[0]), TURN_S[1])
                self._take(side)
        except KeyboardInterrupt:
            stopped = "interrupted"
        except LostError as error:
            stopped = str(error)
        ran = Ran(self.campaign, self.seed, started, self.arms, self._results(started), before, stopped=stopped)
        ran.replayed = self.replayed
        ran.ended_waivers = [
            f"{waiver.requirement}: {waiver.reason} (until {waiver.expires})"
            for waiver in dict.fromkeys(waiver for some in self.waived.values() for waiver in some)
            if waiver.expires < self.today
        ]
        self._findings(ran)
        return ran

    def _take(self, side: Controller) -> None:
        side.serve(self._next, self._heard, lambda item: self.said[item.name])

    def _next(self) -> Item | None:
        """Return the next turn; None when the time is over, or while every remaining row has a turn under way."""
        now = self.clock()
        if now >= self.until:
            return None
        busy = {arm.name for arm, _ in self.turn.values()}
        arm = choose([arm for arm in self.arms if arm.name not in busy], now - self.zero)
        if arm is None:
            return None
        kind = self._kind(arm)
        plan = self.plans[arm.plan]
        name = f"{arm.name} {kind} {arm.turns}"
        self.said[name] = {
            "plan": arm.plan,
            "row": arm.row,
            "kind": kind.value,
            "seed": f"{self.seed}|{self.state.campaigns}|{arm.turns}",
            "seconds": self.turn_s,
            "hardest": arm.nearest,
            "more": sorted(arm.more) if kind is Kind.DIRECTED else [],
            "stored": plan.stored.get(arm.row) if kind is Kind.REPLAY else None,
        }
        self.turn[name] = (arm, kind)
        return Item(name=name, limit_s=2 * plan.effort.timeout_s + _SLACK_S, resources=self.resources[arm.plan])

    def _kind(self, arm: Arm) -> Kind:
        if arm.name not in self.opened:
            self.opened.add(arm.name)
            if stored_examples(self.database, arm.name) or arm.row in self.plans[arm.plan].stored:
                return Kind.REPLAY
        its_turn = arm.turns % DIRECTED_EVERY == DIRECTED_EVERY - 1
        in_time = arm.rate * DIRECTED_EVERY * self.turn_s >= DIRECTED
        return Kind.DIRECTED if its_turn and in_time else Kind.INDEPENDENT

    def _heard(self, item: Item, outcome: Outcome) -> None:
        self.until = min(self.until, self.clock() + 3600 * self.hours)
        arm, kind = self.turn.pop(item.name)
        row = self.rows[arm.plan][arm.row]
        result = self._result(row, outcome, self.plans[arm.plan])
        shown = kind is Kind.REPLAY and arm.row in self.plans[arm.plan].stored
        if shown or result.status is not Status.PASS:  # a turn of other examples says nothing of one that is waived
            result = waivers.apply(result, self.waived[arm.plan], self.today)
        del self.said[item.name]
        self._count(arm, kind, result, outcome)
        if kind is not Kind.REPLAY or result.status is not Status.PASS or arm.row not in self.latest[arm.plan]:
            self.latest[arm.plan][arm.row] = result
        self.tell(arm, result)
        if time.monotonic() - self.saved > _SAVE_S:
            self.saved = time.monotonic()
            write_state(self.campaign.store, self.state, self.arms)

    def _count(self, arm: Arm, kind: Kind, result: Result, outcome: Outcome) -> None:
        arm.turns += 1
        arm.seconds += result.seconds
        arm.last = self.clock() - self.zero
        arm.status = result.status
        value = outcome.value or {"effective": 0, "drawn": 0, "seen": {}}
        if kind is Kind.INDEPENDENT:
            arm.independent += value["effective"]
            arm.failed += arm.unmet
        else:
            arm.directed += value["effective"]
            self.replayed += value["effective"] if kind is Kind.REPLAY else 0
        arm.note(value["drawn"], value["seen"])
        if result.worst_ratio is not None and not isinstance(result.worst_ratio, str):
            arm.nearest = max(arm.nearest, min(result.worst_ratio, 1.0) if not arm.unmet else 1.0)

    def _result(self, row: CheckRun, outcome: Outcome, plan: Plan) -> Result:
        if outcome.error is not None:
            return row.result(Status.HARNESS_ERROR, message=outcome.error)
        if outcome.lost is not None:
            return died(row, outcome.lost, plan.effort.timeout_s)
        return Result.from_dict(outcome.value["result"])

    def _arm(self, plan: str, row: CheckRun) -> Arm:
        known = self.state.arms.get(f"{plan} {row.key}", Arm(plan, row.key))
        return replace(known, status=None, last=None)

    def _session(self) -> Session:
        self.said: dict[str, dict[str, object]] = {}
        self.opened: set[str] = set()
        parcels = {name: _apart(parcel(plan.target), number) for number, (name, plan) in enumerate(self.plans.items())}
        return Session(
            work="veriformer.verify.engine.campaign.turn:TurnsOfWorker",
            payload={
                "plans": {name: json_safe(asdict(plan)) for name, plan in self.plans.items()},
                "targets": {name: asdict(one.shipped) for name, one in parcels.items()},
                "database": self.campaign.database,
            },
            files={
                **{name: text for one in parcels.values() for name, text in one.files.items()},
                **read(self.place.files),
            },
            versions={**versions(), **{n: v for one in parcels.values() for n, v in one.versions.items()}},
        )

    def _results(self, started: datetime) -> dict[str, Results]:
        found = {}
        for name, plan in self.plans.items():
            described, rows = self.described[name], self.rows[name]
            found[name] = Results(
                suite=described.suite,
                implementation=described.implementation,
                environment=described.environment,
                profile=plan.profile,
                seed=plan.seed,
                started=started.isoformat(timespec="seconds"),
                duration_s=round(time.monotonic() - self.began, 3),
                planned=len(rows),
                strict=plan.strict,
                results=[self.latest[name][key] for key in rows if key in self.latest[name]],
            )
        return found

    def _findings(self, ran: Ran) -> None:
        for name, results in ran.results.items():
            if ran.stopped is None:
                ran.stopped = remote.add_findings(results, self.plans[name], self.place)
            ids = [finding.id for finding in results.findings]
            known = self.state.findings.get(name, [])
            ran.new[name] = [one for one in ids if one not in known]
            ran.gone[name] = [one for one in known if one not in ids]
            if ran.stopped is None:
                self.state.findings[name] = ids
        self.state.campaigns += 1
        write_state(self.campaign.store, self.state, self.arms)


def _apart(one: Parcel, number: int) -> Parcel:
    """Move a file's target into a numbered folder of its own: two targets may have one file name."""
    if one.shipped.loader is None:
        return one
    folder = f"target{number}"
    shipped = replace(one.shipped, there=f"{folder}/{one.shipped.there}")
    return replace(one, shipped=shipped, files={f"{folder}/{name}": text for name, text in one.files.items()})


def nearest(arms: Sequence[Arm], count: int) -> list[Arm]:
    """Return the rows that came nearest to their bounds without crossing them, at most count."""
    return sorted((arm for arm in arms if not arm.unmet), key=lambda arm: -arm.nearest)[:count]


def by_operation(ran: Ran) -> Mapping[tuple[str, str], list[Arm]]:
    """Group the rows by plan and operation."""
    found: dict[tuple[str, str], list[Arm]] = {}
    for arm in ran.arms:
        found.setdefault((arm.plan, arm.row.partition(".")[0]), []).append(arm)
    return found

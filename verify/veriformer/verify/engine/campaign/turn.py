"""A turn of a campaign: some seconds of one row, under a seed of its own.

Three kinds, by what Hypothesis is asked for. *replay* reuses what its database holds of this row: examples that have
failed, and those that came nearest to the bound. *independent* draws examples that know nothing of each other, the
only ones from which a share of failing examples can be estimated. *directed* varies the nearest ones to come nearer,
and those that cover most of what few examples of the row have covered, to cover more of it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest import SkipTest

import hypothesis
import hypothesis.strategies as st
import torch
from hypothesis.database import (
    DirectoryBasedExampleDatabase,
    ExampleDatabase,
    GitHubArtifactDatabase,
    MultiplexedDatabase,
    ReadOnlyDatabase,
    choices_to_bytes,
)
from hypothesis.errors import Unsatisfiable

from veriformer.verify.contract.features import present
from veriformer.verify.engine.check_run import run_check
from veriformer.verify.engine.plan import Plan
from veriformer.verify.engine.profiles import Profile
from veriformer.verify.engine.runner import as_advice, confine, loaded
from veriformer.verify.engine.search import Search
from veriformer.verify.examples import EXAMPLES_PER_SEED, prepared, without_constants
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.results import json_safe
from veriformer.verify.targets.shipping import Shipped
from veriformer.verify.targets.target import Target

REPLAYED = 1000
"""Examples of a row that are replayed at most; Hypothesis keeps a few."""

DIRECTED = 60
"""Examples of one directed search: enough to climb from the nearest."""

_NEAREST = b".pareto"  # where Hypothesis keeps what no other example is nearer, or smaller, than


class Kind(StrEnum):
    """Source of a turn's examples."""

    REPLAY = "replay"
    INDEPENDENT = "independent"
    DIRECTED = "directed"


def database(place: str) -> ExampleDatabase:
    """Open Hypothesis' example database at a place: a folder, or ``redis://…`` or ``github:owner/repository`` and a
    folder.
    """
    remote, _, folder = place.rpartition(" ") if "://" in place or place.startswith("github:") else ("", "", place)
    local = DirectoryBasedExampleDatabase(Path(folder))
    if remote.startswith("github:"):
        owner, _, repository = remote.removeprefix("github:").partition("/")
        return MultiplexedDatabase(local, ReadOnlyDatabase(GitHubArtifactDatabase(owner, repository)))
    if remote:
        import redis  # with Hypothesis' own extra
        from hypothesis.extra.redis import RedisExampleDatabase

        return RedisExampleDatabase(redis.Redis.from_url(remote))
    return local


def stored_examples(held: ExampleDatabase, key: str) -> bool:
    """Return whether a database holds examples of a row."""
    return any(True for part in (b"", _NEAREST) for _ in held.fetch(key.encode() + part))


class _Watched(Trial):
    """A trial that records features of its calls, in words, and each size in powers of two."""

    def __init__(self, row: CheckRun, target: Target, data: st.DataObject) -> None:
        super().__init__(target, row.check.operation, row.check.positional, row.dtype, row.device, data)
        self.met: set[str] = set()

    def notice(
        self, operation: str, arguments: Arguments, wrt: tuple[str, ...], cotangent: torch.Tensor | None
    ) -> None:
        """Note the features and sizes of a call."""
        self.met |= present(operation, arguments, dtype=self.dtype_name, gradients=bool(wrt))
        tensors = {name: value for name, value in arguments.items() if isinstance(value, torch.Tensor)}
        self.met |= {
            f"{name}[{axis - value.ndim}] {size.bit_length()}"
            for name, value in tensors.items()
            for axis, size in enumerate(value.shape)
        }


@dataclass
class _TurnSearch(Search):
    """A search of some seconds. hardest: the row's largest known ratio. more: covered by several of its examples."""

    kind: Kind = Kind.INDEPENDENT
    seconds: float = 1.0
    hardest: float = 0.0
    more: frozenset[str] = frozenset()
    examples: ExampleDatabase | None = None
    key: str = ""
    seen: Counter[str] = field(default_factory=Counter)
    drawn: int = 0
    current: _Watched | None = None

    def trial(self, data: st.DataObject) -> Trial:
        """Return a trial that records the features of its calls."""
        self.current = _Watched(self.row, self.target, data)
        return self.current

    def draw(self, seed: str, done: int) -> None:
        """Draw examples until the time is over, at least as many as are planned where a law judges them together."""
        until = time.monotonic() + self.seconds
        phases, count = {
            Kind.REPLAY: ((hypothesis.Phase.reuse,), REPLAYED),
            Kind.INDEPENDENT: ((hypothesis.Phase.generate,), EXAMPLES_PER_SEED),
            Kind.DIRECTED: ((hypothesis.Phase.reuse, hypothesis.Phase.generate, hypothesis.Phase.target), DIRECTED),
        }[self.kind]
        burst = 0
        while not burst or time.monotonic() < until or self._owed(burst):
            name = f"{seed}|{self.row.key}|{burst}"
            run = prepared(
                self.example,
                name,
                count,
                shrink=bool(self.profile.shrinks),
                phases=phases,
                database=self.examples,
                key=self.key,
            )
            try:
                with without_constants():
                    run()
            except Unsatisfiable:
                self.unsatisfiable = True
            except SkipTest:  # there is nothing to replay
                break
            burst += 1
            if self.kind is not Kind.INDEPENDENT:
                break

    def _owed(self, bursts: int) -> bool:
        return self.row.check.finish is not None and bursts * EXAMPLES_PER_SEED < self.planned

    def exercised(self) -> bool:
        """Return True: a turn never draws again for examples that could not tell right from wrong; they are not
        counted.
        """
        return True

    def example(self, data: st.DataObject) -> None:
        """Judge one example, and record its ratio and its features."""
        searching = self.best is None
        known, self.statistics.worst_ratio = (self.statistics.worst_ratio, self.statistics.worst_size), None
        covered = Counter(self.statistics.covered)
        try:
            super().example(data)
        finally:
            ratio = self.statistics.worst_ratio
            if known[0] is not None and (ratio is None or ratio < known[0]):
                self.statistics.worst_ratio, self.statistics.worst_size = known
        if searching and self.current is not None:
            # Pairs of what was large, or of that and an option, are what the row counts as covered.
            found = set(map(_short, self.current.met | (self.statistics.covered - covered).keys()))
            self.seen.update(found)
            self.drawn += 1
            self._near(ratio or 0.0, len(found - self.more), data)

    def _near(self, ratio: float, rare: int, data: st.DataObject) -> None:
        near = min(ratio, 1.0)
        if self.kind is not Kind.INDEPENDENT:
            hypothesis.target(near, label="ratio")
            if self.kind is Kind.DIRECTED:
                hypothesis.target(rare, label="rare")
        elif near > self.hardest and self.examples is not None:
            self.hardest = near
            self.examples.save(self.key.encode() + _NEAREST, choices_to_bytes(data.conjecture_data.choices))


@cache
def _short(word: str) -> str:
    return sha256(word.encode()).hexdigest()[:10]


class Turns:
    """Takes turns where it is made, with plans and targets by name, and the place of the database."""

    def __init__(self, plans: Mapping[str, Plan], shipped: Mapping[str, Shipped], place: str) -> None:
        self.plans, self.shipped, self.place = plans, shipped, place

    def run(self, item: str, extra: Mapping[str, Any]) -> dict[str, Any]:
        """Run one turn of a row; return its result, and for each covered feature how many examples had it."""
        plan, target = self.plans[extra["plan"]], self._target(extra["plan"])
        row, kind = self._rows(extra["plan"])[extra["row"]], Kind(extra["kind"])
        if kind is not Kind.INDEPENDENT:  # a law over all examples speaks of independent ones
            row = replace(row, check=replace(row.check, finish=None))
        searches: list[_TurnSearch] = []

        def searching(row: CheckRun, target: Target, profile: Profile) -> Search:
            searches.append(
                _TurnSearch(
                    row,
                    target,
                    profile,
                    kind=kind,
                    seconds=extra["seconds"],
                    hardest=extra["hardest"],
                    more=frozenset(extra["more"]),
                    examples=self._database(),
                    key=f"{extra['plan']} {row.key}",
                )
            )
            return searches[-1]

        result = run_check(
            row, target, plan.effort, extra["seed"], {}, may_kill=True, stored=extra["stored"], searching=searching
        )
        vacuous = searches[0].statistics.vacuous if searches else 0
        result = result if plan.strict else as_advice(result, recognised=bool(target.recognised))
        return {
            "result": json_safe(result.to_dict()),
            "effective": result.examples - vacuous,
            "drawn": searches[0].drawn if searches else 0,
            "seen": dict(searches[0].seen) if searches else {},
        }

    @cache  # noqa: B019  # one object for the life of its process
    def _database(self) -> ExampleDatabase:
        return database(self.place)

    @cache  # noqa: B019
    def _target(self, name: str) -> Target:
        return loaded(self.plans[name], self.shipped[name])

    @cache  # noqa: B019
    def _rows(self, name: str) -> dict[str, CheckRun]:
        return {row.key: row for row in self.plans[name].rows()}


class TurnsOfWorker(Turns):
    """Turns in a worker's own process."""

    def __init__(self, payload: Mapping[str, Any]) -> None:
        plans = {name: Plan.from_dict(plan) for name, plan in payload["plans"].items()}
        confine(max(plans.values(), key=lambda plan: plan.effort.memory_gib))
        super().__init__(
            plans, {name: Shipped(**entry) for name, entry in payload["targets"].items()}, payload["database"]
        )

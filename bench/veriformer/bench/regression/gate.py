"""Error rates of the regression gate: false alarms on identical code, and share of planted slowdowns that it finds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, exp

import numpy as np

from veriformer.bench.document import Gate, Tries
from veriformer.bench.regression.measure import Plan, Series, measure
from veriformer.bench.statistics import Block, Change, Share, is_steady, judge, suspects
from veriformer.bench.timing.arms import Arm

PLANTED = (0.05, 0.1, 0.2)
_ALARMS = (Change.SLOWER, Change.FASTER)


@dataclass(frozen=True)
class Noise:
    """Noise of simulated times, each as a share of a time.

    turn: from turn to turn. process: from process to process. drift: of both arms, from turn to turn, as a random walk.
    bursts: the probability that another program takes half of a turn.
    """

    turn: float = 0.02
    process: float = 0.015
    drift: float = 0.01
    bursts: float = 0.05


def simulated_block(random: np.random.Generator, noise: Noise, slowdown: float, plan: Plan) -> Block:
    """Simulate times of one pair of processes, whose head takes (1 + slowdown) times as long."""
    level = np.exp(random.normal(0, noise.process, 2)) * np.array([1.0, 1 + slowdown])
    base: list[float] = []
    head: list[float] = []
    drift = 0.0
    for quad in range(plan.most):
        if quad >= plan.quads and is_steady(Block(base, head), plan.floors):
            break
        for arm in (0, 1, 1, 0) if quad % 2 == 0 else (1, 0, 0, 1):
            drift += random.normal(0, noise.drift)
            burst = 1.5 if random.random() < noise.bursts else 1.0
            seconds = 1e-3 * level[arm] * exp(drift + random.normal(0, noise.turn)) * burst
            (base, head)[arm].append(seconds)
    return Block(base, head)


def simulate(tries: int, slowdown: float, plan: Plan, noise: Noise, seed: int) -> Iterator[Change]:
    """Yield verdicts of the gate on simulated times."""
    random = np.random.default_rng(seed)
    for _ in range(tries):
        blocks = [simulated_block(random, noise, slowdown, plan) for _ in range(plan.blocks)]
        fresh = simulated_block(random, noise, slowdown, plan) if suspects(blocks, plan.floors) else None
        yield judge(blocks, plan.floors, fresh).change


@dataclass(frozen=True)
class Effort:
    """Size of the trial on this machine: comparisons of identical code and of planted slowdowns, and the time limit."""

    identical: int = 30
    planted: int = 30
    seconds: float = 1200.0


def measured(
    target: str, workloads: Sequence[str], tries: int, seconds: float, plan: Plan, tell: Callable[[str], object]
) -> Iterator[tuple[str, Change]]:
    """Yield verdicts of the gate on a target beside itself, by workload, until the time is over. Raises ArmError.

    Workloads share their pairs of processes.
    """
    side, end = Arm(target, (), target), time.monotonic() + seconds
    rounds = ceil(tries / len(workloads))
    for number in range(rounds):
        if time.monotonic() >= end:
            return
        found = {name: Series(name) for name in workloads}
        measure(side, side, found, plan, lambda what, n=number: tell(f"round {n + 1} of {rounds}: {what}"))  # type: ignore[misc]
        yield from ((name, series.judgement(plan.floors).change) for name, series in found.items())


def assess(
    target: str,
    workloads: Sequence[str],
    effort: Effort,
    simulations: int,
    plan: Plan,
    tell: Callable[[str], object],
    tried: Callable[[Tries], None],
) -> Gate:
    """Return both error rates of the gate, simulated and measured; `tried` gets each as it is known."""
    alarms: list[Tries] = []
    found: list[Tries] = []

    def add(rows: list[Tries], what: str, changes: Iterable[Change], counted: Sequence[Change]) -> None:
        verdicts = [change for change in changes if change is not Change.INVALID]
        share = Share(sum(verdict in counted for verdict in verdicts), len(verdicts))
        rows.append(Tries(what=what, count=share.count, tries=share.tries, interval=list(share.interval)))
        tried(rows[-1])

    def percent(share: float) -> str:
        return f"{share:.0%} slower"

    add(alarms, "simulated, identical", simulate(simulations, 0.0, plan, Noise(), seed=0), _ALARMS)
    for i, share in enumerate(PLANTED):
        changes = simulate(simulations, share, plan, Noise(), seed=1 + i)
        add(found, f"simulated, {percent(share)}", changes, (Change.SLOWER,))
    whole = max(1, effort.identical + effort.planted)
    if effort.identical:
        seconds = effort.seconds * effort.identical / whole
        same = list(measured(target, workloads, effort.identical, seconds, plan, tell))
        add(alarms, f"{target} beside itself", [change for _, change in same], _ALARMS)
    if effort.planted:
        seconds = effort.seconds * effort.planted / whole
        slowed = list(measured(target, workloads, effort.planted, seconds, replace(plan, planted=0.1), tell))
        for name in workloads:
            add(found, f"{name}, {percent(0.1)}", [c for n, c in slowed if n == name], (Change.SLOWER,))
        add(found, f"all of them, {percent(0.1)}", [change for _, change in slowed], (Change.SLOWER,))
    return Gate(false_alarms=alarms, found=found)

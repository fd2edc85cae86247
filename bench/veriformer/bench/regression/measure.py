"""Blocks of turns of two arms, for all workloads that both provide."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from math import ceil

from veriformer.bench.statistics import Block, Change, Floors, Judgement, is_steady, judge, suspects
from veriformer.bench.timing.arms import Arm, DiedError, Process

Tell = Callable[[str], object]
_TURN = 0.02
"""Seconds of a turn: what is quicker runs several times."""
_LONGEST = 120.0
"""Seconds after which a turn is taken to hang."""


@dataclass(frozen=True)
class Plan:
    """Number of measurements, and the clock. quads: of a block at least; most: where it is not steady by then."""

    blocks: int = 5
    quads: int = 7
    most: int = 35
    device: str = "cpu"
    clock: str = "wall"
    floors: Floors = field(default_factory=Floors)
    planted: float = 0.0
    """The share by which the head does more of the same work: 0.1 is a slowdown of 10 %, to try the gate."""


@dataclass
class Series:
    """Measurements of one workload."""

    workload: str
    blocks: list[Block] = field(default_factory=list)
    fresh: Block | None = None
    fault: str | None = None
    skipped: str | None = None
    rejected: int = 0
    """Blocks that were not counted, since the device was throttled."""

    def judgement(self, floors: Floors) -> Judgement:
        """Return the verdict, invalid where nothing can be compared."""
        if self.fault or len(self.blocks) < 2:
            reason = self.fault or f"{len(self.blocks)} pairs of processes were measured; at least 2 are needed"
            return Judgement(Change.INVALID, 1.0, (0.0, float("inf")), reason)
        return judge(self.blocks, floors, self.fresh)


def measure(base: Arm, head: Arm, found: dict[str, Series], plan: Plan, tell: Tell) -> None:
    """Fill the series of each workload; those not provided by both are taken out.

    What was measured so far is there at any time, so that an interrupt loses nothing. Raises ArmError where an arm
    cannot be loaded.
    """
    for number in range(plan.blocks):
        _block(base, head, found, plan, lambda name, n=number: tell(f"pair {n + 1} of {plan.blocks}: {name}"), number)  # type: ignore[misc]
        for name in [name for name, series in found.items() if series.skipped]:
            del found[name]
    doubtful = {n: s for n, s in found.items() if len(s.blocks) > 1 and not s.fault and suspects(s.blocks, plan.floors)}
    if doubtful:
        again = {name: Series(name) for name in doubtful}
        _block(base, head, again, plan, lambda name: tell(f"a fresh pair: {name}"), plan.blocks)
        for name, series in again.items():
            doubtful[name].fresh = series.blocks[0] if series.blocks else None


def _block(base: Arm, head: Arm, found: dict[str, Series], plan: Plan, tell: Tell, number: int) -> None:
    """Measure the workloads in a pair of fresh processes; the arm that is started first alternates."""
    waiting = [series for series in found.values() if not series.fault]
    while waiting:
        try:
            with _pair(base, head, plan, number) as (first, second):
                while waiting:
                    series = waiting[0]
                    tell(series.workload)
                    _add(series, first, second, plan)
                    waiting.pop(0)
        except DiedError as error:  # costs the workload that ran, and no other
            waiting.pop(0).fault = f"a process {error}"


@contextmanager
def _pair(base: Arm, head: Arm, plan: Plan, number: int) -> Iterator[tuple[Process, Process]]:
    """Yield both processes, which start at the same time, in the order base, head."""
    swapped = bool(number % 2)
    with ExitStack() as stack:
        sides = (head, base) if swapped else (base, head)
        started = [Process(side, plan.device, plan.clock) for side in sides]
        for process in started:  # whatever happens to the other
            stack.push(process.__exit__)
        for process in started:
            process.__enter__()
        first, second = reversed(started) if swapped else started
        yield first, second


def _add(series: Series, base: Process, head: Process, plan: Plan) -> None:
    seconds = []
    for process in (base, head):
        answer = process.ask({"do": "prepare", "workload": series.workload}, _LONGEST)
        if "skipped" in answer:
            series.skipped = answer["skipped"]
            return
        if "error" in answer:
            series.fault = answer["error"]
            return
        seconds.append(answer["seconds"])
    if _is_wrong(series, base, head):
        return
    repeats = min(10_000, max(1, ceil(_TURN / max(max(seconds), 1e-9))))
    if plan.planted:
        repeats = max(repeats, round(1 / plan.planted))
    more = round(repeats * plan.planted)
    turns: dict[int, list[float]] = {0: [], 1: []}
    for quad in range(plan.most):
        if quad >= plan.quads and is_steady(Block(turns[0], turns[1]), plan.floors):
            break
        order = (0, 1, 1, 0) if quad % 2 == 0 else (1, 0, 0, 1)
        for arm in order:
            runs = repeats + more * arm
            request = {"do": "turn", "workload": series.workload, "repeats": runs}
            answer = (base, head)[arm].ask(request, _LONGEST)
            if "error" in answer:
                series.fault = answer["error"]
                return
            turns[arm].append(answer["seconds"] * runs / repeats)
    if _is_wrong(series, base, head):
        return
    if base.ask({"do": "device_state"}).get("throttled"):
        series.rejected += 1
        return
    series.blocks.append(Block(turns[0], turns[1]))


def _is_wrong(series: Series, base: Process, head: Process) -> bool:
    """Return whether a side computes something else than what is timed; asked before and after the timing."""
    for side, process in (("base", base), ("head", head)):
        answer = process.ask({"do": "check", "workload": series.workload}, _LONGEST)
        said = answer.get("wrong") or answer.get("error")
        if said:
            series.fault = f"{side}: {said}"
            return True
    return False

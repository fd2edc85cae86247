"""Statistics of each row, and choice of the row where a second more of work is expected to cover most.

The number of features still to be covered is estimated. An example covers features of its calls, sizes of their axes,
and pairs of sizes and options that are large together. The expected number of new features in the next example is the
number of features covered once, over the number of examples (Good, 1953). The chance that it comes nearer to the bound
than all before is 1/(n + 1), weighted by the nearest ratio so far, at most 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from scipy.stats import beta

from veriformer.verify.results import Status

CONFIDENCE = 0.95

_ENDED = frozenset(
    {
        Status.NOT_PROVIDED,
        Status.NOT_APPLICABLE,
        Status.HARNESS_ERROR,
        Status.KNOWN_FAIL,
        Status.UNEXPECTED_PASS,
    }
)
"""Of a row with such an end nothing more is to be learnt."""


@dataclass
class Arm:
    """Statistics of one row of one plan over all campaigns.

    independent: number of effective examples drawn independently. directed: of those that varied, or replayed, near
    ones. drawn: of all of both, effective or not. failed: turns of independent examples that ended in a failure.
    nearest: the largest ratio of error to bound. once, more: features covered by one example, and by more. last: when
    its last turn ended, in seconds of this campaign.
    """

    plan: str
    row: str
    independent: int = 0
    directed: int = 0
    drawn: int = 0
    failed: int = 0
    turns: int = 0
    seconds: float = 0.0
    nearest: float = 0.0
    status: Status | None = None
    once: set[str] = field(default_factory=set)
    more: set[str] = field(default_factory=set)
    last: float | None = None

    @property
    def name(self) -> str:
        """Unique name: plan and row."""
        return f"{self.plan} {self.row}"

    @property
    def over(self) -> bool:
        """True if this campaign can learn no more of the row: it has failed, or there is nothing to ask."""
        return self.unmet or self.status in _ENDED

    @property
    def unmet(self) -> bool:
        """True if the last turn found a violation."""
        return self.status in (Status.FAIL, Status.CRASH, Status.TIMEOUT, Status.ADVICE)

    @property
    def growth(self) -> float:
        """Expected gain per second: number of newly covered features, plus the chance of a nearer example."""
        return (self.unseen + min(self.nearest, 1.0) / (self.drawn + 1)) * self.rate

    @property
    def rate(self) -> float:
        """Examples a second."""
        return self.drawn / self.seconds if self.seconds else 0.0

    @property
    def turn_s(self) -> float:
        """Mean seconds per turn."""
        return self.seconds / self.turns if self.turns and self.seconds else 1.0

    @property
    def unseen(self) -> float:
        """Expected number of features that the next example covers for the first time."""
        return len(self.once) / max(1, self.drawn)

    @property
    def missed(self) -> float:
        """The upper limit, at 95 %, of the share of failing examples (Clopper and Pearson): near 3/n where none did."""
        if not self.independent:
            return 1.0
        failed = min(self.failed, self.independent)
        if failed == self.independent:
            return 1.0
        return float(beta.ppf(CONFIDENCE, failed + 1, self.independent - failed))

    def note(self, drawn: int, seen: Mapping[str, int]) -> None:
        """Count examples, and by how many each thing was covered."""
        self.drawn += drawn
        for thing, times in seen.items():
            if thing in self.more:
                continue
            if times > 1 or thing in self.once:
                self.once.discard(thing)
                self.more.add(thing)
            else:
                self.once.add(thing)

    def to_dict(self) -> dict[str, Any]:
        """Return the state that is kept from one campaign to the next, as JSON."""
        return {**asdict(self), "once": sorted(self.once), "more": sorted(self.more), "last": None}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Arm:
        """Return the arm that ``to_dict`` stored."""
        status = Status(entry["status"]) if entry["status"] else None
        covered = {"once": set(entry["once"]), "more": set(entry["more"])}
        return cls(**{**entry, **covered, "status": status})


FLOOR = 0.05
"""Of the mean growth, as much is granted to every row: what seems to teach nothing has its turn when it waited long."""


def choose(arms: Sequence[Arm], now: float) -> Arm | None:
    """Return the row whose turn is next; None where nothing is left to learn.

    Each has had a turn before any has a second. Then the row is chosen whose growth, times the seconds since its last
    turn, over the seconds that a turn of it takes, is largest: time is shared in proportion to growth, slow rows have
    no more of it than others, and none waits for ever.
    """
    going = [arm for arm in arms if not arm.over]
    new = next((arm for arm in going if arm.last is None), None)
    if new is not None or not going:
        return new
    growth = {arm.name: arm.growth for arm in going}
    least = FLOOR * sum(growth.values()) / len(going) or 1.0
    shortest = min(arm.turn_s for arm in going)  # with no age at all, none would ever have two turns running

    def wanted(arm: Arm) -> float:
        age = now - (arm.last or 0.0) + shortest
        return (growth[arm.name] + least) * age / arm.turn_s

    return max(going, key=wanted)

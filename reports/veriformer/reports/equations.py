"""The equations of the specification as the page shows them: what is claimed, and how far each step reaches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veriformer.reports.runs import read_json

SPEC_SCHEMA_NAME = "veriformer/spec/1"

# What is known of a step, and how far, to its sign, its word and its colour, worst first.
STEP_LOOKS = {
    "refuted": ("✗", "refuted", "bad"),
    "unproved": ("?", "unproved", "warn"),
    "vacuous": ("○", "vacuous", "warn"),
    "confirmed numerically": ("≈", "confirmed numerically", "info"),
    "proved for small n": ("✓", "proved for small n", "good"),
    "proved for all n": ("✓", "proved for all n", "good"),
}
_UNKNOWN = ("?", "unknown", "warn")

ERRATUM_LOOKS = {
    "wrong": ("✗", "wrong as printed", "bad"),
    "imprecise": ("≈", "imprecise", "warn"),
    "contradictory": ("≠", "contradicts another place", "info"),
    "convention": ("≡", "another convention", "info"),
}


@dataclass(frozen=True)
class EquationView:
    """An equation of the specification's document, as it stands there, with what the page adds."""

    data: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:
        return self.data.get(name)

    @property
    def name(self) -> str:
        """Return its number, by which rows of results point to it, or the name of one that has none."""
        return str(self.data.get("number") or self.data.get("slug"))

    @property
    def anchor(self) -> str:
        """Return the name of its place on a page."""
        return f"eq-{self.name}"

    @property
    def worst(self) -> tuple[str, str, str]:
        """Return sign, word and colour of its worst step; an equation without steps is unproved."""
        met = {reach(step) for step in self.data.get("steps", ())}
        return next((look for word, look in STEP_LOOKS.items() if word in met), STEP_LOOKS["unproved"])

    @property
    def proved(self) -> str:
        """Return the number of its steps that hold."""
        steps = self.data.get("steps", ())
        held = sum(step.get("status") in ("proved", "confirmed") for step in steps)
        return f"{held} of {len(steps)} steps hold"


@dataclass(frozen=True)
class Specification:
    """The equations of a specification and what they come to, and what the documents say."""

    equations: tuple[EquationView, ...]
    inventory: tuple[Mapping[str, Any], ...] = ()

    @property
    def numbers(self) -> frozenset[str]:
        """Return the numbers that rows of results can point to."""
        return frozenset(str(equation.number) for equation in self.equations if equation.number)

    @property
    def steps(self) -> list[tuple[tuple[str, str, str], int]]:
        """Return the number of steps in each status, the worst first."""
        counts = Counter(reach(step) for equation in self.equations for step in equation.data.get("steps", ()))
        return [(_look(word), count) for word, count in sorted(counts.items(), key=lambda item: _rank(item[0]))]

    @property
    def statements(self) -> list[tuple[str, int]]:
        """Return the number of statements of the documents with each verdict and reach."""
        return Counter(str(item.get("scope") or item.get("verdict")) for item in self.inventory).most_common()

    @property
    def errata(self) -> list[tuple[EquationView, Mapping[str, Any]]]:
        """Return every erratum with its equation."""
        return [(equation, erratum) for equation in self.equations for erratum in equation.data.get("errata", ())]


def read_specification(path: Path) -> Specification:
    """Read what ``veriformer spec --json`` writes. Raises ValueError that names the file."""
    expected = f"a specification ({SPEC_SCHEMA_NAME})"
    document = read_json(path, expected)
    if document.get("schema") != SPEC_SCHEMA_NAME or not isinstance(document.get("equations"), list):
        raise ValueError(f"{path}: expected {expected}, got schema {document.get('schema')!r}")
    inventory = document.get("inventory")
    listed = tuple(i for i in inventory if isinstance(i, dict)) if isinstance(inventory, list) else ()
    return Specification(tuple(EquationView(equation) for equation in document["equations"]), listed)


def reach(step: Mapping[str, Any]) -> str:
    """Return what is known of a step and how far it reaches: its scope where it holds, or else its status."""
    status = str(step.get("status"))
    return str(step.get("scope")) if status in ("proved", "confirmed") else status


def step_style(step: Mapping[str, Any]) -> tuple[str, str, str]:
    """Sign, word and colour of what is known of a step."""
    return _look(reach(step))


def _look(word: str) -> tuple[str, str, str]:
    return STEP_LOOKS.get(word, _UNKNOWN)


def erratum_look(kind: str | None) -> tuple[str, str, str]:
    """Sign, word and colour of an erratum's kind."""
    return ERRATUM_LOOKS.get(kind or "", _UNKNOWN)


def _rank(word: str) -> int:
    return list(STEP_LOOKS).index(word) if word in STEP_LOOKS else -1

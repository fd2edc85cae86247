"""Verdict on one run in one sentence, and the badge of several. Green never hides what did not run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from markupsafe import escape

from veriformer.reports.findings import list_findings
from veriformer.reports.runs import Run
from veriformer.reports.statuses import SHOWN, STATUS_STYLES, StatusStyle
from veriformer.spec.requirement import Weight
from veriformer.verify.presentation.verdict import headline, scope, word
from veriformer.verify.results import VIOLATIONS, Result, Results, Status
from veriformer.verify.results import Verdict as Outcome
from veriformer.verify.results.foreign import number

_ABSENT = frozenset({Status.NOT_PROVIDED, Status.NOT_APPLICABLE})
"""Statuses of what there is nothing of to judge."""

NAMED = 4
"""Violated requirements that a sentence names; further ones are counted."""


class State(StrEnum):
    """State of a run, the gravest first."""

    INVALID = "invalid"
    VIOLATED = "violated"
    NOTHING = "shows nothing"
    HOLDS = "holds"


SIGNS = {State.INVALID: "‼", State.VIOLATED: "✗", State.NOTHING: "○", State.HOLDS: "✓"}
TONES = {State.INVALID: "shout", State.VIOLATED: "bad", State.NOTHING: "warn", State.HOLDS: "good"}


@dataclass(frozen=True)
class Verdict:
    """The beginning of a run's report.

    sentence: what holds or does not. caveat: what was not shown, or nothing. counts: rows per status, worst first.
    """

    run: Run
    state: State
    sentence: str
    caveat: str
    counts: tuple[tuple[StatusStyle, int], ...]

    @property
    def headline(self) -> str:
        """Return the run in one sentence, as the terminal tells it."""
        return headline(self.run.results)

    @property
    def word(self) -> str:
        """Return the verdict in a few words, weaknesses counted."""
        return word(self.run.results) if self.state is State.HOLDS else self.state.value

    @property
    def scope(self) -> str:
        """Return the operations, dtypes and directions for which it holds."""
        return scope(self.run.results)

    @property
    def sign(self) -> str:
        """Return the sign of the state."""
        return SIGNS[self.state]

    @property
    def tone(self) -> str:
        """Return the name of the state's colour in the style sheet."""
        return TONES[self.state]

    @property
    def command(self) -> str:
        """Return the command that repeats the run."""
        results = self.run.results
        words = ["veriformer", "verify", self.run.target, "--profile", results.profile, "--seed", results.seed]
        words += ["--only", *results.only] if results.only else []
        words += _dtypes_option(results.results) + _device_option(results.results)
        return shlex.join([*words, *_judging_options(results)])


def verdict(run: Run) -> Verdict:
    """Judge a run by its rows."""
    found = run.results.summary
    counts = tuple((look, found[look.status.value]) for look in STATUS_STYLES.values() if look.status.value in found)
    state = _state(run)
    return Verdict(run, state, _SENTENCES[state](run), _caveat(run), counts)


def _state(run: Run) -> State:
    return _STATES[run.results.verdict]


def _invalid(run: Run) -> str:
    results, reasons = run.results, []
    if len(results.results) != results.planned:
        reasons.append(f"{len(results.results)} of {results.planned} planned rows ran")
    errors = results.summary.get(Status.HARNESS_ERROR.value, 0)
    if errors:
        reasons.append(f"the suite itself broke in {number(errors, 'row')}")
    violated = f" Among what ran, {_violated(run)}" if results.violations else ""
    return f"The verdict is invalid: {', and '.join(reasons)}. Nothing below may be relied on.{violated}"


def _violated(run: Run) -> str:
    names = list(dict.fromkeys(row.requirement for row in run.results.violations))
    if not names:
        changed = "; ".join(f"{name}: {', '.join(what)}" for name, what in run.results.global_state.items())
        return (
            f"Violated: it changes global state ({changed})." if changed else "Violated: see its findings and domain."
        )
    named = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
    judged = [row for row in run.results.results if row.status not in _ABSENT]
    return f"{len(names)} of {number(_requirements(judged), 'requirement')} violated: {named}."


def _nothing(run: Run) -> str:
    shown = sum(row.status in SHOWN for row in run.results.results)
    rows = number(len(run.results.results), "row")
    return f"Too little was shown: {shown} of {rows} passed; {'; '.join(run.results.gaps)}."


def _holds(run: Run) -> str:
    shown = [row for row in run.results.results if row.status in SHOWN]
    requirements = number(_requirements(shown), "requirement")
    return f"Nothing violated: {requirements} held in {len(shown)} of {number(len(run.results.results), 'row')}."


_STATES = {
    Outcome.INVALID: State.INVALID,
    Outcome.VIOLATED: State.VIOLATED,
    Outcome.INCONCLUSIVE: State.NOTHING,
    Outcome.HOLDS: State.HOLDS,
}

_SENTENCES = {State.INVALID: _invalid, State.VIOLATED: _violated, State.NOTHING: _nothing, State.HOLDS: _holds}


def _caveat(run: Run) -> str:
    counts = run.results.summary
    silent = [status for status in STATUS_STYLES if status.value in counts and status not in SHOWN | VIOLATIONS]
    named = ", ".join(f"{counts[status.value]} {STATUS_STYLES[status].word}" for status in silent)
    missing = run.results.planned - len(run.results.results)
    parts = ([f"{missing} not run"] if missing > 0 else []) + ([named] if named else [])
    return f"Not shown: {', '.join(parts)}." if parts else ""


def _requirements(rows: list[Result]) -> int:
    return len({row.requirement for row in rows})


def _dtypes_option(rows: list[Result]) -> list[str]:
    """Return the option of the dtypes, where not all were asked for."""
    used = list(dict.fromkeys(row.dtype for row in rows if row.dtype))
    return ["--dtype", *used] if used and len(used) < len(_ALL_DTYPES) else []


def _device_option(rows: list[Result]) -> list[str]:
    """Return the option of the device, where it was not the usual one."""
    return next((["--device", row.device] for row in rows if row.device != "cpu"), [])


def _judging_options(results: Results) -> list[str]:
    """Return the options of what violates, where they were not the usual ones."""
    least = [] if results.fail_on is Weight.FRAGILE else ["--fail-on", results.fail_on.value]
    return [*(["--strict"] if results.strict else []), *least, *(["--partial"] if results.partial else [])]


_ALL_DTYPES = ("fp64", "fp32", "bf16", "fp16")


_COLOURS = {State.INVALID: "#8b1d6b", State.VIOLATED: "#b3261e", State.NOTHING: "#7d5300", State.HOLDS: "#1a6b3c"}
_NAME = "veriformer"
_CHARACTER = 6.0
"""Width of a character in pixels; the text is stretched to it, so that every font fits."""


def badge(verdicts: Sequence[Verdict]) -> str:
    """Return an SVG image, the worst verdict first in colour and words."""
    state, words = _worst(verdicts)
    left, right = (round(len(text) * _CHARACTER) + 14 for text in (_NAME, words))
    title, colour = escape(f"{_NAME}: {words}"), _COLOURS[state]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" aria-label="{title}">'
        f"<title>{title}</title>"
        f'<clipPath id="r"><rect width="{left + right}" height="20" rx="3"/></clipPath>'
        f'<g clip-path="url(#r)"><rect width="{left}" height="20" fill="#3b4046"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{colour}"/></g>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f'<text x="7" y="14" textLength="{left - 14}">{_NAME}</text>'
        f'<text x="{left + 7}" y="14" textLength="{right - 14}">{escape(words)}</text></g></svg>\n'
    )


def _worst(verdicts: Sequence[Verdict]) -> tuple[State, str]:
    for state in State:
        met = [verdict for verdict in verdicts if verdict.state is state]
        if met and state is State.VIOLATED:
            found = sum(len(list_findings(verdict.run).violating) for verdict in met)
            return state, f"{number(found, 'finding')}: {met[0].run.label if len(met) == 1 else f'{len(met)} runs'}"
        if met and state is not State.HOLDS:
            return state, f"{state.value}: {met[0].run.label}" if len(met) == 1 else f"{len(met)} {state.value}"
    if not verdicts:
        return State.NOTHING, "nothing run"
    rows = sum(len(verdict.run.results.results) for verdict in verdicts)
    shown = sum(count for verdict in verdicts for look, count in verdict.counts if look.tone in ("good", "info"))
    return State.HOLDS, f"{shown} of {rows} hold"

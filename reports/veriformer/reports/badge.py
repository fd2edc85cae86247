"""A badge for a README: what holds, in a few words."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import escape

from veriformer.reports.findings import list_findings
from veriformer.reports.verdicts import State, Verdict
from veriformer.verify.results.foreign import number

_COLOURS = {State.INVALID: "#8b1d6b", State.VIOLATED: "#b3261e", State.NOTHING: "#7d5300", State.HOLDS: "#1a6b3c"}
_NAME = "veriformer"
_CHARACTER = 6.0
"""Width of a character in pixels; the text is stretched to it, so that every font fits."""


def badge(verdicts: Sequence[Verdict]) -> str:
    """An SVG image, the worst verdict first in colour and words."""
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

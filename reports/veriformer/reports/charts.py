"""Pictures as inline SVG: no dates, no random names, no colours of their own but those of the page."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Any

from markupsafe import Markup

from veriformer.bench.regression.record import History
from veriformer.bench.scaling.record import Scaling
from veriformer.reports.matrix import as_float
from veriformer.reports.runs import Run
from veriformer.verify.results import VIOLATIONS, Status

# Matplotlib wants colours; these stand for the page's own, which follow its light or dark scheme.
_INK, _FAINT, _BAD = "#010101", "#020202", "#030303"
_DTYPES = {"fp64": ("#040401", "o"), "fp32": ("#040402", "s"), "bf16": ("#040403", "^"), "fp16": ("#040404", "D")}
_COLOURS = {_INK: "currentColor", _FAINT: "var(--line)", _BAD: "var(--bad)"} | {
    colour: f"var(--series-{number})" for number, (colour, _) in enumerate(_DTYPES.values(), 1)
}
_FLOOR = 1e-3
"""Ratios below this, zero among them, are drawn here: on a logarithmic axis they would be nowhere."""
_CEILING = 30.0

_SHARES, _SHARE_WORDS = [1e-3, 1e-2, 0.1, 1, _CEILING], ["≤ 0.001", "0.01", "0.1", "1", "≥ 30"]

_DRAWN = VIOLATIONS | {Status.PASS, Status.DEVIATION}
"""Statuses of rows that hold or are violated; the latter stand right of 1."""

_STYLE: Any = {
    "svg.hashsalt": "veriformer",
    "svg.fonttype": "none",
    "font.size": 9,
    "text.color": _INK,
    "axes.edgecolor": _FAINT,
}


def bound_use(runs: Sequence[Run]) -> Markup | None:
    """Draw the used share of the bound, a mark per row that holds or is violated; None where there is none."""
    measured = [_marks(run) for run in runs]
    if not any(measured):
        return None
    height = 0.65 + 0.7 * len(runs)
    with _axes((4.2, height), (0.03, 0.5 / height, 0.94, 1 - 0.55 / height), small=True) as axes:
        _frame(axes, [run.label for run in runs])
        for position, marks in enumerate(measured):
            _line(axes, len(runs) - 1 - position, marks)
        return _inline(axes, "How much of the error bound each row of results uses, by target and dtype")


def error_by_size(runs: Sequence[Run]) -> Markup | None:
    """Draw the used share of the bound over the size of the calls that used it; None where no size was recorded."""
    marks = [mark for run in runs for mark in _sized(run)]
    if not marks:
        return None
    with _axes((4.2, 2.6), (0.13, 0.16, 0.84, 0.81), small=True) as axes:
        axes.loglog()
        for dtype, (colour, marker) in _DTYPES.items():
            sizes = [size for name, size, _ in marks if name == dtype]
            ratios = [ratio for name, _, ratio in marks if name == dtype]
            axes.scatter(sizes, ratios, s=15, c=colour, marker=marker, alpha=0.6, linewidths=0)
        axes.set_ylim(_FLOOR * 0.8, _CEILING * 1.2)
        axes.set_yticks(_SHARES, _SHARE_WORDS)
        axes.axhline(1, color=_BAD, linewidth=1.2)
        axes.axhspan(1, _CEILING * 1.2, color=_BAD, alpha=0.08, linewidth=0)
        decades = _decades([size for _, size, _ in marks])
        axes.set_xticks(decades, [f"{n:,}".replace(",", " ") for n in decades])
        axes.minorticks_off()
        _label(axes, "numbers in the call")
        return _inline(axes, "How much of its error bound each row of results uses, by the size of the call")


def use_by_size(runs: Sequence[Run]) -> str:
    """Return in a sentence how much of the bound is used in smaller and in larger calls; empty for fewer than two."""
    marks = [mark for run in runs for mark in _sized(run)]
    middle = median(size for _, size, _ in marks) if marks else 0
    small, large = ([r for _, size, r in marks if (size > middle) is above] for above in (False, True))
    if not large:
        return ""
    return (
        f"In calls of at most {middle:g} numbers the median of these {len(small)} shares is {median(small):.2g}, "
        f"in the {len(large)} larger ones {median(large):.2g}."
    )


def _decades(sizes: Sequence[int]) -> list[int]:
    """Return powers of ten that a logarithmic axis over these sizes shows, at most five of them."""
    powers = range(math.ceil(math.log10(min(sizes))), math.floor(math.log10(max(sizes))) + 1)
    return [10**power for power in powers[:: len(powers) // 5 + 1]] or [min(sizes)]


def growth(one: Scaling) -> Markup | None:
    """Draw seconds over a size, both logarithmic: every process' medians, and the slopes that are predicted."""
    if not one.seconds or not one.predicted:
        return None
    with _axes((3.4, 2.3), (0.2, 0.2, 0.76, 0.74)) as axes:
        axes.loglog()
        sizes, middle = one.sizes, [median(times) for times in zip(*one.seconds, strict=True)]
        low, high = ([middle[0] * (n / sizes[0]) ** slope for n in sizes] for slope in one.predicted)
        colour = _DTYPES["fp64"][0]
        axes.fill_between(sizes, low, high, color=colour, alpha=0.2, linewidth=0)
        axes.plot(sizes, high, color=colour, linewidth=1)
        for times in one.seconds:
            axes.scatter(sizes, times, s=10, c=_INK, alpha=0.6, linewidths=0)
        axes.minorticks_off()
        shown = sorted({sizes[0], sizes[len(sizes) // 2], sizes[-1]})
        axes.set_xticks(shown, [str(n) for n in shown])
        _label(axes, one.size, "seconds")
        return _inline(axes, f"{one.name}: seconds over {one.size}, with the predicted slopes")


def levels(one: History) -> Markup | None:
    """Draw seconds over the runs of a history; a line at each run from which on they take longer or shorter."""
    if len(one.seconds) < 2:
        return None
    with _axes((3.4, 1.8), (0.2, 0.24, 0.76, 0.7)) as axes:
        starts = [0, *(level.start for level in one.levels)]
        for start, stop in zip(starts, [*starts[1:], len(one.seconds)], strict=True):
            middle = median(one.seconds[start:stop])
            axes.plot([start, stop - 1], [middle, middle], color=_DTYPES["fp64"][0], linewidth=1.5)
        for start in starts[1:]:
            axes.axvline(start - 0.5, color=_BAD, linewidth=1, linestyle="--")
        axes.scatter(range(len(one.seconds)), one.seconds, s=10, c=_INK, alpha=0.6, linewidths=0)
        axes.set_ylim(bottom=0)
        axes.set_xticks(sorted({0, len(one.seconds) - 1}), ["first", "last"])
        _label(axes, "run", "seconds")
        return _inline(axes, f"{one.workload}: seconds of {len(one.seconds)} runs and their levels")


def _marks(run: Run) -> list[tuple[str, float]]:
    return sorted((dtype, ratio) for dtype, _, ratio in _shares(run))


def _shares(run: Run) -> list[tuple[str, int | None, float]]:
    """Return dtype, size of the call and used share of the bound of each row that holds or is violated."""
    drawn = (row for row in run.results.results if row.status in _DRAWN)
    ratios = ((row.dtype or "", row.worst_size, as_float(row.worst_ratio)) for row in drawn)
    return [(dtype, size, min(max(r, _FLOOR), _CEILING)) for dtype, size, r in ratios if r is not None]


def _sized(run: Run) -> list[tuple[str, int, float]]:
    """Return those of which the size is known; calls without numbers are as small as those of one."""
    return [(dtype, max(size, 1), ratio) for dtype, size, ratio in _shares(run) if size is not None]


def _frame(axes: Any, labels: Sequence[str]) -> None:
    axes.set_xscale("log")
    axes.set_xlim(_FLOOR * 0.8, _CEILING * 1.2)
    axes.set_xticks(_SHARES, _SHARE_WORDS, color=_INK)
    axes.get_xticklabels()[-1].set_horizontalalignment("right")
    axes.set_xticks([], minor=True)
    axes.set_ylim(-0.45, len(labels) - 0.3)
    axes.set_yticks([])
    for place, label in enumerate(reversed(labels)):
        axes.text(0.0, place + 0.37, _clipped(label), transform=axes.get_yaxis_transform(), va="bottom", color=_INK)
    axes.tick_params(length=0)
    axes.set_xlabel("largest |got − exact| / bound in a row of results", color=_INK)
    axes.axvline(1, color=_BAD, linewidth=1.2)
    axes.axvspan(1, _CEILING * 1.2, color=_BAD, alpha=0.08, linewidth=0)
    axes.grid(axis="x", color=_FAINT, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)


def _line(axes: Any, height: int, marks: Sequence[tuple[str, float]]) -> None:
    """Draw a run with a lane per dtype, so that equal ratios of different dtypes stay apart."""
    for lane, (dtype, (colour, marker)) in enumerate(_DTYPES.items()):
        ratios = [ratio for name, ratio in marks if name == dtype]
        heights = [height + 0.27 - 0.18 * lane] * len(ratios)
        axes.scatter(ratios, heights, s=15, c=colour, marker=marker, alpha=0.6, linewidths=0)


def legend(runs: Sequence[Run]) -> list[tuple[str, str, str]]:
    """Return dtype, sign and colour of each series that is drawn, for a legend in the page's own type."""
    signs = {"o": "●", "s": "■", "^": "▲", "D": "◆"}
    drawn = {dtype for run in runs for dtype, _ in _marks(run)}
    return [(dtype, signs[marker], _COLOURS[colour]) for dtype, (colour, marker) in _DTYPES.items() if dtype in drawn]


def _clipped(label: str) -> str:
    return label if len(label) <= 44 else f"…{label[-43:]}"


@contextmanager
def _axes(size: tuple[float, float], box: tuple[float, float, float, float], *, small: bool = False) -> Iterator[Any]:
    """Yield axes in the box of a figure, whose size is in inches, under the style."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_STYLE | ({"font.size": 8} if small else {})):
        yield Figure(figsize=size).add_axes(box)


def _label(axes: Any, x: str, y: str = "") -> None:
    axes.set_xlabel(x, color=_INK)
    axes.set_ylabel(y, color=_INK)
    axes.tick_params(colors=_INK, labelcolor=_INK, length=2)
    axes.spines[["top", "right"]].set_visible(False)


def _inline(axes: Any, title: str) -> Markup:
    """Return the ``<svg>`` element alone: without prolog, in the page's colours, as wide as its place on the page."""
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    buffer = io.StringIO()
    axes.figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    svg = buffer.getvalue()
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<!--.*?-->", "", body, flags=re.DOTALL)
    for colour, name in _COLOURS.items():
        body = body.replace(colour, name)
    body = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", body)
    head = re.sub(r' (?:width|height|version)="[^"]*"', "", body[: body.index(">")])
    return Markup(f'{head} role="img" aria-label="{title}" class="chart">') + Markup(
        body[body.index(">") + 1 :].strip()
    )

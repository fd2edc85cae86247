"""The report as HTML that needs nothing but itself: one page, or a folder of pages where it would be too large.

Among it are timings: scaling of operations, regressions, and the power of that gate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from veriformer.bench.document import Benchmarks, Tries
from veriformer.bench.regression.record import History, Regression
from veriformer.bench.regression.record import ranked as slower_first
from veriformer.bench.scaling.record import Scaling
from veriformer.bench.scaling.record import ranked as refuted_first
from veriformer.reports import charts, costs
from veriformer.reports.environment import environment
from veriformer.reports.equations import Specification
from veriformer.reports.evidence import suite_errors
from veriformer.reports.findings import list_findings, remarks
from veriformer.reports.layout import INDEX, MOST_BYTES, Layout, row_anchor
from veriformer.reports.matrix import MOST_COLUMNS, by_equation, filters, matrix
from veriformer.reports.mutation_matrix import Kills
from veriformer.reports.runs import Run, label
from veriformer.reports.verdicts import State, Verdict, verdict
from veriformer.spec.requirement import Requirement
from veriformer.spec.requirements import REQUIREMENTS
from veriformer.verify.presentation.known_failures import known_failures
from veriformer.verify.results import Result, Results, Status


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Everything a report may be about; what was not given is None."""

    runs: Sequence[Run]
    benchmarks: Benchmarks | None = None
    kills: Kills | None = None
    specification: Specification | None = None
    requirements: Mapping[str, Requirement] = field(default_factory=lambda: {r.slug: r for r in REQUIREMENTS})

    @property
    def verdicts(self) -> list[Verdict]:
        """Return the verdict on each run."""
        return [verdict(run) for run in self.runs]


def headline(verdicts: Sequence[Verdict]) -> str:
    """Return all verdicts in one sentence."""
    if not verdicts:
        return "Nothing was run."
    by_state = {state: [v for v in verdicts if v.state is state] for state in State}
    parts = [f"{len(met)} {_WORDS[state]}" for state, met in by_state.items() if met]
    total = f"Of {len(verdicts)} runs, " if len(verdicts) > 1 else ""
    return f"{total}{', '.join(parts)}." if total else f"{verdicts[0].headline}."


_WORDS = {
    State.INVALID: "invalid",
    State.VIOLATED: "violated",
    State.NOTHING: "without evidence",
    State.HOLDS: "without a violation",
}


def render(inputs: Inputs) -> str:
    """Return everything as one page. The same inputs give the same bytes."""
    return _Report(inputs).render_index(Layout())


def render_pages(inputs: Inputs, index: str = INDEX) -> dict[str, str]:
    """Return the texts of a report by their paths: one page, or a folder of pages where it would be too large."""
    report, alone = _Report(inputs), Layout(index, here=index)
    if not report.many or len(report.render_index(alone, plots=False).encode()) <= MOST_BYTES:
        whole = report.render_index(alone)
        if len(whole.encode()) <= MOST_BYTES:
            return {index: whole}
    return report.render_all(Layout(index, split=True, here=index))


def render_run(results: Results, index: str) -> dict[str, str]:
    """Return the pages of a single run."""
    return render_pages(Inputs(runs=label([results])), index)


class _Report:
    """Data of the templates, computed once for all pages."""

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs
        listed = {run.label: list_findings(run) for run in inputs.runs}
        self.findings = [entry for one in listed.values() for entry in one.violating]
        self.weaknesses = [entry for one in listed.values() for entry in one.weaknesses]
        self.groups = matrix(inputs.runs)
        self.places = {label: one.places for label, one in listed.items()}
        benchmarks = inputs.benchmarks
        self.sections = {
            "equations": inputs.specification,
            "kills": inputs.kills,
            "costs": costs.groups(benchmarks) if benchmarks else {},
            "timings": timings(benchmarks),
        }
        self.given: dict[str, Any] = {
            **vars(inputs),
            "verdicts": inputs.verdicts,
            "headline": headline(inputs.verdicts),
            "first": next(iter(self.findings), None),
            "findings": self.findings,
            "weaknesses": self.weaknesses,
            "remarks": [(run, told) for run in inputs.runs if (told := remarks(run))],
            "known": [(run, one) for run in inputs.runs for one in known_failures(run.results)],
            "errors": suite_errors(inputs.runs),
            "groups": self.groups,
            "filters": filters(self.groups),
            "equation_numbers": inputs.specification.numbers if inputs.specification else frozenset(),
            "cost_groups": self.sections["costs"],
            "timings": self.sections["timings"],
        }

    @property
    def many(self) -> bool:
        """Return whether there are more runs than a plot or a table shows."""
        return len(self.inputs.runs) > MOST_COLUMNS

    def render_index(self, layout: Layout, *, plots: bool = True) -> str:
        """Return the first page, which is the only one where there is no other."""
        return self._render("page.html", layout, **(self._plots if plots else {}))

    @cached_property
    def _plots(self) -> dict[str, Any]:
        """Draw the rows of all runs."""
        return {
            "chart": charts.bound_use(self.inputs.runs),
            "size_chart": charts.error_by_size(self.inputs.runs),
            "use_by_size": charts.use_by_size(self.inputs.runs),
            "chart_legend": charts.legend(self.inputs.runs),
        }

    def render_all(self, layout: Layout) -> dict[str, str]:
        """Return every page of a folder."""
        found = {layout.index: self.render_index(layout, plots=not self.many)}  # each target's page has its own
        operations = [group.operation for group in self.groups if group.provided]
        operations += [one.operation for one in (*self.findings, *self.weaknesses)]
        for operation in dict.fromkeys(operations):
            page = layout.page(operation)
            found[page] = self._render("operation.html", layout.at(page), operation=operation)
        resting = by_equation(self.groups)
        for equation in self.inputs.specification.equations if self.inputs.specification else ():
            page = layout.page(equation.name, "equation")
            more = {"equation": equation, "resting": resting.get(equation.name, ())}
            found[page] = self._render("equation_page.html", layout.at(page), **more)
        found |= self._render_targets(layout) if len(self.inputs.runs) > 1 else {}
        for section in (name for name, content in self.sections.items() if content):
            page = layout.page(section)
            found[page] = self._render("section.html", layout.at(page), section=section)
        return found

    def _render_targets(self, layout: Layout) -> dict[str, str]:
        """Return a page for each of several runs, which is the index of a report on it alone."""
        pages = [(layout.page(run.label, "target"), run) for run in self.inputs.runs]
        alone = {page: replace(self.inputs, runs=[run], benchmarks=None, kills=None) for page, run in pages}
        return {page: _Report(inputs).render_index(layout.at(page)) for page, inputs in alone.items()}

    def _render(self, template: str, layout: Layout, **more: object) -> str:
        def place_of(run: Run, row: Result) -> str | None:
            """Return the address of a row's evidence: with its finding, or among known failures or errors."""
            if row.status is Status.KNOWN_FAIL:
                return layout.link(layout.index, "known")
            if row.status is Status.HARNESS_ERROR:
                return layout.link(layout.index, row_anchor(run, row))
            entry = self.places[run.label].get(row.key)
            return layout.link(layout.page(entry.operation), row_anchor(run, row)) if entry else None

        return environment().get_template(template).render(**self.given, **more, layout=layout, place_of=place_of)


@dataclass(frozen=True)
class Timings:
    """All that was timed."""

    scalings: Sequence[Scaling]
    regressions: Sequence[Regression]
    histories: Sequence[History]
    false_alarms: Sequence[Tries]
    found: Sequence[Tries]


def timings(benchmarks: Benchmarks | None) -> Timings | None:
    """Return the timings, failures first; None where nothing was timed."""
    if benchmarks is None or not (
        benchmarks.scalings or benchmarks.regressions or benchmarks.histories or benchmarks.gate
    ):
        return None
    return Timings(
        refuted_first(benchmarks.scalings),
        slower_first(benchmarks.regressions),
        sorted(benchmarks.histories, key=lambda one: -len(one.levels)),
        benchmarks.gate.false_alarms if benchmarks.gate else [],
        benchmarks.gate.found if benchmarks.gate else [],
    )

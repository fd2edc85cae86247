"""The report as one HTML page that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import jinja2

from veriformer.bench.document import Benchmarks
from veriformer.reports import charts, costs, equations, formatting
from veriformer.reports.equations import Specification
from veriformer.reports.findings import entries, remarks
from veriformer.reports.mathml import math, prose, statement
from veriformer.reports.matrix import matrix
from veriformer.reports.mutation_matrix import Kills
from veriformer.reports.runs import Run, label
from veriformer.reports.statuses import STATUS_STYLES
from veriformer.reports.timings import timings
from veriformer.reports.verdicts import State, Verdict, verdict
from veriformer.reports.violations import anchor, by_requirement, violations
from veriformer.spec.requirement import Requirement
from veriformer.spec.requirements import REQUIREMENTS
from veriformer.verify.results import VIOLATIONS, Results, Status


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
        """The verdict on each run."""
        return [verdict(run) for run in self.runs]


def headline(verdicts: Sequence[Verdict]) -> str:
    """All verdicts in one sentence: what holds and what does not."""
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
    """The page. The same inputs give the same bytes."""
    kills = inputs.kills
    return (
        _environment()
        .get_template("page.html")
        .render(
            runs=inputs.runs,
            verdicts=inputs.verdicts,
            found=sum(len(entries(run)) for run in inputs.runs),
            told=any(entries(run) or remarks(run) for run in inputs.runs),
            headline=headline(inputs.verdicts),
            groups=matrix(inputs.runs),
            violations=by_requirement(violations(inputs.runs)),
            shown_below=VIOLATIONS | {Status.HARNESS_ERROR},
            requirements=inputs.requirements,
            kills=kills,
            specification=inputs.specification,
            equation_numbers=inputs.specification.numbers if inputs.specification else frozenset(),
            benchmarks=inputs.benchmarks,
            cost_groups=costs.groups(inputs.benchmarks) if inputs.benchmarks else [],
            timings=timings(inputs.benchmarks),
            chart=charts.bound_use(inputs.runs),
            chart_legend=charts.legend(),
        )
    )


def render_run(results: Results) -> str:
    """The page of a single run."""
    return render(Inputs(runs=label([results])))


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("veriformer.reports"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.ChainableUndefined,
    )
    environment.filters |= {
        "math": math,
        "prose": prose,
        "statement": statement,
        "short": formatting.short,
        "grouped": formatting.grouped,
        "web": web_address,
    }
    environment.globals |= {
        "STATUS_STYLES": STATUS_STYLES,
        "entries": entries,
        "remarks": remarks,
        "anchor": anchor,
        "step_style": equations.step_style,
        "erratum_look": equations.erratum_look,
        "costs_sentence": costs.sentence,
        "cost_letters": costs.letters,
    }
    return environment


def web_address(link: str | None) -> str | None:
    """A link that may be followed: http or https, nothing that a browser would run."""
    try:
        return link if link and urlsplit(link).scheme in ("http", "https") else None
    except ValueError:
        return None

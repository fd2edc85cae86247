"""Equations on a terminal: the listing of all, and a derivation step by step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.progress import Progress
from rich.text import Text

from veriformer.spec.document import Verdicts, decided, summary
from veriformer.spec.equation import Equation, Erratum, Source, Step, Symbol
from veriformer.spec.proofs.prover import Verdict, prove_all
from veriformer.spec.sources import source_coverage

Lines = Iterable[tuple[int, Text]]
"""Lines of text with their indentation."""

_COLOURS = {"proved": "green", "confirmed": "cyan"}


def with_progress(equations: Sequence[Equation], *, jobs: int | None, cached: bool) -> dict[tuple[str, str], Verdict]:
    """Prove every step, with a progress bar where standard error is a terminal."""
    found: dict[tuple[str, str], Verdict] = {}
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("proving", total=sum(len(e.steps) for e in equations))
        for equation, step, verdict in prove_all(equations, jobs=jobs, cached=cached):
            found[equation.slug, step.slug] = verdict
            progress.advance(bar)
    return found


def listing(equations: Sequence[Equation], verdicts: Verdicts, *, in_full: bool) -> None:
    """Print the equations: one line per step, or, in full, every derivation as a person would follow it."""
    console = Console()
    for equation in equations:
        lines = _derivation(equation, verdicts) if in_full else _steps(equation, verdicts)
        for indent, line in [(0, _heading(equation, verdicts)), (4, Text(equation.statement)), *lines, (0, Text())]:
            _print(console, indent, line)
    steps = [verdicts[e.slug, s.slug].status for e in equations for s in e.steps]
    counts = ", ".join(f"{steps.count(status)} {status}" for status in dict.fromkeys(steps))
    errata = sum(len(e.errata) for e in equations)
    _print(console, 0, Text(f"{len(equations)} equations, {len(steps)} steps: {counts}; {errata} errata"))
    _print(console, 0, Text(_statements(equations)))


def _statements(equations: Sequence[Equation]) -> str:
    found = decided(equations)
    counts = ", ".join(f"{n} {verdict}" for verdict, n in source_coverage.counts(found).items() if n)
    return f"{len(found)} statements of the documents: {counts}" if found else "no statement of the documents"


def _print(console: Console, indent: int, line: Text) -> None:
    """Wrap within the indentation on a terminal; elsewhere one line stays one line."""
    if console.is_terminal:
        console.print(Padding(line, (0, 0, 0, indent)))
    else:
        console.print(Text(" " * indent) + line, soft_wrap=True)


def _heading(equation: Equation, verdicts: Verdicts) -> Text:
    status = summary(verdicts[equation.slug, s.slug] for s in equation.steps)
    return Text.assemble((f"({equation.label}) {equation.title}  ", "bold"), _status(status))


def _status(status: str) -> Text:
    return Text(status, _COLOURS.get(status, "bold red"))


def _scope(step: Step) -> str:
    return f"{step.scope}: {step.scope_detail}" if step.scope_detail else str(step.scope)


def _steps(equation: Equation, verdicts: Verdicts) -> Lines:
    width = max(len(s.slug) for s in equation.steps)
    for step in equation.steps:
        status = _status(verdicts[equation.slug, step.slug].status)
        yield 4, Text.assemble(status, f"  {step.slug:{width}}  ", (_scope(step), "dim"))


def _derivation(equation: Equation, verdicts: Verdicts) -> Lines:
    yield from _section("from", ((6, _source(s)) for s in equation.sources))
    yield from _section("where", ((6, _symbol(s)) for s in equation.symbols))
    yield from _section("if", ((6, Text(a.text)) for a in equation.assumptions))
    proofs = (_proof(i, s, verdicts[equation.slug, s.slug]) for i, s in enumerate(equation.steps, 1))
    yield from _section("then", (line for proof in proofs for line in proof))
    yield from _section("errata", (line for x in equation.errata for line in _erratum(x)))
    yield from _section("costs", ((6, Text(f"{name}: {cost()}")) for name, cost in equation.costs.items()))


def _section(title: str, lines: Lines) -> Lines:
    found = list(lines)
    return [(0, Text()), (4, Text(title, "underline")), *found] if found else []


def _source(s: Source) -> Text:
    return Text.assemble(f"document {s}", (f" of {source_coverage.titles()[s.document]}", "dim"))


def _symbol(s: Symbol) -> Text:
    return Text(f"{s.name} ∈ {s.space}: {s.meaning}{f' ({s.assumptions})' if s.assumptions else ''}")


def _proof(position: int, step: Step, verdict: Verdict) -> Lines:
    yield 6, Text.assemble(f"{position}. ", _status(verdict.status), f"  {step.claim}")
    yield 9, Text(f"{_scope(step)}; {verdict.detail}; {verdict.seconds:.2f} s [{step.slug}]", "dim")


def _erratum(x: Erratum) -> Lines:
    yield 6, Text.assemble((x.kind, "yellow"), f"  {x.slug} (document {x.source})")
    yield 9, Text(f"printed: {x.printed}")
    yield 9, Text(f"correct: {x.corrected}")
    yield 9, Text(str(x.counterexample()))

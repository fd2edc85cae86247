"""Equations on a terminal: the listing of all, and a derivation step by step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.text import Text

from veriformer.spec import derivation
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.document import Verdicts, decided, in_words, reach, reaches
from veriformer.spec.equation import ERRATUM_KINDS, Equation, Erratum, Scope, Source, Step, Symbol
from veriformer.spec.explanation import print_line
from veriformer.spec.formula_reach import formula_reach, reach_of
from veriformer.spec.proofs.prover import Verdict, prove_all
from veriformer.spec.sources import source_coverage
from veriformer.spec.unicode_text import in_sentence, unicode_text

Lines = Iterable[tuple[int, Text]]
"""Lines of text with their indentation."""

_COLOURS = {Scope.ALL.value: "green", Scope.ENUMERATED.value: "green", Scope.NUMERIC.value: "cyan"}


_SHOWN = 4
"""Identities of a step that are printed."""


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
        for indent, line in [
            (0, _heading(equation, verdicts)),
            (4, Text(unicode_text(equation.statement))),
            *lines,
            (0, Text()),
        ]:
            print_line(console, indent, line)
    slugs = {id(s): e.slug for e in equations for s in e.steps}
    steps = [s for e in equations for s in e.steps]
    counts = in_words(reaches(steps, lambda s: verdicts[slugs[id(s)], s.slug]))
    kinds = [x.kind for e in equations for x in e.errata]
    errata = ", ".join(f"{kinds.count(kind)} {kind}" for kind in ERRATUM_KINDS if kind in kinds)
    told = f"{len(kinds)} errata" + (f" ({errata})" if errata else "")
    print_line(console, 0, Text(f"{_counted(equations, 'equation')}, {_counted(steps, 'step')}: {counts}; {told}"))
    if not in_full:
        for told in _formulas(equations, verdicts):
            print_line(console, 0, Text(told))
    print_line(console, 0, Text(_statements(equations)))


def _counted(things: Sequence[Any], word: str) -> str:
    return f"{len(things)} {word}" + ("" if len(things) == 1 else "s")


def _formulas(equations: Sequence[Equation], verdicts: Verdicts) -> Iterator[str]:
    """Yield the number of formulas, and of gradients of formulas, that steps run, by the reach of those steps."""
    for numbered, words in ((True, "numbered equations"), (False, "equations without a number")):
        chosen = [e for e in equations if bool(e.number) is numbered and e.formula]
        if reached := {e.label: formula_reach(e, verdicts) for e in chosen}:
            yield f"Formulas of the {len(chosen)} {words}, run by steps: {_reached(reached)}"
    pullbacks = {e.vjp for e in equations if e.vjp}
    reached = {f.__name__: reach_of(f, equations, verdicts) for f in pullbacks}
    yield f"Vector-Jacobian products of {len(pullbacks)} formulas, run by steps: {_reached(reached)}"


def _reached(scopes: Mapping[str, Scope | None]) -> str:
    found = list(scopes.values())
    counts = [f"{found.count(scope)} {scope}" for scope in Scope if scope in found]
    none = sorted(name for name, scope in scopes.items() if scope is None)
    return ", ".join(counts + ([f"{len(none)} by no step ({', '.join(none)})"] if none else []))


def _statements(equations: Sequence[Equation]) -> str:
    found = decided(equations)
    counts = ", ".join(f"{n} {verdict}" for verdict, n in source_coverage.counts(found).items() if n)
    return f"{len(found)} statements of the documents: {counts}" if found else "no statement of the documents"


def _heading(equation: Equation, verdicts: Verdicts) -> Text:
    counts = reaches(equation.steps, lambda s: verdicts[equation.slug, s.slug])
    told = in_words(counts) if len(counts) > 1 else counts[0][0]
    return Text.assemble((f"({equation.label}) {equation.title}  ", "bold"), (told, _colour(counts[0][0])))


def _colour(word: str) -> str:
    return _COLOURS.get(word, "bold red")


def _reach(step: Step, verdict: Verdict) -> Text:
    word = reach(step, verdict)
    return Text(word, _colour(word))


def _steps(equation: Equation, verdicts: Verdicts) -> Lines:
    width = max(len(s.slug) for s in equation.steps)
    for step in equation.steps:
        word = _reach(step, verdicts[equation.slug, step.slug])
        yield 4, Text.assemble(word, f"  {step.slug:{width}}  ", (step.scope_detail, "dim"))


def _derivation(equation: Equation, verdicts: Verdicts) -> Lines:
    yield from _section("from", ((6, _source(s)) for s in equation.sources))
    yield from _section("literature", ((6, Text(paper)) for paper in derivation.literature(equation)))
    yield from _section("where", ((6, _symbol(s)) for s in equation.symbols))
    yield from _section("if", ((6, Text(a.text)) for a in equation.assumptions))
    proofs = (_proof(i, s, verdicts[equation.slug, s.slug]) for i, s in enumerate(equation.steps, 1))
    yield from _section("then", (line for proof in proofs for line in proof))
    yield from _section("for example", _example(equation))
    yield from _section("errata", (line for x in equation.errata for line in _erratum(x)))
    yield from _section("costs", ((6, _cost(name, cost())) for name, cost in equation.costs.items()))


def _example(equation: Equation) -> Lines:
    found = derivation.example(equation)
    if found is not None:
        arguments, value = found
        yield from ((6, Text(f"{name} = {x}")) for name, x in arguments.items())
        yield 6, Text(f"gives {value}")


def _cost(name: str, cost: Any) -> Text:
    return Text(f"{name}: {unicode_text(sp.latex(cost))}")


def _section(title: str, lines: Lines) -> Lines:
    found = list(lines)
    return [(0, Text()), (4, Text(title, "underline")), *found] if found else []


def _source(s: Source) -> Text:
    return Text.assemble(f"document {s}", (f" of {source_coverage.titles()[s.document]}", "dim"))


def _symbol(s: Symbol) -> Text:
    told = f"{unicode_text(s.name)} ∈ {unicode_text(s.space)}: {in_sentence(s.meaning)}"
    return Text(told + (f" ({in_sentence(s.assumptions)})" if s.assumptions else ""))


def _proof(position: int, step: Step, verdict: Verdict) -> Lines:
    detail = f" ({step.scope_detail})" if step.scope_detail else ""
    yield 6, Text.assemble(f"{position}. ", _reach(step, verdict), detail, f"  {in_sentence(step.claim)}")
    for name, what in derivation.starts_from(step):
        # A private name says nothing to who does not read the source.
        yield 9, Text(f"from {what}" if name.startswith("_") else f"from {name}: {what}", "dim")
    yield from ((9, Text(unicode_text(formula))) for formula in verdict.formulas[:_SHOWN])
    if len(verdict.formulas) > _SHOWN:
        yield 9, Text("and so on, for the other sizes and entries; --json has more of them", "dim")
    yield 9, Text(f"{verdict.detail}; {verdict.seconds:.2f} s [{step.slug}]", "dim")


def _erratum(x: Erratum) -> Lines:
    yield 6, Text.assemble((x.kind, "yellow"), f"  {x.slug} (document {x.source})")
    yield 9, Text(f"printed: {unicode_text(x.printed)}")
    yield 9, Text(f"{'otherwise' if x.kind == 'convention' else 'correct'}: {unicode_text(x.corrected)}")
    yield 9, Text(x.told)

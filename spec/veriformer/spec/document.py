"""The specification as plain data, for JSON and for reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from veriformer.spec import registry
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.equation import Equation, Erratum, Scope, Source, Step, Symbol
from veriformer.spec.proofs.prover import Verdict, prove_all
from veriformer.spec.sources import source_coverage

Verdicts = Mapping[tuple[str, str], Verdict]


def document(equations: Sequence[Equation], verdicts: Verdicts | None = None) -> dict[str, Any]:
    """Return these equations as JSON; steps are proved here unless their verdicts are given.

    `verdicts` maps (equation slug, step slug) to a verdict. The inventory lists the source statements that these
    equations decide, and with all equations also those that nothing decides.
    """
    if verdicts is None:
        verdicts = {(e.slug, s.slug): v for e, s, v in prove_all(equations)}
    return {
        "schema": "veriformer/spec/1",
        "documents": source_coverage.titles(),
        "equations": [_equation(e, verdicts) for e in equations],
        "inventory": [_item(i) for i in decided(equations)],
    }


def decided(equations: Sequence[Equation]) -> tuple[source_coverage.Item, ...]:
    """Return the source statements that these equations decide; with all of them, everything."""
    return source_coverage.decided_by(equations, everything=len(equations) == len(registry.equations()))


def _equation(e: Equation, verdicts: Verdicts) -> dict[str, Any]:
    return {
        "slug": e.slug,
        "number": e.number,
        "title": e.title,
        "statement": e.statement,
        "sources": [_source(s) for s in e.sources],
        "symbols": [_symbol(s) for s in e.symbols],
        "assumptions": [a.text for a in e.assumptions],
        "steps": [_step(s, verdicts[e.slug, s.slug]) for s in e.steps],
        "scope": dict(reaches(e.steps, lambda s: verdicts[e.slug, s.slug])),
        "errata": [_erratum(x) for x in e.errata],
        "costs": {name: sp.latex(sp.factor(cost())) for name, cost in e.costs.items()},
    }


def _source(s: Source) -> dict[str, Any]:
    return {"document": s.document, "section": s.section, "line": s.line}


def _item(i: source_coverage.Item) -> dict[str, Any]:
    statement = i.statement
    return {
        "id": i.id,
        **_source(statement.source),
        "column": statement.quoted[0].column,
        "quotation": statement.quotation,
        "left_out": list(statement.left_out),
        "places": [
            {"document": q.document, "line": q.line, "column": q.column, "quotation": q.words} for q in statement.quoted
        ],
        "kind": i.kind,
        "statement": statement.text,
        "verdict": statement.verdict,
        "scope": statement.scope or None,
        "decided_by": statement.decided_by or None,
        "reason": statement.why or None,
    }


def _symbol(s: Symbol) -> dict[str, str]:
    return {"name": s.name, "space": s.space, "meaning": s.meaning, "assumptions": s.assumptions}


def _step(s: Step, verdict: Verdict) -> dict[str, Any]:
    return {
        "slug": s.slug,
        "claim": s.claim,
        "scope": str(s.scope),
        "scope_detail": s.scope_detail,
        "status": verdict.status,
        "seconds": verdict.seconds,
        "detail": verdict.detail,
        "identities": list(verdict.identities),
    }


def _erratum(x: Erratum) -> dict[str, Any]:
    evidence = x.counterexample()
    return {
        "slug": x.slug,
        "kind": x.kind,
        "source": _source(x.source),
        "printed": x.printed,
        "corrected": x.corrected,
        "evidence": x.told,
        "refutes": evidence.refutes,
    }


def reach(step: Step, verdict: Verdict) -> str:
    """Return the step's scope where it holds, else the status of the verdict."""
    return str(step.scope) if verdict.holds else verdict.status


def reaches(steps: Iterable[Step], verdict_of: Callable[[Step], Verdict]) -> list[tuple[str, int]]:
    """Return the number of steps by reach, the worst first."""
    counts = Counter(reach(s, verdict_of(s)) for s in steps)
    return [(word, counts[word]) for word in _REACHES if counts[word]] or [("vacuous", 1)]


_REACHES = ("refuted", "vacuous", "unproved", Scope.NUMERIC.value, Scope.ENUMERATED.value, Scope.ALL.value)


def in_words(counts: Iterable[tuple[str, int]]) -> str:
    """Return counts as a phrase: "3 proved for all n, 1 confirmed numerically", the strongest scope first."""
    return ", ".join(f"{n} {word}" for word, n in reversed(list(counts)))

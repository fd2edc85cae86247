"""Explanation of an equation: its statement, its letters, what it assumes, its steps and its errata."""

from __future__ import annotations

from veriformer.spec.equation import Equation, Erratum, Symbol
from veriformer.spec.explanation import Explanation, Fact
from veriformer.spec.requirements import REQUIREMENTS
from veriformer.spec.sources import source_coverage


def explained(equation: Equation) -> Explanation:
    """Return what an equation says and rests on; nothing is proved for it."""
    titles = source_coverage.titles()
    return Explanation(
        kind="equation",
        name=equation.label,
        remark=equation.title,
        paragraphs=(f"${equation.statement}$",),
        facts=(
            Fact("where", [_symbol(symbol) for symbol in equation.symbols]),
            Fact("if", [assumption.text for assumption in equation.assumptions]),
            Fact("step", [step.claim for step in equation.steps]),
            Fact("erratum", [_erratum(erratum) for erratum in equation.errata]),
            Fact("printed in", [f"document {source} of {titles[source.document]}" for source in equation.sources]),
            Fact("required by", _requirements(equation), names="requirement"),
            Fact("proofs", [f"`veriformer spec {equation.label}` runs every step and shows its identities"]),
        ),
    )


def _requirements(equation: Equation) -> list[str]:
    return [one.slug for one in REQUIREMENTS if equation.number and equation.number in one.equations]


def _symbol(symbol: Symbol) -> str:
    told = rf"${symbol.name} \in {symbol.space}$: {symbol.meaning}"
    return f"{told} ({symbol.assumptions})" if symbol.assumptions else told


def _erratum(erratum: Erratum) -> str:
    instead = "otherwise" if erratum.kind == "convention" else "correct"
    return f"{erratum.kind}: printed ${erratum.printed}$, {instead} ${erratum.corrected}$ (document {erratum.source})"

"""Edits of our own source: what the operators make, where they apply, and that the package stays as it was."""

from __future__ import annotations

import ast
import sys

import pytest
import torch
from rich.console import Console

import veriformer.impl
from veriformer.verify.catalogue.selection import checks
from veriformer.verify.mutants import matrix as matrices
from veriformer.verify.mutants.cell import run_cell
from veriformer.verify.mutants.generic import generic_mutants, named, survivors
from veriformer.verify.mutants.generic.records import implementation, modules, resting_on, tree_of
from veriformer.verify.mutants.generic.sites import apply_edit, edits, sites
from veriformer.verify.mutants.matrix import MATRIX_PROFILE, cells, kill_matrix, validate
from veriformer.verify.mutants.terminal import show
from veriformer.verify.targets.loading import wrap


@pytest.mark.parametrize(
    ("source", "made"),
    [
        ("3", {"4", "2"}),
        ("0", {"1", "-1"}),
        ("0.5", {"1.0"}),
        ("True", {"False"}),
        ("a - b", {"b - a", "a", "a + b"}),
        ("a @ b", {"b @ a"}),
        ("a * b", {"a", "b"}),
        ("-1", {"0", "-2"}),
        ("-x", {"x"}),
        ("a < b", {"a <= b", "a > b"}),
        ("a and b", {"a or b"}),
        ("a if c else b", {"b if c else a"}),
        ("x.sum(1)", {"x.mean(1)"}),
        ("x.float()", {"x"}),
        ("upcast(x)", {"x"}),
        ("float(x)", set()),
        ("x.to(y.device)", set()),
        ("x.to(y.dtype)", {"x"}),
        ("f(x)", set()),
        ("'word'", set()),
    ],
)
def test_what_the_operators_make(source: str, made: set[str]) -> None:
    assert {ast.unparse(edit) for _, edit in edits(ast.parse(source, mode="eval").body)} == made


MODULE = '''
"""A module."""
def f(x: int = 1, *, y=-1):
    """A text with a 2."""
    if x > 3:
        raise_for("x", "4 or less", 5)
    def g():
        return x + y
    return g(zip(x, y.masked_fill(x, 0), strict=True))
'''


def test_only_what_computes_is_edited() -> None:
    found = list(sites("veriformer.impl.m", ast.parse(MODULE)))
    assert {site.identifier for site in found if site.operator == "constant"} == {"m:f:3 → 4", "m:f:3 → 2"}
    assert {site.function for site in found} == {"f", "f.g"}
    assert not [site for site in found if site.operator == "flag"]
    for site in found:
        source = ast.unparse(apply_edit(ast.parse(MODULE), site))
        assert source != ast.unparse(ast.parse(MODULE))
        assert "'4 or less', 5" in source


def test_every_edit_is_made_where_it_was_found() -> None:
    for module in modules()[:6]:
        original = ast.unparse(tree_of(module))
        for site in sites(module, tree_of(module)):
            assert ast.unparse(apply_edit(ast.parse(original), site)) != original, site.identifier


def test_the_package_stays_as_it_was() -> None:
    before = {name: module for name, module in sys.modules.items() if name.startswith("veriformer.impl")}
    mutant = next(m for m in generic_mutants() if m.site.module.endswith("layers.rms_norm"))
    built = mutant.build()
    after = {name: module for name, module in sys.modules.items() if name.startswith("veriformer.impl")}
    assert before == after
    assert sys.modules["veriformer"].impl is veriformer.impl
    assert built.rms_norm is not veriformer.impl.rms_norm  # type: ignore[attr-defined]
    assert torch.equal(veriformer.impl.rms_norm(torch.ones(2), eps=0.0), torch.ones(2))


def test_an_edit_of_a_formula_is_killed() -> None:
    mutant = next(m for m in generic_mutants() if m.site.function == "_RMSNorm.forward" and m.site.operator == "axis")
    assert cells(mutant)[-1].killed
    assert named(mutant.identifier) is mutant


def test_without_an_edit_nothing_is_killed() -> None:
    target = wrap(implementation(veriformer.impl, ("attention/tiled", "cached_attention")))
    assert target.operation("attention") is veriformer.impl.BACKENDS["tiled"]
    for slug in ("cached_attention.equation", "kv_cache.contract", "attention.equation"):
        (check,) = [check for check in checks() if check.requirement.slug == slug]
        assert run_cell("generic:none", target, check, "fp32", MATRIX_PROFILE, "slug").status == "pass"


def test_a_run_of_generic_mutants_is_written_as_the_schema_says() -> None:
    mutant = next(m for m in generic_mutants() if m.site.function == "_RMSNorm.forward")
    matrix = kill_matrix([mutant])
    validate(matrix.to_dict())
    assert matrix.generic == [mutant]
    assert not matrix.unexplained
    assert not matrix.outdated


def test_the_reason_of_a_survivor_that_is_killed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = next(m for m in generic_mutants() if m.site.function == "_RMSNorm.forward")
    matrix = kill_matrix([mutant])
    monkeypatch.setattr(matrices, "survivors", lambda: {mutant.identifier: "equivalent: not at all"})
    assert matrix.outdated == [mutant]
    out = Console(record=True, width=200)
    show(matrix, out)
    assert "REMOVE THE REASON" in out.export_text()


def test_what_rests_on_a_function_is_named_nearest_first() -> None:
    assert resting_on("veriformer.impl.layers.layer_norm", "normalize") == ("layer_norm", "transformer_block")
    assert resting_on("veriformer.impl.attention_backends.tiled", "_attend") == ("attention/tiled",)
    assert resting_on("veriformer.impl.precision", "upcast_half")[0] == "lm_head"
    assert len(resting_on("veriformer.impl.checks", "tensor")) == 3


def test_what_no_operation_rests_on_is_not_edited() -> None:
    assert resting_on("veriformer.impl.cache.caches", "DynamicCache") == ()
    assert not [m for m in generic_mutants() if m.site.function.startswith("DynamicCache")]


def test_survivors_that_are_listed_are_among_the_mutants_and_have_a_reason() -> None:
    assert set(survivors()) <= {mutant.identifier for mutant in generic_mutants()}
    for reason in survivors().values():
        assert reason.partition(":")[0] in ("equivalent", "gap", "refusal")

"""The smallest counterexample of a mutant is small, and its script finds the violation again."""

from dataclasses import replace

import pytest

from veriformer.verify.catalogue.selection import checks
from veriformer.verify.mutants import MUTANTS
from veriformer.verify.mutants.cell import run_cell
from veriformer.verify.mutants.matrix import MATRIX_PROFILE, KillMatrix
from veriformer.verify.mutants.mutation_run import with_smallest
from veriformer.verify.mutants.terminal import sentence
from veriformer.verify.targets.loading import load

pytestmark = pytest.mark.usefixtures("warm")


@pytest.fixture(scope="module")
def found():
    mutant = next(m for m in MUTANTS if "temperature_scale" in m.operations)
    name = f"mutant:{mutant.identifier}"
    few = [c for c in checks() if c.requirement.slug in ("temperature_scale.contract", "temperature_scale.equation")]
    before = [run_cell(name, load(name), check, mutant.dtypes[0], MATRIX_PROFILE, "slug") for check in few]
    return before, with_smallest(before, "slug")


def test_one_killing_cell_gets_its_counterexample(found):
    before, after = found
    (small,) = (cell for cell in after if cell.scalars is not None)
    assert small.killed
    assert 1 <= small.scalars <= 12
    assert small.script_status == 1
    assert [replace(cell, seconds=0, scalars=None, script_status=None) for cell in after] == [
        replace(cell, seconds=0) for cell in before
    ]


def test_a_script_that_finds_nothing_is_told(found):
    matrix = KillMatrix(MATRIX_PROFILE, "slug", tuple(found[1]))
    assert not matrix.unreproduced
    assert f"of {matrix.counterexamples[0].scalars} numbers (median)" in sentence(matrix)
    silent = KillMatrix(MATRIX_PROFILE, "slug", tuple(replace(cell, script_status=0) for cell in found[1]))
    assert silent.unreproduced == silent.counterexamples != []
    assert "0 of 1 scripts reproduce" in sentence(silent)


def test_survivors_have_none():
    assert with_smallest([], "slug") == []

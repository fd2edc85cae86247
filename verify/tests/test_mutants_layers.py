"""Known bugs of layers and positions: each is killed by a requirement of every operation that carries it."""

from __future__ import annotations

import pytest

from tests.test_mutants_faults import ALONE, CASES, DROPOUT
from veriformer.verify import load
from veriformer.verify.catalogue.selection import checks
from veriformer.verify.mutants import MUTANTS
from veriformer.verify.mutants.cell import run_cell
from veriformer.verify.mutants.matrix import MATRIX_PROFILE
from veriformer.verify.targets.kinds import MODELS

MINE = [mutant for mutant in MUTANTS if mutant.identifier not in {*CASES, *DROPOUT, *ALONE}]
"""Mutants that the other tests have not tried on triggers of their own. Whole models: test_models_red.py."""


@pytest.mark.whole
@pytest.mark.parametrize("mutant", MINE, ids=lambda mutant: mutant.identifier)
def test_a_mutant_is_killed_on_every_operation_that_carries_it(mutant):
    name = f"mutant:{mutant.identifier}"
    target = load(name)
    for operation in set(mutant.operations) - set(MODELS):
        turns = (
            (check, dtype)
            for dtype in mutant.dtypes
            for check in checks()
            if check.operation == operation and dtype in check.dtypes
        )
        cells = (run_cell(name, target, check, dtype, MATRIX_PROFILE, "slug") for check, dtype in turns)
        assert any(cell.killed for cell in cells), operation

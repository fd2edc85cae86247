"""The README says what there is."""

from __future__ import annotations

import re
from pathlib import Path

from veriformer.verify.catalogue.selection import checks

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def test_the_contract_of_the_readme_names_every_operation_and_nothing_else() -> None:
    contract = README[README.index("## The contract") : README.index("Equation numbers are")]
    rows = [line for line in contract.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`([a-z0-9_]+)[`(]", row)}
    assert named == {check.operation for check in checks()}

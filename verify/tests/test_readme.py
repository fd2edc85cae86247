"""The README says what there is."""

from __future__ import annotations

import re
from pathlib import Path

from veriformer.verify.contract.table import table
from veriformer.verify.targets.model_kinds import OPERATIONS as MODELS

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
CONTRACT = README[README.index("## The contract") : README.index("## A Transformer to read")]


def test_the_contract_of_the_readme_is_that_of_the_signatures() -> None:
    head, _, rest = CONTRACT.partition("\n\n|")
    shown, _, models = f"|{rest}".partition("\n\n| whole models | |\n")
    assert shown == table(), "replace the tables by what python -m veriformer.verify.contract.table prints"
    assert tuple(re.findall(r"`([a-z0-9_]+)`", models.splitlines()[1])) == MODELS
    assert head.startswith("## The contract")

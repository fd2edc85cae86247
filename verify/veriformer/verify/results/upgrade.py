"""Results files of version 1, which knew no weights, as those of version 2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from veriformer.spec.requirements import REQUIREMENTS

VERSION_1 = "veriformer/results/1"


def from_version_1(document: Mapping[str, Any], schema: str) -> dict[str, Any]:
    """Return a run in the schema of that name. Every demand counted as a violation then, so it was a strict run."""
    weights = {requirement.slug: requirement.weight.value for requirement in REQUIREMENTS}
    rows = [{**row, "weight": weights.get(row["requirement"]), "finding": None} for row in document["results"]]
    return {**document, "schema": schema, "strict": True, "domain": {}, "findings": [], "results": rows}

"""State kept from one campaign to the next, beside Hypothesis' own database: one JSON file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from veriformer.verify.engine.campaign.plan import CampaignError
from veriformer.verify.engine.campaign.power import Arm
from veriformer.verify.results import write_json

_SCHEMA = "veriformer/campaign-state/1"


@dataclass
class State:
    """campaigns: how many there have been. findings: ids that the last one ended with, by target."""

    arms: dict[str, Arm] = field(default_factory=dict)
    campaigns: int = 0
    findings: dict[str, list[str]] = field(default_factory=dict)


def read(folder: Path) -> State:
    """Return the state that earlier campaigns left, empty where there was none. Raises CampaignError."""
    path = folder / "campaign.json"
    if not path.is_file():
        return State()
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["schema"] != _SCHEMA:
            raise ValueError(f"schema {document['schema']!r}")
        arms = [Arm.from_dict(entry) for entry in document["arms"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CampaignError(f"{path}: expected what a campaign has left ({_SCHEMA}): {error}") from error
    return State({arm.name: arm for arm in arms}, document["campaigns"], document["findings"])


def write(folder: Path, state: State, arms: Sequence[Arm]) -> None:
    """Keep what is known now; rows that this campaign was not about stay as they were."""
    every = {**state.arms, **{arm.name: arm for arm in arms}}
    document = {
        "schema": _SCHEMA,
        "campaigns": state.campaigns,
        "findings": state.findings,
        "arms": [arm.to_dict() for arm in every.values()],
    }
    write_json(document, folder / "campaign.json")

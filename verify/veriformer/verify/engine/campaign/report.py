"""Report of a campaign: a JSON document, and the same in Markdown."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from veriformer.verify.engine.campaign.power import CONFIDENCE, Arm
from veriformer.verify.engine.campaign.run import Ran, by_operation, nearest
from veriformer.verify.results import VIOLATIONS, Status, json_safe

SCHEMA_NAME = "veriformer/campaign/1"
NEAREST = 10


def document(ran: Ran) -> dict[str, Any]:
    """Return the results of a campaign as JSON, valid against ``schema/campaign-1.json``."""
    whole: dict[str, Any] = json_safe(
        {
            "schema": SCHEMA_NAME,
            "targets": list(ran.campaign.targets),
            "seed": ran.seed,
            "started": ran.started.isoformat(timespec="seconds"),
            "duration_s": max((results.duration_s for results in ran.results.values()), default=0.0),
            "stopped": ran.stopped,
            "confidence": CONFIDENCE,
            "replayed": ran.replayed,
            "rows": [_row(arm, ran) for arm in ran.arms if arm.turns],
            "operations": [
                _operation(plan, name, arms) for (plan, name), arms in by_operation(ran).items() if _any(arms)
            ],
            "nearest": [
                {"plan": arm.plan, "row": arm.row, "ratio": arm.nearest}
                for arm in nearest(ran.arms, NEAREST)
                if arm.nearest
            ],
            "findings": {
                name: [
                    {**finding.to_dict(), "new": finding.id in ran.new.get(name, [])} for finding in results.findings
                ]
                for name, results in ran.results.items()
            },
            "gone": ran.gone,
            "ended_waivers": ran.ended_waivers,
        }
    )
    return whole


def violated(ran: Ran) -> bool:
    """Return whether any row violates its requirement."""
    return any(row.status in VIOLATIONS for results in ran.results.values() for row in results.results)


def markdown(ran: Ran) -> str:
    """Return the report in Markdown."""
    found = document(ran)
    examples = sum(arm.independent + arm.directed for arm in ran.arms)
    lines = [
        "# Campaign",
        "",
        f"{', '.join(ran.campaign.targets)}: {found['duration_s'] / 3600:.2f} h, "
        f"{sum(bool(arm.turns) for arm in ran.arms)} rows, {examples} effective examples in all campaigns so far, "
        f"{ran.replayed} replayed; seed {ran.seed}."
        + (f" Stopped before its time: {ran.stopped}." if ran.stopped else ""),
        "",
        "## Findings",
        "",
        *_findings(found),
        *(f"- gone since the last campaign, in {name}: {', '.join(ids)}" for name, ids in ran.gone.items() if ids),
        *(f"- a waiver has ended: {text}" for text in ran.ended_waivers),
        *(f"- the suite itself failed on {key}: {text.splitlines()[-1]}" for key, text in _errors(ran)),
        "",
        "## What was exercised, and what may have been missed",
        "",
        f"Of each operation: effective independent examples, and the share of such examples that may fail without "
        f"having been met, at {CONFIDENCE:.0%} confidence, in all its rows together and in the row known least.",
        "",
        "| plan | operation | examples | directed | may be missed | in a row, at most | nearest |",
        "|---|---|--:|--:|--:|--:|--:|",
        *(
            f"| {one['plan']} | {one['operation']} | {one['independent']} | {one['directed']} | {one['missed']:.1e} "
            f"| {one['missed_in_a_row']:.1e} | {one['nearest']:.2g} |"
            for one in found["operations"]
        ),
        "",
        "## Nearest to their bounds",
        "",
        *(f"- {one['ratio']:.3g}  {one['row']} ({one['plan']})" for one in found["nearest"]),
        "",
    ]
    return "\n".join(lines)


def _findings(found: Mapping[str, Any]) -> list[str]:
    lines = [
        f"- {'new: ' if finding['new'] else ''}{finding['weight']}: {finding['what']}"
        + (f" ({finding['when']})" if finding["when"] else "")
        + f" [{name}]"
        for name, findings in found["findings"].items()
        for finding in findings
    ]
    return lines or ["- none"]


def _errors(ran: Ran) -> list[tuple[str, str]]:
    return [
        (row.key, row.message or "")
        for results in ran.results.values()
        for row in results.results
        if row.status is Status.HARNESS_ERROR
    ]


def invalid(ran: Ran) -> bool:
    """Return whether the suite itself failed on a row."""
    return bool(_errors(ran))


def _row(arm: Arm, ran: Ran) -> dict[str, Any]:
    return {
        "plan": arm.plan,
        "row": arm.row,
        "status": arm.status.value if arm.status else None,
        "independent": arm.independent,
        "this_campaign": arm.independent - ran.before.get(arm.name, 0),
        "directed": arm.directed,
        "covered": len(arm.once) + len(arm.more),
        "unseen": arm.unseen,
        "seconds": round(arm.seconds, 3),
        "nearest": arm.nearest,
        "missed": arm.missed,
    }


def _any(arms: list[Arm]) -> bool:
    return any(arm.independent for arm in arms)


def _operation(plan: str, name: str, arms: list[Arm]) -> dict[str, Any]:
    asked = [arm for arm in arms if arm.independent]
    together = Arm(plan, name, independent=sum(a.independent for a in asked), failed=sum(a.failed for a in asked))
    return {
        "plan": plan,
        "operation": name,
        "independent": together.independent,
        "directed": sum(arm.directed for arm in arms),
        "missed": together.missed,
        "missed_in_a_row": max(arm.missed for arm in asked),
        "nearest": max(arm.nearest for arm in arms),
    }


@cache
def schema() -> dict[str, Any]:
    """Return the JSON Schema of a campaign's results."""
    text = resources.files("veriformer.verify").joinpath("schema/campaign-1.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def validate(found: Mapping[str, Any]) -> None:
    """Raise ValueError that names the first place where a document breaks the schema."""
    import jsonschema

    first = next(jsonschema.Draft202012Validator(schema()).iter_errors(found), None)
    if first is not None:
        raise ValueError(f"campaign: {'/'.join(map(str, first.path)) or 'the document'}: {first.message}")

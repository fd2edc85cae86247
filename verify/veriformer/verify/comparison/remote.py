"""A comparison on a worker of a Dask scheduler: where its device is."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from veriformer.verify.comparison import compare
from veriformer.verify.comparison.record import Comparison
from veriformer.verify.results import Result, json_safe
from veriformer.verify.results.finding import Finding
from veriformer.verify.targets.error import TargetError
from veriformer.verify.targets.files import place_of, sources
from veriformer.workers.controller import Controller
from veriformer.workers.files import read
from veriformer.workers.session import ClusterError, Item, Outcome, Session
from veriformer.workers.versions import versions

_SIDES = ("reference", "candidate", "inputs")
_SLACK_S = 600.0
"""Beyond the time after which nothing new is begun, until the comparison is ended from outside."""


class Comparing:
    """Compares where it is made; an item is anything. there: the words for both, and the inputs, as they lie there."""

    def __init__(self, payload: Mapping[str, Any]) -> None:
        self.payload = payload

    def run(self, item: str, extra: Any) -> dict[str, Any]:
        """Compare and return the result, with the paths of this machine, and those that they stand for there."""
        words = {side: _absolute(word) for side, word in self.payload["there"].items()}
        asked = {"device": self.payload["device"], "seconds": self.payload["seconds"]}
        try:
            found = compare(words["reference"], words["candidate"], inputs=words.get("inputs"), **asked)
        except TargetError as error:
            return {"refused": str(error), "paths": words}
        whole = {
            **vars(found),
            "findings": [one.to_dict() for one in found.findings],
            "rows": [row.to_dict() for row in found.rows],
        }
        return {"found": json_safe(whole), "paths": words}


def compare_there(
    reference: str,
    candidate: str,
    *,
    inputs: str | None,
    device: str,
    seconds: float,
    scheduler: str,
    files: Sequence[Path] = (),
    say: Callable[[str], None] = lambda text: None,
) -> Comparison:
    """Compare on a Dask worker. Raises TargetError; ClusterError where no worker can do it."""
    words = {side: word for side, word in zip(_SIDES, (reference, candidate, inputs), strict=True) if word is not None}
    there, shipped = {}, read(files)
    for side, word in words.items():
        there[side], mine = _parcel(side, word)
        shipped.update(mine)
    payload = {"there": there, "device": device, "seconds": seconds}
    work = Session(work=f"{__name__}:Comparing", payload=payload, files=shipped, versions=versions())
    told: list[Outcome] = []
    with Controller(scheduler, work, say=say) as side_here:
        resources = {} if device == "cpu" else {"GPU": 1.0}
        if resources and not any(offer.get("GPU") for offer in side_here.resources):
            raise ClusterError(f"--device {device}: no worker offers a GPU; start one with --resources GPU=1")
        item = Item(name="comparison", limit_s=seconds + _SLACK_S, resources=resources)
        side_here.run([item], lambda _, outcome: told.append(outcome))
    if told[0].value is None:
        raise ClusterError(f"the comparison came to no end: {told[0].error or 'its process ended with it'}")
    return _here(told[0].value, words)


def _parcel(side: str, word: str) -> tuple[str, dict[str, bytes]]:
    """Return a target's word on the worker, and its files.

    A path's files go to a folder of their own, since two may have one name.
    """
    place = place_of(word)
    if not place.endswith(".py"):
        return word, sources(word)
    attribute = word[len(place) :]
    return f"{side}/{Path(place).name}{attribute}", {f"{side}/{name}": text for name, text in sources(word).items()}


def _absolute(word: str) -> str:
    place, colon, attribute = word.partition(":")
    return f"{Path(place).resolve()}{colon}{attribute}" if place.endswith(".py") else word


def _here(value: Mapping[str, Any], words: Mapping[str, str]) -> Comparison:
    """Return the worker's comparison, its paths replaced by those of this machine."""
    text = json.dumps(value.get("found", value.get("refused")))
    for side, word in words.items():
        mine, its = (place_of(name) for name in (_absolute(word), value["paths"][side]))
        text = text.replace(json.dumps(its)[1:-1], json.dumps(mine)[1:-1])
    found = json.loads(text)
    if "refused" in value:
        raise TargetError(found)
    comparison = Comparison(**{**found, "findings": [], "rows": []})
    return replace(
        comparison,
        reference=words["reference"],
        candidate=words["candidate"],
        findings=[Finding.from_dict(one) for one in found["findings"]],
        rows=[Result.from_dict(one) for one in found["rows"]],
    )

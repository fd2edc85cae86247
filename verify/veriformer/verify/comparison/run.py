"""The whole of a comparison: prepare, run the candidate before and after the reference, judge, confirm."""

from __future__ import annotations

import inspect
import time
from datetime import UTC, datetime
from pathlib import Path

from veriformer.verify.comparison import chance
from veriformer.verify.comparison.confirmation import confirm, look_closer
from veriformer.verify.comparison.judgement import Observed, take
from veriformer.verify.comparison.session import Session
from veriformer.verify.comparison.subject import Prepared
from veriformer.verify.operations.models.noise import ERROR_RATE
from veriformer.verify.targets.error import TargetError


def word(thing: object) -> str:
    """Return the word for a target: itself, or file and name of a function or class that can be imported."""
    if isinstance(thing, str | Path):
        return str(thing)
    name = getattr(thing, "__qualname__", "")
    file = inspect.getsourcefile(thing) if inspect.isfunction(thing) or inspect.isclass(thing) else None
    if not file or not name or "<" in name:
        raise TargetError(f"{thing!r}: expected a file, a name (pkg.mod:thing), or a function or class of a module")
    return f"{file}:{name}"


def observe(session: Session, reference: str, candidate: str, inputs: str | None, seconds: float) -> Observed:
    """Run both and judge what the candidate gives. Raises TargetError for what cannot be loaded."""
    began = time.monotonic()
    started = datetime.now(UTC).isoformat(timespec="seconds")

    def left(share: float) -> float:
        return max(2.0, share * (seconds - (time.monotonic() - began)))

    folder, known = session.prepare(reference, inputs, left(0.3))
    found = Observed(reference, candidate, inputs, session.device, folder, known, started=started)
    names: list[str] = known["cases"]
    if not names:
        found.why = known["why"]
        return found
    found.cases = {name: Prepared.load(folder, name, "cpu").case for name in names}
    stateful = known["stateful"]
    chances = ["given"] if known["random"] else []
    judged = [name for name in names if not (known["random"] and found.cases[name].mode == "given")]
    first = session.candidate(candidate, folder, judged, left(0.4), stateful=stateful, moments=chances)
    if first.found.get("note"):  # weights cannot be handed over: both have those of the same seed
        folder, known = session.prepare(reference, inputs, left(0.3), undrawn=True)
        found.folder, found.prepared, names = folder, known, known["cases"]
        found.cases = {name: Prepared.load(folder, name, "cpu").case for name in names}
        judged = [name for name in names if not (known["random"] and found.cases[name].mode == "given")]
        first = session.candidate(candidate, folder, judged, left(0.4), stateful=stateful, moments=chances)
    done = session.evaluate(reference, folder, judged, left(0.6), stateful=stateful, moments=chances)
    found.references = {name: record for name in judged if (record := done.record(name)) is not None}
    mine = done.record("given.moments")
    if chances and "given" in first.moments and mine is not None:
        found.chances = chance.differences(mine, first.moments["given"], ERROR_RATE)
        found.raised = "" if "error" in mine else first.moments["given"].get("error", "")
    known_cases = [name for name in judged if name in found.references]
    histories = _histories(found)
    second = session.candidate(
        candidate, folder, known_cases[::-1], left(0.5), stateful=stateful, fill=True, histories=histories
    )
    for process, ran in (("first", first), ("second", second)):
        take(found, process, ran)
    look_closer(session, found, left(0.4))
    found.untried = [name for name in judged if name not in first.records or name not in found.references]
    confirm(session, found, began + seconds)
    found.seconds = time.monotonic() - began
    return found


def _histories(found: Observed) -> list[str] | None:
    pairs = (("other", "other again"), ("small", "exchanged"), ("given", "given again"))
    return next(([a, b] for a, b in pairs if a in found.references and b in found.references), None)

"""The prover: a step holds if each of its identities does, and a verdict is kept as long as its text stands."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

from veriformer.spec.equation import Equation, Identities, Scope, Step
from veriformer.spec.proofs import proof_cache
from veriformer.spec.proofs.provenance import at_letters, plain, restated

_HELD = ("proved", "confirmed")


@dataclass(frozen=True)
class Verdict:
    """Verdict of the prover on a step.

    status: "proved"; "confirmed" (a numerical check that came out right); "refuted" (a point shows that it is false);
    "unproved" (neither proved nor refuted); "vacuous" (it says nothing: no identity, or only
    restatements, whose two sides are one expression from one place). identities: the first of them, written out;
    formulas: the same in LaTeX. at_letters: the functions that computed a side on arrays of any length.
    """

    status: str
    seconds: float
    detail: str
    identities: tuple[str, ...] = ()
    formulas: tuple[str, ...] = ()
    at_letters: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """True if the step may be relied upon, as far as its scope reaches."""
        return self.status in _HELD


def prove(step: Step, *, cached: bool = True) -> Verdict:
    """Prove a step, or look its verdict up: verdicts are keyed by the text of the modules that the step rests on."""
    if cached and (known := _known(step)) is not None:
        return known
    start = time.perf_counter()
    judged: list[tuple[Any, Any]] = []
    ran: set[str] = set()
    status, detail = _judge(step, judged, ran)
    written = [_told(left, right) for left, right in judged[:_WRITTEN]]
    seconds = round(time.perf_counter() - start, 3)
    shown = tuple(i for i, _ in written), tuple(f for _, f in written)
    verdict = Verdict(status, seconds, detail, *shown, tuple(sorted(ran)))
    if cached:
        proof_cache.store(step, asdict(verdict))
    return verdict


def holds(step: Step) -> bool:
    """Return whether a step is proved or confirmed; its identities are not written out, which takes longer than to
    refute.
    """
    status, _ = _judge(step, [], set())
    return status in _HELD


def _known(step: Step) -> Verdict | None:
    with suppress(TypeError):  # a record of other fields is no verdict
        known = Verdict(**(proof_cache.load(step) or {}))
        identities, formulas, ran = map(tuple, (known.identities, known.formulas, known.at_letters))
        return replace(known, identities=identities, formulas=formulas, at_letters=ran)
    return None


_WRITTEN = 20
_LONGEST = 200


def _told(left: Any, right: Any) -> tuple[str, str]:
    """Return the identity in SymPy's notation and in LaTeX; a side that is too long is given as its number of
    operations.
    """
    from veriformer.spec.proofs.readable import in_latex, readable

    sizes = [(readable(e), e.count_ops()) for e in (left, right)]
    notation = " = ".join(str(e) if n <= _LONGEST else f"({n} operations)" for e, n in sizes)
    shown = " = ".join(in_latex(e) if n <= _LONGEST else rf"\text{{({n} operations)}}" for e, n in sizes)
    return notation, shown


def _judge(step: Step, judged: list[tuple[Any, Any]], ran: set[str]) -> tuple[str, str]:
    """Return status and detail of a step.

    The sides of each examined identity, and the functions that computed one of them on arrays of any length, are added
    to ``judged`` and ``ran``.
    """
    from veriformer.spec.proofs.algebra import is_identically_zero
    from veriformer.spec.proofs.counterexample import numeric_counterexample

    count, trivial = 0, 0
    for first, second in step.identity():
        count += 1
        left, right = plain(first), plain(second)
        judged.append((left, right))
        if left == right:
            trivial += restated(first, second)
        elif (point := numeric_counterexample(left, right)) is not None:
            return "refuted", f"identity {count}: {point}"
        elif not is_identically_zero(left - right):
            return "unproved", f"identity {count}: no proof found of {left} = {right}"[:400]
        ran |= at_letters(first, second)
    if count == trivial:
        return "vacuous", "no identity" if count == 0 else "both sides are one expression from one place"
    detail = f"{count} identit{'y' if count == 1 else 'ies'}"
    if trivial:
        detail += f", {trivial} of them a restatement"
    return "confirmed" if step.scope is Scope.NUMERIC else "proved", detail


def sabotaged(step: Step) -> Iterator[Step]:
    """Yield false variants of the step, one identity at a time: its right-hand side negated, doubled, or shifted by
    one.

    Zero is neither negated nor doubled, in disguise or not. A prover that accepts any of these proves nothing.
    """
    from veriformer.spec.proofs.counterexample import numeric_counterexample

    for k, (left, right) in enumerate((plain(a), plain(b)) for a, b in step.identity()):
        variants = {"shifted": right + 1}
        if numeric_counterexample(right, 0) is not None:
            variants |= {"negated": -right, "doubled": 2 * right}
        for name, mutated in variants.items():
            yield replace(step, slug=f"{step.slug}:{k}:{name}", identity=_only(left, mutated))


def _only(left: Any, right: Any) -> Callable[[], Identities]:
    return lambda: [(left, right)]


def prove_all(
    equations: Sequence[Equation], *, jobs: int | None = None, cached: bool = True
) -> Iterator[tuple[Equation, Step, Verdict]]:
    """Prove every step of the equations, in parallel processes (as many as there are cores), yielding as they end."""
    unknown = []
    for equation, step in [(e, s) for e in equations for s in e.steps]:
        if cached and (known := _known(step)) is not None:
            yield equation, step, known
        else:
            unknown.append((equation, step))
    jobs = min(jobs or os.cpu_count() or 1, len(unknown))
    if jobs < 2:
        yield from ((e, s, prove(s, cached=cached)) for e, s in unknown)
        return
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        futures = {pool.submit(_prove_named, e.slug, s.slug, cached): (e, s) for e, s in unknown}
        for future in as_completed(futures):
            yield (*futures[future], future.result())


def _prove_named(equation: str, step: str, cached: bool) -> Verdict:
    from veriformer.spec.registry import equations

    steps = {(e.slug, s.slug): s for e in equations() for s in e.steps}
    return prove(steps[equation, step], cached=cached)

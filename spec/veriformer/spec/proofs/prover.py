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


@dataclass(frozen=True)
class Verdict:
    """What the prover found of a step.

    status: "proved"; "confirmed" (a numerical check that came out right); "refuted" (a point shows that it is false);
    "unproved" (neither proved nor refuted); "vacuous" (it says nothing: no identity, or only x = x).
    """

    status: str
    seconds: float
    detail: str

    @property
    def holds(self) -> bool:
        """Whether the step may be relied upon, as far as its scope reaches."""
        return self.status in ("proved", "confirmed")


def prove(step: Step, *, cached: bool = True) -> Verdict:
    """Prove a step, or look its verdict up: verdicts are keyed by the text of the modules that the step rests on."""
    if cached and (known := _known(step)) is not None:
        return known
    start = time.perf_counter()
    status, detail = _judge(step)
    verdict = Verdict(status, round(time.perf_counter() - start, 3), detail)
    if cached:
        proof_cache.store(step, asdict(verdict))
    return verdict


def _known(step: Step) -> Verdict | None:
    with suppress(TypeError):  # a record of other fields is no verdict
        return Verdict(**(proof_cache.load(step) or {}))
    return None


def _judge(step: Step) -> tuple[str, str]:
    from veriformer.spec.proofs.algebra import is_identically_zero, numeric_counterexample

    count, trivial = 0, 0
    for left, right in step.identity():
        count += 1
        if left == right:
            trivial += 1
        elif (point := numeric_counterexample(left, right)) is not None:
            return "refuted", f"identity {count}: {point}"
        elif not is_identically_zero(left - right):
            return "unproved", f"identity {count}: no proof found of {left} = {right}"[:400]
    if count == trivial:
        return "vacuous", "no identity" if count == 0 else "both sides are the same expression"
    return "confirmed" if step.scope is Scope.NUMERIC else "proved", f"{count} identit{'y' if count == 1 else 'ies'}"


def sabotaged(step: Step) -> Iterator[Step]:
    """False variants of the step, one identity at a time: its right-hand side negated, doubled, or shifted by one.

    Zero is neither negated nor doubled, in disguise or not. A prover that accepts any of these proves nothing.
    """
    from veriformer.spec.proofs.algebra import numeric_counterexample

    for k, (left, right) in enumerate(step.identity()):
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

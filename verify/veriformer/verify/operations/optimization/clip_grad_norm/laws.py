"""Laws of clipping by the global norm."""

from __future__ import annotations

import math
from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.spec.arithmetic import FORMATS, Float, Format, RunningError
from veriformer.verify.contract import dtypes
from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.outcome import Outcome
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import agrees, has_form
from veriformer.verify.laws.equality import constant, equal, scale_bound
from veriformer.verify.laws.family import check
from veriformer.verify.operations.optimization.clip_grad_norm.record import (
    CLIP_GRAD_NORM,
    EPSILON,
    draw_grads,
    draw_share,
    norm_of,
)
from veriformer.verify.strategies import choice, sizes, values


def _some_grads(trial: Trial) -> tuple[list[torch.Tensor], float]:
    """Draw a list of gradients that are not all zero, and their norm."""
    grads = draw_grads(trial)
    if not norm_of(grads):
        grads[0] = grads[0] + 1.0
    trial.assume(any(bool(g.ne(0).any()) for g in grads))
    return grads, norm_of(grads)


def _items(outcome: Outcome, arguments: Arguments) -> list[Any]:
    return [outcome.item(0, i) for i in range(len(arguments["grads"]))]


def flattened(*parts: torch.Tensor) -> torch.Tensor:
    """Return all entries of several tensors in one vector of float64."""
    return torch.cat([part.double().reshape(-1) for part in parts])


def cross_ratio(clipped: torch.Tensor, given: torch.Tensor) -> torch.Tensor:
    """Return clipped · ‖given‖² − ⟨clipped, given⟩ given, over ‖given‖²: 0 where the direction is kept."""
    return clipped - given * ((clipped @ given) / (given @ given))


def _direction(trial: Trial) -> None:
    grads, norm = _some_grads(trial)
    share = trial.draw(choice(0.5, 0.01, 0.9))
    arguments = {"grads": grads, "max_norm": share * norm}
    references = CLIP_GRAD_NORM.exact(trial, arguments, use_exact_oracle=False)[:-1]
    outcome = trial.call(arguments)
    clipped = trial.observe(flattened, *_items(outcome, arguments))
    given = trial.observe(flattened, *[constant(g) for g in grads])
    error = np.concatenate([r.bound.reshape(-1) for r in references])
    g = np.abs(given.value.numpy())
    sideways = float(scale_bound(error, g).sum()) / float(g @ g)
    bound = (error + scale_bound(np.full_like(g, sideways), g)) * (1 + 2.0**-40) + len(g) * 2.0**-50 * share * g
    kept = trial.observe(cross_ratio, clipped, given)
    trial.assert_within_bound(
        kept, Reference(np.zeros_like(bound), bound, scale=share * float(g.max()), constant=True), "direction"
    )
    ahead = bool(clipped.value @ given.value > 0)
    trial.assert_true(
        ahead, "the clipped gradients do not point ahead", f"bool({clipped.expression} @ {given.expression} > 0)"
    )


def length(x: torch.Tensor) -> torch.Tensor:
    """Return the Euclidean norm."""
    return x.square().sum().sqrt()


def _norm_bound(trial: Trial) -> None:
    grads, norm = _some_grads(trial)
    share = draw_share(trial)
    arguments = {"grads": grads, "max_norm": share * norm}
    references = CLIP_GRAD_NORM.exact(trial, arguments, use_exact_oracle=False)
    outcome = trial.call(arguments)
    clipped = trial.observe(flattened, *_items(outcome, arguments))
    error = np.concatenate([r.bound.reshape(-1) for r in references[:-1]])
    exact = np.concatenate([r.exact.reshape(-1) for r in references[:-1]])
    wanted = min(1.0, share) * norm
    added = EPSILON if trial.claims.deviates("clip_grad_norm.denominator") else 0.0
    wanted = float(np.linalg.norm(exact)) if added else wanted
    bound = float(np.linalg.norm(error)) * (1 + 2.0**-40) + len(exact) * 2.0**-50 * wanted
    law = Reference(np.asarray(wanted), np.asarray(bound))
    trial.assert_within_bound(trial.observe(length, clipped), law, "the norm after clipping")


def _identity(trial: Trial) -> None:
    grads, norm = _some_grads(trial)
    maximum = trial.draw(choice(1.5 * norm + EPSILON, 1.03125 * norm + EPSILON, 100.0 * norm + 1.0, math.inf))
    arguments = {"grads": grads, "max_norm": maximum}
    references = CLIP_GRAD_NORM.exact(trial, arguments, use_exact_oracle=False)[:-1]
    outcome = trial.call(arguments)
    for observed, g, reference in zip(_items(outcome, arguments), grads, references, strict=True):
        has_form(trial, observed, tuple(g.shape), g.dtype, "a gradient inside the ball")
        law = Reference(g.double().numpy(), reference.bound, constant=True)
        trial.assert_within_bound(observed, law, "a gradient inside the ball")


def _zero_maximum(trial: Trial) -> None:
    grads, _ = _some_grads(trial)
    arguments = {"grads": grads, "max_norm": 0.0}
    outcome = trial.call(arguments)
    for observed, g in zip(_items(outcome, arguments), grads, strict=True):
        zero = np.zeros(tuple(g.shape))
        trial.assert_within_bound(observed, Reference(zero, zero, constant=True), "gradients clipped to 0")
    reference = CLIP_GRAD_NORM.exact(trial, arguments, use_exact_oracle=False)[-1]
    trial.assert_within_bound(outcome.item(1), Reference(reference.exact, reference.bound, constant=True), "total_norm")


def _no_gradients(trial: Trial) -> None:
    empty: list[torch.Tensor] = [trial.tensor(np.zeros((2, 0)))] if trial.draw(st.booleans()) else []
    arguments = {"grads": empty, "max_norm": trial.draw(choice(1.0, 0.0, math.inf))}
    outcome = trial.call(arguments)
    zero = Reference(np.asarray(0.0), np.asarray(0.0), constant=True)
    trial.assert_within_bound(outcome.item(1), zero, "total_norm of nothing")
    count = len(outcome.value[0])
    trial.assert_true(count == len(empty), "the list has changed its length", f"len({outcome.name}[0]) == {len(empty)}")


def _zero_gradients(trial: Trial) -> None:
    grads = [0.0 * g for g in draw_grads(trial)]
    arguments = {"grads": grads, "max_norm": trial.draw(choice(1.0, 0.0, math.inf))}
    outcome = trial.call(arguments)
    for observed in [*_items(outcome, arguments), outcome.item(1)]:
        zero = np.zeros(tuple(observed.value.shape))
        trial.assert_within_bound(observed, Reference(zero, zero, constant=True), "clipped zeros")


def _not_finite(trial: Trial) -> None:
    grads, _ = _some_grads(trial)
    i, rng = trial.draw(st.integers(0, len(grads) - 1)), trial.draw(values()).rng
    trial.assume(grads[i].numel() > 0)
    spoiled = grads[i].flatten()
    spoiled[rng.integers(0, len(spoiled))] = trial.draw(choice(math.nan, math.inf, -math.inf))
    grads[i] = spoiled.view(grads[i].shape)
    total = trial.call({"grads": grads, "max_norm": trial.draw(choice(1.0, 100.0))}).item(1)
    hidden = bool(torch.isfinite(total.value).any())
    said = f"not bool(torch.isfinite({total.expression}).any())"
    trial.assert_true(not hidden, "total_norm is finite, though a gradient is not", said)


def wide(*names: str) -> RunningError:
    """Return the coarsest roundoff of dtypes in their widest range, of fp32 at least: what ``total_norm`` of halves
    has.
    """
    f = min((FORMATS[name] for name in names), key=lambda form: form.precision)
    ranges = [FORMATS[name] for name in (*names, "fp32")]
    emin, emax = min(form.emin for form in ranges), max(form.emax for form in ranges)
    return RunningError(Format(f"{f.name} in wide range", f.precision, emin, emax), oracle=Float())


def _range(trial: Trial) -> None:
    """Check entries whose squares over- or underflow; the norm itself is finite in the dtype of ``total_norm``."""
    kind = trial.draw(values(("gaussian", "one-signed", "sparse")))
    exponents = {"fp16": (13.0, -12.0), "bf16": (100.0, -100.0), "fp32": (100.0, -100.0), "fp64": (700.0, -700.0)}
    size = 2.0 ** trial.draw(choice(*exponents[trial.dtype_name]))
    shapes = ((3, 4), (5,), (40,))[: kind.rng.integers(1, 4)]
    grads = [trial.tensor(size * (np.abs(kind.array(*shape)) + 0.5)) for shape in shapes]
    largest = max(float(g.double().max()) for g in grads)
    norm = largest * math.sqrt(sum(float((g.double() / largest).square().sum()) for g in grads))
    share = trial.draw(choice(0.5, 2.0, 0.25))
    arguments = {"grads": grads, "max_norm": share * norm}
    outcome = trial.call(arguments)
    references = CLIP_GRAD_NORM.exact(trial, arguments, use_exact_oracle=False)
    xp = wide(trial.dtype_name)
    total = CLIP_GRAD_NORM.formulas[0](xp, CLIP_GRAD_NORM.lift(trial, arguments, xp))[-1]
    agrees(trial, CLIP_GRAD_NORM, arguments, outcome, [*references[:-1], Reference(*xp.judgeable(total))])


def scaled_back(x: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
    """Return x / factor in float64."""
    return x.double() / factor


def _scale(trial: Trial) -> None:
    grads, norm = _some_grads(trial)
    factor = trial.draw(choice(4.0, 0.25, 64.0))
    share = trial.draw(choice(0.5, 0.1, 2.0))
    one: Arguments = {"grads": grads, "max_norm": share * norm}
    two: Arguments = {"grads": [factor * g for g in grads], "max_norm": factor * share * norm}
    trial.assume(all(bool((a.double() * factor == b.double()).all()) for a, b in zip(grads, two["grads"], strict=True)))
    of_one, of_two = (CLIP_GRAD_NORM.exact(trial, x, use_exact_oracle=False) for x in (one, two))
    a, b = trial.call(one), trial.call(two)
    c = constant(torch.tensor(factor, dtype=torch.float64))
    for i, (x, y) in enumerate(zip(CLIP_GRAD_NORM.parts(a, one), CLIP_GRAD_NORM.parts(b, two), strict=True)):
        scaled = Reference(of_two[i].exact / factor, of_two[i].bound / factor)
        apart = np.abs(scaled.exact - of_one[i].exact)  # 0 unless a claimed denominator breaks the law
        admitted = Reference(scaled.exact, scaled.bound + apart)
        equal(trial, x, trial.observe(scaled_back, y, c), of_one[i], admitted, "gradients and maximum scaled together")


def _duplicates(trial: Trial) -> None:
    grads, _ = _some_grads(trial)
    listed = [*grads, grads[0]]
    arguments = {"grads": listed, "max_norm": 0.5 * norm_of(listed)}
    trial.assume(norm_of(listed) > 0)
    agrees(
        trial,
        CLIP_GRAD_NORM,
        arguments,
        trial.call(arguments),
        CLIP_GRAD_NORM.exact(trial, arguments, use_exact_oracle=False),
    )


def _grouping(trial: Trial) -> None:
    """The norm is that of all tensors together, however their entries are distributed over the list."""
    x = trial.draw(values()).array(trial.draw(st.integers(2, 8)))
    flat = trial.tensor(x)
    trial.assume(bool(flat.ne(0).any()))
    cut = trial.draw(st.integers(1, len(flat) - 1))
    maximum = 0.5 * norm_of([flat])
    one: Arguments = {"grads": [flat], "max_norm": maximum}
    two: Arguments = {"grads": [flat[:cut].clone(), flat[cut:, None].clone()], "max_norm": maximum}
    of_one, of_two = (CLIP_GRAD_NORM.exact(trial, a, use_exact_oracle=False) for a in (one, two))
    a, b = trial.call(one), trial.call(two)
    equal(trial, a.item(1), b.item(1), of_one[-1], of_two[-1], "total_norm of a tensor and of its parts")
    joined = np.concatenate([r.bound.reshape(-1) for r in of_two[:-1]])
    whole = trial.observe(flattened, a.item(0, 0))
    parts = trial.observe(flattened, b.item(0, 0), b.item(0, 1))
    of_parts = Reference(of_one[0].exact, joined)
    equal(trial, whole, parts, of_one[0], of_parts, "a clipped tensor and its clipped parts")


def _mixed_dtypes(trial: Trial) -> None:
    kind = trial.draw(values(("gaussian", "one-signed", "integers")))
    names = [trial.draw(choice(*dtypes.NAMES)) for _ in range(trial.draw(sizes(1, 3)))]
    x = 1.0 + np.abs(kind.array(3))
    size = 2.0 ** trial.draw(choice(0, 200)) if trial.dtype is torch.float64 else 1.0  # where only fp64 has numbers
    grads = [trial.tensor(size * x), *(trial.tensor(x).to(dtypes.TORCH[name]) for name in names)]
    xp = wide(trial.dtype_name, *names)
    arguments = {"grads": grads, "max_norm": 0.5 * norm_of(grads)}
    values_of = CLIP_GRAD_NORM.formulas[0](xp, CLIP_GRAD_NORM.lift(trial, arguments, xp))
    outcome = trial.call(arguments)
    for observed, g, exact in zip(_items(outcome, arguments), grads, values_of, strict=False):
        has_form(trial, observed, tuple(g.shape), g.dtype, "a clipped gradient")
        trial.assert_within_bound(observed, Reference(*xp.judgeable(exact)), "a clipped gradient")
    trial.assert_within_bound(outcome.item(1), Reference(*xp.judgeable(values_of[-1])), "total_norm")


def _denominator(trial: Trial) -> None:
    """Check norms so small that adding 1e-6 to them shows."""
    size = trial.draw(choice(2.0**-10, 2.0**-14, 1.0))
    kind = trial.draw(values(("gaussian", "one-signed")))
    grads = [trial.tensor(size * (1.0 + np.abs(kind.array(3)))), trial.tensor(size * kind.array(2, 2))]
    arguments = {"grads": grads, "max_norm": 0.5 * norm_of(grads)}
    agrees(
        trial,
        CLIP_GRAD_NORM,
        arguments,
        trial.call(arguments),
        CLIP_GRAD_NORM.exact(trial, arguments, use_exact_oracle=False),
    )


_LAWS: dict[str, Any] = {
    "direction": _direction,
    "norm_bound": _norm_bound,
    "identity": _identity,
    "zero_maximum": _zero_maximum,
    "no_gradients": _no_gradients,
    "zero_gradients": _zero_gradients,
    "not_finite": _not_finite,
    "range": _range,
    "scale": _scale,
    "duplicates": _duplicates,
    "grouping": _grouping,
    "mixed_dtypes": _mixed_dtypes,
}


CHECKS = (
    *(check(f"clip_grad_norm.{name}", body) for name, body in _LAWS.items()),
    check("clip_grad_norm.denominator", _denominator, convention="clip_grad_norm.denominator"),
)

"""Laws of top-k, top-p and greedy choice."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import torch

from veriformer.spec.generation.choices import ranks
from veriformer.spec.softmax import softmax
from veriformer.verify.checks.agreement import agrees, has_form
from veriformer.verify.checks.family import check, settles_ties
from veriformer.verify.operations.filters import (
    GREEDY,
    TOP_K_FILTER,
    TOP_P_FILTER,
    apart,
    draw_logits,
    draw_p,
    undecided,
)
from veriformer.verify.script import literal
from veriformer.verify.strategies import choice, seeds, sizes, widths
from veriformer.verify.trial import Arguments, Observation, Trial, over_float64

Options = Callable[[Trial, torch.Tensor], dict[str, Any]]


_FILTERS = {operation.name: operation for operation in (TOP_K_FILTER, TOP_P_FILTER)}


def _rng(trial: Trial) -> np.random.Generator:
    return np.random.default_rng(trial.draw(seeds()))


def _k(trial: Trial, z: torch.Tensor) -> dict[str, Any]:
    return {"k": int(_rng(trial).integers(1, z.shape[-1] + 1))}


def _p(trial: Trial, z: torch.Tensor) -> dict[str, Any]:
    return {"p": draw_p(trial)}


def _distinct(trial: Trial) -> torch.Tensor:
    """Rows of different integers, so that twice each and one more is exact in every dtype."""
    n, m = trial.draw(sizes(1, 4)), trial.draw(widths())
    return trial.tensor(np.array([_rng(trial).permutation(3 * m)[:m] - m for _ in range(n)]))


def _tied(trial: Trial) -> torch.Tensor:
    """Rows of few integers, which tie; of different ones for a target that does not say what it does then."""
    if trial.claims.deviates("choice.ties"):
        return _distinct(trial)
    n, m = trial.draw(sizes(1, 4)), trial.draw(widths())
    return trial.tensor(_rng(trial).integers(-2, 3, (n, m)))


def _filtered(trial: Trial, arguments: Arguments, what: str = "the result") -> Observation:
    """The result, which agrees with the formula and holds every score as it was given or −∞, one of them at least."""
    z, outcome = arguments["logits"], trial.call(arguments)
    y, operation = outcome.result, _FILTERS[trial.operation]
    agrees(trial, operation, arguments, outcome, operation.exact(trial, arguments, sharp=False))
    e, given = y.expression, literal(z)
    same = bool(((y.value == z) | (y.value == -torch.inf)).all())
    trial.require(same, f"{what} holds a score that was not given", f"bool((({e} == {given}) | ({e} == -inf)).all())")
    some = bool((y.value > -torch.inf).any(-1).all())
    trial.require(some, f"{what} keeps nothing", f"bool(({e} > -inf).any(-1).all())")
    return y


def _same_set(trial: Trial, a: Observation, b: Observation, order: list[int] | None, message: str) -> None:
    """Raise Violation unless two results keep the same, the first with its columns in another order."""
    moved, said = (a.value, a.expression) if order is None else (a.value[..., order], f"{a.expression}[..., {order!r}]")
    same = bool(((moved > -torch.inf) == (b.value > -torch.inf)).all())
    trial.require(same, message, f"bool((({said} > -inf) == ({b.expression} > -inf)).all())")


def _within(trial: Trial, a: Observation, b: Observation, message: str) -> None:
    """Raise Violation unless the second result keeps whatever the first keeps."""
    inside = bool(((a.value == -torch.inf) | (b.value > -torch.inf)).all())
    trial.require(inside, message, f"bool((({a.expression} == -inf) | ({b.expression} > -inf)).all())")


def _untouched(options: Options) -> Callable[[Trial], None]:
    def body(trial: Trial) -> None:
        z = draw_logits(trial)
        _filtered(trial, {"logits": z, **options(trial, z)})

    return body


def _permutation(options: Options) -> Callable[[Trial], None]:
    def body(trial: Trial) -> None:
        z = _distinct(trial)
        given = options(trial, z)
        order = _rng(trial).permutation(z.shape[-1]).tolist()
        if "p" in given:
            trial.assume(not undecided(over_float64(trial.dtype_name), _lifted(trial, z), given["p"]).any())
        a, b = (_filtered(trial, {"logits": x, **given}) for x in (z, z[..., order]))
        _same_set(trial, a, b, order, "tokens in another order are not kept alike")

    return body


def _lifted(trial: Trial, z: torch.Tensor) -> Any:
    return over_float64(trial.dtype_name).asarray(z.double().numpy())


def _many_ties(trial: Trial) -> torch.Tensor:
    """A row of one score, and one of two: more of each than a half can count."""
    m = trial.draw(choice(1000, 2500))
    return trial.tensor(_rng(trial).integers(0, [[1], [2]], (2, m)))


def _count(trial: Trial) -> None:
    many = trial.draw(choice(False, True)) and not trial.claims.deviates("choice.ties")
    z = _many_ties(trial) if many else _tied(trial)
    z = torch.where(z == 0, trial.tensor(_rng(trial).choice([0.0, -0.0], tuple(z.shape))), z)  # which are equal
    k = _k(trial, z)["k"]
    y = _filtered(trial, {"logits": z, "k": k})
    e, kept = y.expression, y.value > -torch.inf
    trial.require(
        bool((kept.sum(-1) == k).all()), f"not {k} scores survive", f"bool((({e} > -inf).sum(-1) == {k}).all())"
    )
    given = literal(z)
    fine = bool((z.masked_fill(~kept, torch.inf).amin(-1) >= z.masked_fill(kept, -torch.inf).amax(-1)).all())
    said = f"{given}.masked_fill({e} == -inf, inf).amin(-1) >= {given}.masked_fill({e} > -inf, -inf).amax(-1)"
    trial.require(fine, "a score that is dropped exceeds one that is kept", f"bool(({said}).all())")


def _nested_k(trial: Trial) -> None:
    z = draw_logits(trial, least_rank=1)
    k = int(_rng(trial).integers(1, max(2, z.shape[-1])))
    more = min(k + 1, z.shape[-1])
    a, b = (_filtered(trial, {"logits": z, "k": n}) for n in (k, more))
    _within(trial, a, b, f"{more} keep less than {k} do")
    again = _filtered(trial, {"logits": b.value.detach(), "k": k})
    _same_set(trial, again, a, None, f"filtering by {more} and then by {k} is not filtering by {k}")


def _monotone_k(trial: Trial) -> None:
    z = _tied(trial) if trial.draw(choice(True, False)) else _distinct(trial)
    given = _k(trial, z)
    a, b = (_filtered(trial, {"logits": x, **given}) for x in (z, 2 * z + 1))
    _same_set(trial, a, b, None, "scores twice as far apart are not kept alike")


def _nucleus(trial: Trial) -> None:
    m, rng = trial.draw(choice(3, 2, 4, 5, 6)), _rng(trial)
    z = trial.tensor(rng.choice([rng.standard_normal(m), np.log(rng.integers(1, 5, m)), rng.integers(0, 3, m)]))
    p = trial.draw(choice(0.5, 0.9, 0.25, 0.75, None))
    p = float(rng.uniform(0.05, 0.95)) if p is None else p
    trial.assume(not trial.claims.deviates("choice.ties") or apart(z))
    y = _filtered(trial, {"logits": z, "p": p})
    kept = np.flatnonzero((y.value > -torch.inf).numpy()).tolist()
    right = _nuclei(trial, z, p)
    said = f"({y.expression} > -inf).nonzero()[:, 0].tolist() in {right!r}"
    trial.require(kept in right, f"{kept} is kept, and not one of {right}", said)


def _nuclei(trial: Trial, z: torch.Tensor, p: float) -> list[list[int]]:
    """The sets that may be kept: of the fewest tokens that reach p by more, or by no less, than rounding explains."""
    xp = over_float64(trial.dtype_name)
    lifted = _lifted(trial, z)
    q = softmax(xp, lifted)
    m, rank = z.shape[0], ranks(lifted)
    slack = float(q.error.sum()) + 2 * m * xp.machine.u
    masses = {s: float(q.value[list(s)].sum()) for n in range(1, m + 1) for s in combinations(range(m), n)}
    surely = min((len(s) for s, mass in masses.items() if mass >= p + slack), default=m)
    perhaps = min((len(s) for s, mass in masses.items() if mass >= p - slack), default=m)
    return [sorted(int(i) for i in np.flatnonzero(rank < n)) for n in range(perhaps, surely + 1)]


def _never_empty(trial: Trial) -> None:
    z = draw_logits(trial)
    p = trial.draw(choice(0.0, 1e-30, 5e-324, 1e-9, 1e-12))
    y = _filtered(trial, {"logits": z, "p": p})
    kept = torch.as_tensor(np.asarray(ranks(z.double().numpy()) == 0))
    right = torch.equal(y.value > -torch.inf, kept)
    said = f"torch.equal({y.expression} > -inf, {literal(kept)})"
    trial.require(right, f"p = {p:g} does not keep the most probable token alone", said)


def _all(trial: Trial) -> None:
    m = trial.draw(sizes(1, 6))
    z = trial.tensor(_rng(trial).choice([0.0, -1.0, -30.0, -2000.0, 5.0], (2, m)))
    y = _filtered(trial, {"logits": z, "p": 1.0})
    said = f"torch.equal({y.expression}, {literal(z)})"
    trial.require(torch.equal(y.value, z), "p = 1 does not keep everything", said)


def _tied_p(trial: Trial) -> None:
    many = trial.dtype_name == "fp32" and trial.draw(choice(False, True))  # half precision adds up too few
    m = 128 if many else trial.draw(sizes(2, 9))
    n = int(_rng(trial).integers(1, m + 1))
    z = trial.tensor(np.full((2, m), trial.draw(choice(0.0, 1.5, -3.0))))
    y = _filtered(trial, {"logits": z, "p": (n - 0.5) / m})
    kept = torch.arange(m).expand(2, m) < n
    said = f"torch.equal({y.expression} > -inf, {literal(kept.clone())})"
    trial.require(torch.equal(y.value > -torch.inf, kept), f"not the first {n} of {m} equal scores are kept", said)


def _nested_p(trial: Trial) -> None:
    z, rng = draw_logits(trial), _rng(trial)
    low, high = sorted(float(p) for p in rng.choice([0.0, 0.1, 0.5, 0.9, 0.99, 1.0], 2, replace=False))
    a, b = (_filtered(trial, {"logits": z, "p": p}) for p in (low, high))
    _within(trial, a, b, f"p = {high} keeps less than p = {low} does")


def _shift_p(trial: Trial) -> None:
    z, p = _tied(trial), draw_p(trial)
    trial.assume(not undecided(over_float64(trial.dtype_name), _lifted(trial, z), p).any())
    a, b = (_filtered(trial, {"logits": x, "p": p}) for x in (z, z + trial.draw(choice(100.0, -100.0, 64.0))))
    _same_set(trial, a, b, None, "shifted scores are not kept alike")


def _chosen(trial: Trial, z: torch.Tensor) -> Observation:
    y = trial.call({"logits": z}).result
    has_form(trial, y, tuple(z.shape[:-1]), torch.int64)
    return y


def _first(trial: Trial) -> None:
    m, rng = trial.draw(sizes(2, 7)), _rng(trial)
    z = rng.choice([-np.inf, 0.0, 1.0, 1.0], (3, m))
    z[0] = trial.draw(choice(0.0, -2.0))
    z[:, -1] = np.maximum(z[:, -1], -1.0)
    z[2] = np.minimum(z[2], rng.choice([0.0, -0.0], m))  # zeros of either sign, which are equal
    a = {"logits": trial.tensor(z)}
    agrees(trial, GREEDY, a, trial.call(a), GREEDY.exact(trial, a, sharp=False))


def _same_choice(trial: Trial, a: Observation, b: Observation, moved: torch.Tensor, said: str, message: str) -> None:
    trial.require(torch.equal(moved, b.value), message, f"torch.equal({said}, {b.expression})")


def _monotone_greedy(trial: Trial) -> None:
    z = _tied(trial) if trial.draw(choice(True, False)) else _distinct(trial)
    a, b = _chosen(trial, z), _chosen(trial, 2 * z + 1)
    highest = z.amax(-1)
    best = bool((z.gather(-1, a.value.clamp(0, z.shape[-1] - 1)[:, None])[:, 0] == highest).all())
    said = f"bool(({literal(z)}.gather(-1, {a.expression}[:, None])[:, 0] == {literal(highest)}).all())"
    trial.require(best, "a higher score is passed over", said)
    _same_choice(trial, a, b, a.value, a.expression, "scores twice as far apart are chosen otherwise")


def _moving_greedy(trial: Trial) -> None:
    z = _distinct(trial)
    order = torch.as_tensor(_rng(trial).permutation(z.shape[-1]))
    a, b = _chosen(trial, z), _chosen(trial, z[:, order])
    inside = bool(((b.value >= 0) & (b.value < z.shape[-1])).all())
    said = f"bool((({b.expression} >= 0) & ({b.expression} < {z.shape[-1]})).all())"
    trial.require(inside, "what is chosen is no token", said)
    moved = Observation(order[b.value], f"{literal(order)}[{b.expression}]")
    _same_choice(trial, b, a, moved.value, moved.expression, "the choice does not move with its token")


_LAWS: dict[str, Any] = {
    "top_k_filter.untouched": _untouched(_k),
    "top_k_filter.count": _count,
    "top_k_filter.nested": _nested_k,
    "top_k_filter.monotone": _monotone_k,
    "top_k_filter.permutation": _permutation(_k),
    "top_p_filter.untouched": _untouched(_p),
    "top_p_filter.nucleus": _nucleus,
    "top_p_filter.never_empty": _never_empty,
    "top_p_filter.all": _all,
    "top_p_filter.ties": _tied_p,
    "top_p_filter.nested": _nested_p,
    "top_p_filter.shift": _shift_p,
    "top_p_filter.permutation": _permutation(_p),
    "greedy.first": _first,
    "greedy.monotone": _monotone_greedy,
    "greedy.permutation": _moving_greedy,
}

_OF_TIES = ("top_p_filter.ties", "greedy.first")

CHECKS = tuple(
    check(slug, body, dtypes=("fp32", "bf16"), applies=settles_ties if slug in _OF_TIES else None)
    for slug, body in _LAWS.items()
)

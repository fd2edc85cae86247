"""Laws of rotary position embeddings."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from veriformer.verify.judging.judge import Floats, Reference
from veriformer.verify.judging.outcome import Observation
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import agrees
from veriformer.verify.laws.equality import difference, equal, slice_reference, slice_result
from veriformer.verify.laws.family import check
from veriformer.verify.laws.gradients import judge_with_gradients
from veriformer.verify.operations.positions.rope.record import ROPE, features, pairings
from veriformer.verify.strategies import choice, sizes, values

_SLACK = 2.0**-40


def _judged(trial: Trial, arguments: Arguments) -> tuple[Observation, Reference]:
    reference = ROPE.exact(trial, arguments, use_exact_oracle=False)[0]
    outcome = trial.call(arguments)
    agrees(trial, ROPE, arguments, outcome, [reference])
    return outcome.result, reference


def _places(trial: Trial, n: int, *, from_: int = -30, to: int = 31) -> torch.Tensor:
    return torch.as_tensor(trial.draw(values(("gaussian",))).rng.integers(from_, to, n))


def _options(trial: Trial) -> dict[str, Any]:
    return {**pairings(trial), **trial.option("base", None, 100.0, 5e5)}


def _width(trial: Trial) -> int:
    d: int = trial.draw(choice(4, 6, 8, 2))
    return d


def _origin(trial: Trial) -> None:
    n, options = trial.draw(sizes(1, 4)), _options(trial)
    x = features(trial, n, _width(trial))
    options |= trial.option("scaling", None, ("linear", 2.0), ("ntk", 4.0))
    _judged(trial, {"x": x, "positions": torch.arange(1, n + 1), **options})
    _judged(trial, {"x": x, "positions": torch.zeros(n, dtype=torch.int64), **options})


def _history(trial: Trial) -> None:
    """Check calls of a few sizes in any order: nothing cached by one call may serve another."""
    for _ in range(8):
        n, d = trial.draw(choice(2, 3)), trial.draw(choice(4, 2, 8))
        first = trial.draw(choice(0, 0, 3))
        base = trial.option("base", None, None, 100.0)
        _judged(trial, {"x": features(trial, n, d), "positions": torch.arange(first, first + n), **base})


def products(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Return inner products of the rows of q with all rows of k, in float64."""
    return q.double() @ k.double().mT


def _products_bound(q: Reference, k: Reference) -> Floats:
    """Return the bound of the inner products from those of the entries: |q| b + |k| a + a b, summed."""
    size, other = np.abs(q.exact) + q.bound, np.abs(k.exact) + k.bound
    return size @ k.bound.T + q.bound @ other.T + _SLACK * (size @ other.T)


def _relative(trial: Trial) -> None:
    n, m, d = trial.draw(sizes(1, 3)), trial.draw(sizes(1, 3)), _width(trial)
    q, k, options = features(trial, n, d), features(trial, m, d), _options(trial)
    at_q, at_k = _places(trial, n), _places(trial, m)
    shift = trial.draw(choice(7, -5, 100, 1000))
    found = [
        _judged(trial, {"x": x, "positions": at + s, **options}) for s in (0, shift) for x, at in ((q, at_q), (k, at_k))
    ]
    scores = [trial.observe(products, found[i][0], found[i + 1][0]) for i in (0, 2)]
    bound = _products_bound(found[0][1], found[1][1]) + _products_bound(found[2][1], found[3][1])
    size = float(np.abs(found[0][1].exact @ found[1][1].exact.T).max(initial=0.0))
    law = Reference(np.zeros_like(bound), bound, scale=size, constant=True)
    trial.assert_within_bound(
        trial.observe(difference, *scores), law, "scores of a query and a key that were shifted together"
    )


def _group(trial: Trial) -> None:
    n, options = trial.draw(sizes(1, 3)), _options(trial)
    x, a, b = features(trial, n, _width(trial)), _places(trial, n), _places(trial, n)
    first, of_first = _judged(trial, {"x": x, "positions": a, **options})
    again = {"x": first.value.detach(), "positions": b, **options}
    twice, of_twice = _judged(trial, again)
    once, of_once = _judged(trial, {"x": x, "positions": a + b, **options})
    # A turn takes errors (α, β) of a pair to at most α + β in either feature.
    carried = np.broadcast_to(of_first.bound.sum(-1, keepdims=True), of_first.bound.shape)
    grown = Reference(of_twice.exact, (of_twice.bound + carried) * (1 + _SLACK))
    equal(trial, twice, once, grown, of_once, "turned twice, and once by the sum")


def squared_lengths(x: torch.Tensor) -> torch.Tensor:
    """Return the sums of squares of rows, in float64."""
    return x.double().square().sum(-1)


def _norm(trial: Trial) -> None:
    n = trial.draw(sizes(1, 4))
    x = features(trial, n, _width(trial))
    scaling = trial.option("scaling", None, ("linear", 4.0), ("ntk", 16.0))
    y, reference = _judged(trial, {"x": x, "positions": _places(trial, n), **_options(trial), **scaling})
    exact = x.double().square().sum(-1).numpy()
    bound = ((2 * np.abs(reference.exact) + reference.bound) * reference.bound).sum(-1) + _SLACK * exact
    trial.assert_within_bound(
        trial.observe(squared_lengths, y), Reference(exact, bound, constant=True), "squared lengths of rows"
    )


def _pairings(trial: Trial) -> None:
    """x in the order 0, 2, 4, …, 1, 3, … under "half" gives the result of x under "interleaved", in that order."""
    n, d = trial.draw(sizes(1, 4)), trial.draw(choice(4, 6, 8))
    x, at = features(trial, n, d), _places(trial, n)
    order = [*range(0, d, 2), *range(1, d, 2)]
    sorted_ = {"x": x[:, order].contiguous(), "positions": at}
    if trial.claims.deviates("rope.pairing"):
        _judged(trial, sorted_)
        return
    plain = {"x": x, "positions": at, **trial.option("pairing", None, "interleaved")}
    first, of_first = _judged(trial, plain)
    second, of_second = _judged(trial, {**sorted_, "pairing": "half"})
    moved = Observation(first.value[:, order], f"{first.expression}[:, {order}]")
    there = Reference(of_first.exact[:, order], of_first.bound[:, order])
    equal(trial, moved, second, there, of_second, "the two pairings")


def _pair(trial: Trial, options: dict[str, Any], d: int, i: int) -> tuple[slice, ...]:
    """Return the index of the features of pair i."""
    half = options.get("pairing", trial.claims.convention("rope.pairing")) == "half"
    return (slice(None), slice(i, None, d // 2) if half else slice(2 * i, 2 * i + 2))


def _scaling(trial: Trial) -> None:
    n, d, options = trial.draw(sizes(1, 4)), trial.draw(choice(6, 4, 8)), _options(trial)
    x, at, s = features(trial, n, d), 2 * _places(trial, n), trial.draw(choice(2.0, 4.0, 0.5))
    stretched = (at * s).long()
    plain, of_plain = _judged(trial, {"x": x, "positions": at, **options})
    linear, of_linear = _judged(trial, {"x": x, "positions": stretched, "scaling": ("linear", s), **options})
    equal(trial, plain, linear, of_plain, of_linear, "stretched positions under linear scaling")
    for i, where in ((0, at), (d // 2 - 1, stretched)):
        ntk, of_ntk = _judged(trial, {"x": x, "positions": where, "scaling": ("ntk", s), **options})
        index = _pair(trial, options, d, i)
        before, after = slice_reference(of_plain, index), slice_reference(of_ntk, index)
        equal(trial, slice_result(plain, index), slice_result(ntk, index), before, after, f"pair {i} under NTK scaling")


def _far(trial: Trial) -> None:
    """Check neighbouring positions beyond the digits of a half, up to 1e5."""
    n = trial.draw(sizes(2, 5))
    start = trial.draw(choice(255, 2047, 4094, 99990))
    at = start + torch.arange(n)
    arguments = {"x": features(trial, n, trial.draw(choice(4, 6, 8))), "positions": at, **_options(trial)}
    judge_with_gradients(trial, ROPE, arguments)


def _convention(trial: Trial) -> None:
    n = trial.draw(sizes(1, 4))
    _judged(trial, {"x": features(trial, n, trial.draw(choice(4, 6, 8))), "positions": _places(trial, n)})


_ALGEBRA = ("fp64", "fp32")


_LAWS: dict[str, Any] = {
    "relative": _relative,
    "group": _group,
    "norm": _norm,
    "pairings": _pairings,
    "scaling": _scaling,
    "history": _history,
}


CHECKS = (
    *(check(f"rope.{name}", body, dtypes=_ALGEBRA) for name, body in _LAWS.items()),
    check("rope.origin", _origin),
    check("rope.far", _far),
    check("rope.pairing", _convention, convention="rope.pairing", effort=0.5, dtypes=("fp64", "fp32", "bf16")),
)

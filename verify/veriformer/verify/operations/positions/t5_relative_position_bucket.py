"""T5's buckets: their record and their laws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from veriformer.spec.arithmetic.running_error import RunningError, RunningErrorArray
from veriformer.spec.positions.t5_relative_position_bucket import edges, t5_relative_position_bucket
from veriformer.verify.judging.op_info import InvalidCall
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import call_within_bound
from veriformer.verify.laws.family import check
from veriformer.verify.operations.derived import operation
from veriformer.verify.strategies import choice, extent, leading_shapes, sizes, values


def _buckets(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    options: dict[str, Any] = {name: value for name, value in a.items() if name != "relative_position"}
    return [t5_relative_position_bucket(a["relative_position"].astype(np.int64), **options)]


def _by_logarithm(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """Return e + ⌊(b − e) log(x / e) / log(M / e)⌋ rounded: either neighbour where that may be whole."""
    if not isinstance(xp, RunningError):
        return []
    r, both = a["relative_position"].astype(np.int64), a.get("bidirectional", True)
    buckets, exact = a.get("num_buckets", 32) // (2 if both else 1), _buckets(xp, a)[0]
    e, far = buckets // 2, a.get("max_distance", 128)
    x = np.abs(r) if both else np.maximum(-r, 0)
    place = (buckets - e) * xp.log(xp.asarray(np.maximum(x, e)) / e) / xp.log(xp.asarray(far) / e)
    value, bound = xp.judgeable(place)
    within = exact - e - np.where(both & (r > 0), buckets, 0)
    lowest, highest = (np.minimum(np.floor(one), buckets - e - 1) for one in (value - bound, value + bound))
    apart = np.where(x < e, 0.0, np.maximum(within - lowest, highest - within))
    return [RunningErrorArray(xp, exact.astype(np.float64), apart, exact.astype(np.float64))]


def draw_buckets(trial: Trial) -> Arguments:
    """Draw relative positions near zero, at the edges of buckets, and far beyond the last."""
    options = trial.option("bidirectional", None, False, True)
    step = 2 if options.get("bidirectional", True) else 1
    if trial.draw(choice(False, True, True)) and trial.offers("num_buckets"):
        options["num_buckets"] = step * trial.draw(extent(2, 100))
    if trial.draw(choice(False, True, True)) and trial.offers("max_distance"):
        options["max_distance"] = trial.draw(extent(20, 4000))
    large = trial.rows((1, 2000), (1, 2000))
    shape = trial.draw(leading_shapes(3, 5)) if large is None else large
    rng = trial.draw(values()).rng
    buckets = options.get("num_buckets", 32) // (2 if options.get("bidirectional", True) else 1)
    if options.get("max_distance", 128) <= buckets // 2:
        del options["max_distance"]
    at_edges = np.asarray(edges(buckets, options.get("max_distance", 128)))
    r = rng.choice(at_edges, shape) + rng.integers(-1, 2, shape)
    r = np.where(rng.random(shape) < 0.3, rng.integers(-300, 3000, shape), r) * rng.choice([-1, 1], shape)
    return {"relative_position": torch.as_tensor(r).to(trial.draw(choice(torch.int64, torch.int32))), **options}


def _bad_buckets(trial: Trial, good: Arguments) -> Iterator[InvalidCall]:
    for number, both in ((2, True), (3, True), (33, True), (1, False), (0, False)):
        yield InvalidCall(f"{number} buckets", {**good, "num_buckets": number, "bidirectional": both}, ("num_buckets",))
    for distance, both in ((8, True), (16, False), (0, True)):
        clash = {**good, "max_distance": distance, "bidirectional": both}
        yield InvalidCall(f"all within {distance}", clash, ("max_distance", "num_buckets"))


def _changed_buckets(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    a: dict[str, Any] = {"relative_position": torch.arange(-40, 41)}
    return a, {
        "relative_position": {"relative_position": torch.arange(-41, 40)},
        "bidirectional": {**a, "bidirectional": False},
        "num_buckets": {**a, "num_buckets": trial.draw(choice(16, 64))},
        "max_distance": {**a, "max_distance": trial.draw(choice(50, 300))},
    }


T5_RELATIVE_POSITION_BUCKET = operation(
    "t5_relative_position_bucket",
    sample=draw_buckets,
    sample_basic=lambda trial: {"relative_position": torch.arange(-trial.draw(sizes(1)), 40)},
    formulas=(_buckets, _by_logarithm),
    refuses=_bad_buckets,
    argument_perturbations=_changed_buckets,
    result_dtype=lambda trial, arguments, part: torch.int64,
    dtypes=("fp32",),
)


# T5
def _configured(trial: Trial, *more: tuple[bool, int, int]) -> tuple[dict[str, Any], int, int]:
    """Draw options, the number of buckets in a direction, and the distance from which all are alike."""
    both, number, far = trial.draw(choice(*_CONFIGURATIONS, *more))
    given = {"bidirectional": both, "num_buckets": number, "max_distance": far}
    usual = {"bidirectional": True, "num_buckets": 32, "max_distance": 128}
    options = {name: value for name, value in given.items() if value != usual[name]}
    return options, number // 2 if both else number, far


_CONFIGURATIONS = (
    (True, 32, 128),
    (False, 32, 128),
    (True, 8, 16),
    (False, 4, 9),
    (True, 64, 1024),
    (False, 6, 24),
    (True, 12, 96),
    (False, 8, 4096),
    (False, 2, 5),
    (True, 4, 7),
    (True, 18, 128),
    (False, 9, 128),
    (True, 38, 288),
    (False, 3, 16),
    (False, 5, 16),
    (False, 7, 48),
)
"""Of most of them the logarithm has whole numbers at whole distances, some of which rounding is known to miss."""


def _of(trial: Trial, distances: Any, options: dict[str, Any]) -> tuple[torch.Tensor, str]:
    """Return the buckets of keys that far behind the query, once they are tensors of the right form."""
    arguments = {"relative_position": -torch.as_tensor(np.asarray(distances)), **options}
    result, _ = call_within_bound(trial, T5_RELATIVE_POSITION_BUCKET, arguments)
    return result.value, result.expression


def _monotone(trial: Trial) -> None:
    options, buckets, far = _configured(trial)
    b, e = _of(trial, np.arange(2 * far), options)
    trial.assert_true(bool((b.diff() >= 0).all()), "a bucket falls with distance", f"bool(({e}.diff() >= 0).all())")
    first, last = int(b[0]), int(b[-1])
    said = f"(int({e}[0]), int({e}[-1])) == (0, {buckets - 1})"
    trial.assert_true((first, last) == (0, buckets - 1), "the first or last bucket is another", said)


def _saturating(trial: Trial) -> None:
    options, buckets, far = _configured(trial)
    b, e = _of(trial, [far - 1, far, far + 1, 10 * far, 10**9], options)
    wanted = [buckets - 1] * 4
    trial.assert_true(b[1:].tolist() == wanted, "far keys do not share a bucket", f"{e}[1:].tolist() == {wanted}")


_WHOLE = ((True, 34, 27), (False, 48, 81), (False, 54, 125))
"""Logarithms that are whole numbers, and in fp32 fall short of them: (12 / 8)³ is 27 / 8, and log 1.5 a third of it."""


def _exact_points(trial: Trial) -> None:
    options, buckets, far = _configured(trial, *_WHOLE)
    starts = np.asarray(edges(buckets, far))
    b, e = _of(trial, np.stack((starts, starts - 1)), options)
    wanted = np.searchsorted(starts, np.stack((starts, starts - 1)), side="right").tolist()
    trial.assert_true(b.tolist() == wanted, "a bucket begins at the wrong distance", f"{e}.tolist() == {wanted}")


def _directions(trial: Trial) -> None:
    options, buckets, far = _configured(trial)
    distances = np.arange(1, far + 2)
    behind, e = _of(trial, distances, options)
    ahead, f = _of(trial, -distances, options)
    if options.get("bidirectional", True):
        said = f"torch.equal({f}, {e} + {buckets})"
        trial.assert_true(torch.equal(ahead, behind + buckets), "keys ahead do not mirror keys behind", said)
    else:
        trial.assert_true(not bool(ahead.any()), "keys ahead have a distance", f"not bool({f}.any())")


_LAWS: dict[str, Any] = {
    "monotone": _monotone,
    "saturating": _saturating,
    "exact_points": _exact_points,
    "directions": _directions,
}

CHECKS = tuple(check(f"t5_relative_position_bucket.{name}", body, dtypes=("fp32",)) for name, body in _LAWS.items())

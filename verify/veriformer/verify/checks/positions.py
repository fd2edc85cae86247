"""Laws of sinusoidal encodings, of ALiBi, and of T5's buckets."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from veriformer.spec.positions.t5_relative_position_bucket import edges
from veriformer.verify.checks.agreement import agrees
from veriformer.verify.checks.family import check
from veriformer.verify.checks.laws import equal, taken
from veriformer.verify.judge import Floats, Reference
from veriformer.verify.operation import Operation
from veriformer.verify.operations import (
    ALIBI_BIAS,
    ALIBI_SLOPES,
    SINUSOIDAL_ENCODING,
    T5_RELATIVE_POSITION_BUCKET,
)
from veriformer.verify.strategies import choice, sizes
from veriformer.verify.trial import Arguments, Observation, Trial

_SLACK = 2.0**-40


def _judged(trial: Trial, operation: Operation, arguments: Arguments) -> tuple[Observation, Reference]:
    reference = operation.exact(trial, arguments, sharp=False)[0]
    outcome = trial.call(arguments)
    agrees(trial, operation, arguments, outcome, [reference])
    return outcome.result, reference


# Sinusoidal encodings


def _encoding(trial: Trial) -> tuple[Observation, Reference]:
    n, d = trial.draw(sizes(4, 12)), trial.draw(choice(4, 6, 2, 8))
    options = trial.option("base", None, 100.0, 1e6)
    return _judged(trial, SINUSOIDAL_ENCODING, {"num_positions": n, "d_model": d, **options})


def unturned(pe: torch.Tensor, turned: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Rows k later, less the rows turned by what row k holds, in float64."""
    s, c = pe.double()[:, 0::2], pe.double()[:, 1::2]
    s_k, c_k = s[int(k)], c[int(k)]
    later = turned.double()
    rows = later.shape[0]
    return torch.cat((later[:, 0::2] - (s * c_k + c * s_k)[:rows], later[:, 1::2] - (c * c_k - s * s_k)[:rows]), -1)


def _shift(trial: Trial) -> None:
    pe, reference = _encoding(trial)
    n = reference.exact.shape[0]
    k = 1 + trial.draw(sizes(0, 20)) % (n - 2)
    size, b = np.abs(reference.exact) + reference.bound, reference.bound
    (s, c), (bs, bc) = ((x[: n - k, 0::2], x[: n - k, 1::2]) for x in (size, b))
    (s_k, c_k), (bs_k, bc_k) = ((x[k, 0::2], x[k, 1::2]) for x in (size, b))
    sines, cosines = (bs * c_k + s * bc_k + bc * s_k + c * bs_k, bc * c_k + c * bc_k + bs * s_k + s * bs_k)
    bound = np.concatenate((b[k:, 0::2] + sines, b[k:, 1::2] + cosines), -1) * (1 + _SLACK) + 2.0**-48
    law = Reference(np.zeros_like(bound), bound, scale=1.0, constant=True)
    observed = trial.observe(
        unturned, pe, taken(pe, (slice(k, None),)), Observation(torch.tensor(k), f"torch.tensor({k})")
    )
    trial.judge(observed, law, f"rows {k} later, less the rows turned by row {k}")


def gram_steps(pe: torch.Tensor) -> torch.Tensor:
    """Inner products of rows, less those of the rows after them, in float64."""
    products = pe.double() @ pe.double().mT
    return products[1:, 1:] - products[:-1, :-1]


def squared_lengths(pe: torch.Tensor) -> torch.Tensor:
    """The sums of squares of rows, in float64."""
    return pe.double().square().sum(-1)


def _offset(trial: Trial) -> None:
    pe, reference = _encoding(trial)
    size, d = np.abs(reference.exact) + reference.bound, reference.exact.shape[1]
    slack = size @ reference.bound.T
    slack = slack + slack.T + _SLACK * (size @ size.T)
    bound = slack[1:, 1:] + slack[:-1, :-1]
    law = Reference(np.zeros_like(bound), bound, scale=float(d), constant=True)
    trial.judge(trial.observe(gram_steps, pe), law, "inner products of rows at equal distances")
    lengths = Reference(np.full(len(slack), d / 2), np.diag(slack).copy(), constant=True)
    trial.judge(trial.observe(squared_lengths, pe), lengths, "squared lengths of rows")


# ALiBi


def step_ratios(m: torch.Tensor) -> torch.Tensor:
    """Each slope less the one before times the first, and the last less 1/256, in float64."""
    m = m.double()
    return torch.cat((m[1:] - m[:-1] * m[0], m[-1:] - 2.0**-8))


def _geometric(trial: Trial) -> None:
    m, reference = _judged(trial, ALIBI_SLOPES, {"num_heads": trial.draw(choice(4, 8, 2, 1, 16, 32))})
    size, b = np.abs(reference.exact) + reference.bound, reference.bound
    bound = np.append(b[1:] + b[:-1] * size[0] + size[:-1] * b[0] + _SLACK * size[1:], b[-1])
    law = Reference(np.zeros_like(bound), bound, scale=2.0**-8, constant=True)
    trial.judge(trial.observe(step_ratios, m), law, "slopes against the first times the slope before")


def joined(m: torch.Tensor, below: torch.Tensor, above: torch.Tensor) -> torch.Tensor:
    """Slopes, less those of the power below and every other one of the power above, in float64."""
    wanted = torch.cat((below, above[::2]))[: m.shape[0]]
    return m.double() - wanted.double()


def _any_heads(trial: Trial) -> None:
    heads = trial.draw(choice(3, 5, 6, 7, 12, 20, 71, 112))
    below = 1 << (heads.bit_length() - 1)
    found = [_judged(trial, ALIBI_SLOPES, {"num_heads": number}) for number in (heads, below, 2 * below)]
    (_, own), (_, lower), (_, upper) = found
    bound = own.bound + np.concatenate((lower.bound, upper.bound[::2]))[:heads]
    law = Reference(np.zeros_like(bound), bound * (1 + _SLACK), scale=2.0**-8, constant=True)
    trial.judge(trial.observe(joined, *(m for m, _ in found)), law, "slopes of other numbers of heads")


def _last_query(trial: Trial) -> None:
    heads, n_q, n_k = trial.draw(choice(4, 3, 6)), trial.draw(sizes(2, 5)), trial.draw(sizes(1, 6))
    several, of_several = _judged(trial, ALIBI_BIAS, {"num_heads": heads, "n_q": n_q, "n_k": n_k})
    fewer = trial.draw(sizes(1, n_q - 1))
    alone, of_alone = _judged(trial, ALIBI_BIAS, {"num_heads": heads, "n_q": fewer, "n_k": n_k})
    index = (slice(None), slice(n_q - fewer, None))
    part = Reference(of_several.exact[index], of_several.bound[index])
    equal(trial, taken(several, index), alone, part, of_alone, "the bias of the last queries")


def second_steps(bias: torch.Tensor) -> torch.Tensor:
    """Second differences along the keys, in float64."""
    return bias.double().diff(dim=-1).diff(dim=-1)


def _distance(trial: Trial) -> None:
    """Straight lines that meet in zero at the query's own key."""
    n_q, n_k = trial.draw(sizes(1, 5)), trial.draw(sizes(3, 7))
    bias, reference = _judged(trial, ALIBI_BIAS, {"num_heads": trial.draw(choice(4, 3, 6)), "n_q": n_q, "n_k": n_k})
    own = np.arange(n_q) + n_k - n_q
    exact: Floats = np.diff(reference.exact, n=2, axis=-1)
    bound = reference.bound[..., 2:] + 2 * reference.bound[..., 1:-1] + reference.bound[..., :-2]
    bound = bound * (1 + _SLACK) + 2.0**-48 * np.abs(reference.exact).max()
    middle = own[:, None] == np.arange(1, n_k - 1)
    law = Reference(np.where(middle, exact, 0.0), bound, scale=1.0, constant=True)
    trial.judge(trial.observe(second_steps, bias), law, "the bend of the bias")
    e = bias.expression
    for i, j in enumerate(own):
        if j >= 0:
            zero = not bool(bias.value[:, i, j].any())
            trial.require(zero, "a key at no distance has a bias", f"not bool({e}[:, {i}, {j}].any())")


# T5


def _configured(trial: Trial, *more: tuple[bool, int, int]) -> tuple[dict[str, Any], int, int]:
    """Options, the number of buckets in a direction, and the distance from which all are alike."""
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
    """The buckets of keys that far behind the query, once they are tensors of the right form."""
    arguments = {"relative_position": -torch.as_tensor(np.asarray(distances)), **options}
    result, _ = _judged(trial, T5_RELATIVE_POSITION_BUCKET, arguments)
    return result.value, result.expression


def _monotone(trial: Trial) -> None:
    options, buckets, far = _configured(trial)
    b, e = _of(trial, np.arange(2 * far), options)
    trial.require(bool((b.diff() >= 0).all()), "a bucket falls with distance", f"bool(({e}.diff() >= 0).all())")
    first, last = int(b[0]), int(b[-1])
    said = f"(int({e}[0]), int({e}[-1])) == (0, {buckets - 1})"
    trial.require((first, last) == (0, buckets - 1), "the first or last bucket is another", said)


def _saturating(trial: Trial) -> None:
    options, buckets, far = _configured(trial)
    b, e = _of(trial, [far - 1, far, far + 1, 10 * far, 10**9], options)
    wanted = [buckets - 1] * 4
    trial.require(b[1:].tolist() == wanted, "far keys do not share a bucket", f"{e}[1:].tolist() == {wanted}")


_WHOLE = ((True, 34, 27), (False, 48, 81), (False, 54, 125))
"""Logarithms that are whole numbers, and in fp32 fall short of them: (12 / 8)³ is 27 / 8, and log 1.5 a third of it."""


def _exact_points(trial: Trial) -> None:
    options, buckets, far = _configured(trial, *_WHOLE)
    starts = np.asarray(edges(buckets, far))
    b, e = _of(trial, np.stack((starts, starts - 1)), options)
    wanted = np.searchsorted(starts, np.stack((starts, starts - 1)), side="right").tolist()
    trial.require(b.tolist() == wanted, "a bucket begins at the wrong distance", f"{e}.tolist() == {wanted}")


def _directions(trial: Trial) -> None:
    options, buckets, far = _configured(trial)
    distances = np.arange(1, far + 2)
    behind, e = _of(trial, distances, options)
    ahead, f = _of(trial, -distances, options)
    if options.get("bidirectional", True):
        said = f"torch.equal({f}, {e} + {buckets})"
        trial.require(torch.equal(ahead, behind + buckets), "keys ahead do not mirror keys behind", said)
    else:
        trial.require(not bool(ahead.any()), "keys ahead have a distance", f"not bool({f}.any())")


_ALGEBRA = ("fp64", "fp32")
_T5: dict[str, Any] = {
    "monotone": _monotone,
    "saturating": _saturating,
    "exact_points": _exact_points,
    "directions": _directions,
}

CHECKS = (
    check("sinusoidal_encoding.shift", _shift, dtypes=_ALGEBRA),
    check("sinusoidal_encoding.offset", _offset, dtypes=_ALGEBRA),
    check("alibi_slopes.geometric", _geometric, dtypes=_ALGEBRA),
    check("alibi_slopes.any_heads", _any_heads, dtypes=_ALGEBRA),
    check("alibi_bias.last_query", _last_query, dtypes=_ALGEBRA),
    check("alibi_bias.distance", _distance, dtypes=_ALGEBRA),
    *(check(f"{T5_RELATIVE_POSITION_BUCKET.name}.{name}", body, dtypes=("fp32",)) for name, body in _T5.items()),
)

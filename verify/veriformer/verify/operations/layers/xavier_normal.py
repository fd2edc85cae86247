"""Xavier initialisation: its record, the form of its result, and tests of its distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from veriformer.verify.judging.outcome import Observation
from veriformer.verify.judging.trial import BUDGET, Arguments, Trial
from veriformer.verify.laws import chance
from veriformer.verify.laws.agreement import has_form
from veriformer.verify.laws.equality import constant
from veriformer.verify.laws.family import check
from veriformer.verify.operations.derived import operation
from veriformer.verify.scripts.script import Seed
from veriformer.verify.strategies import choice, seeds, sizes


def _ordinary(trial: Trial) -> Arguments:
    return {"n_in": trial.draw(sizes()), "n_out": trial.draw(sizes())}


XAVIER_NORMAL = operation(
    "xavier_normal",
    sample=_ordinary,
    sample_basic=_ordinary,
    structural_dtypes=("fp32", "bf16"),
)


_MANY = 200_000
"""Number of weights that suffices to show their distribution."""


_SQUARE = 150


def _contract(trial: Trial) -> None:
    arguments = XAVIER_NORMAL.sample_basic(trial)
    has_form(trial, trial.call(arguments).result, (arguments["n_in"], arguments["n_out"]), trial.dtype)


def _numpy_numbers(trial: Trial) -> None:
    n, m = trial.draw(sizes()), trial.draw(sizes())
    has_form(trial, trial.call({"n_in": np.int64(n), "n_out": np.int64(m)}).result, (n, m), trial.dtype)


def _weights(trial: Trial) -> tuple[Observation, Observation]:
    """Draw many weights; return them and the variance that they must have."""
    trial.only_large(_MANY / BUDGET)
    found = trial.sizes({"n_in": (5, 3000), "n_out": (5, 3000)}, lambda s: s["n_in"] * s["n_out"])
    assert found is not None
    n_in, n_out = found["n_in"], found["n_out"]
    if trial.draw(choice(True, False)):  # the other as large as the budget allows
        n_in = _MANY // n_out
    else:
        n_out = _MANY // n_in
    w = trial.call({"n_in": n_in, "n_out": n_out, "generator": Seed(trial.draw(seeds()))}).result
    has_form(trial, w, (n_in, n_out), trial.dtype)
    return w, constant(torch.tensor(2 / (n_in + n_out), dtype=torch.float64))


def mean_square(w: torch.Tensor, variance: torch.Tensor) -> torch.Tensor:
    """Return the mean of the squares, in units of the variance."""
    return w.double().square().mean() / variance


def mean(w: torch.Tensor, variance: torch.Tensor) -> torch.Tensor:
    """Return the mean, in units of the deviation."""
    return w.double().mean() / variance.sqrt()


def _variance(trial: Trial) -> None:
    w, variance = _weights(trial)
    n = w.value.numel()
    trial.assert_within_bound(
        trial.observe(mean_square, w, variance), chance.mean_square(n), "the mean square of the weights"
    )
    trial.assert_within_bound(trial.observe(mean, w, variance), chance.mean(n), "the mean of the weights")


def share_below(w: torch.Tensor, variance: torch.Tensor, deviations: torch.Tensor) -> torch.Tensor:
    """Return the share of weights below a number of deviations."""
    return (w.double() < deviations * variance.sqrt()).double().mean()


def _normality(trial: Trial) -> None:
    w, variance = _weights(trial)
    for z in (-3.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0):
        below = trial.observe(share_below, w, variance, constant(torch.tensor(z, dtype=torch.float64)))
        q = math.erfc(-z / math.sqrt(2)) / 2
        trial.assert_within_bound(below, chance.share(w.value.numel(), q), f"the share of weights below {z} deviations")


def like_signed(w: torch.Tensor, axis: torch.Tensor) -> torch.Tensor:
    """Return the share of equally signed pairs by their distance along an axis, from 1 on."""
    sign = torch.where(w > 0, 1.0, -1.0).double().movedim(int(axis), 0)
    n, across = sign.shape[0], sign[0].numel()
    spectrum = torch.fft.rfft(sign.reshape(n, across), n=2 * n, dim=0)
    alike = torch.fft.irfft((spectrum * spectrum.conj()).real.sum(1), n=2 * n)[1:n].round()
    share: torch.Tensor = (1 + alike / (across * torch.arange(n - 1, 0, -1))) / 2
    return share


def like_signed_across(w: torch.Tensor) -> torch.Tensor:
    """Return the share of pairs, mirrored at the diagonal, of one sign."""
    i, j = torch.tril_indices(w.shape[0], w.shape[1], -1)
    return ((w[i, j] > 0) == (w[j, i] > 0)).double().mean()


def _independence(trial: Trial) -> None:
    w, variance = _weights(trial)
    trial.assert_within_bound(
        trial.observe(mean_square, w, variance), chance.mean_square(w.value.numel()), "the mean square"
    )
    shape = tuple(w.value.shape)
    for axis in (0, 1):  # signs are independent, and so are the pairs at one distance: no product of them is another
        observed = trial.observe(like_signed, w, constant(torch.tensor(axis)))
        apart = np.arange(shape[axis] - 1, 0, -1) * shape[1 - axis]
        trial.assert_within_bound(observed, chance.shares(apart, 0.5), f"pairs along axis {axis} of one sign")
    square = trial.call({"n_in": _SQUARE, "n_out": _SQUARE, "generator": Seed(trial.draw(seeds()))}).result
    has_form(trial, square, (_SQUARE, _SQUARE), trial.dtype)
    mirrored = trial.observe(like_signed_across, square)
    trial.assert_within_bound(
        mirrored, chance.share(_SQUARE * (_SQUARE - 1) // 2, 0.5), "pairs across the diagonal of one sign"
    )


def _generator(trial: Trial) -> None:
    seed = trial.draw(seeds())
    arguments: dict[str, Any] = {"n_in": trial.draw(sizes(2)), "n_out": trial.draw(sizes(2)), "generator": Seed(seed)}
    one, two = trial.call(arguments).result, trial.call(arguments).result
    other = trial.call({**arguments, "generator": Seed(seed + 1)}).result
    a, b, c = (w.expression for w in (one, two, other))
    trial.assert_true(torch.equal(one.value, two.value), "equal states give other weights", f"torch.equal({a}, {b})")
    trial.assert_true(
        not torch.equal(one.value, other.value), "another state changes nothing", f"not torch.equal({a}, {c})"
    )
    call = trial.target.operation("xavier_normal")
    assert call is not None
    made = f"target.xavier_normal({arguments['n_in']}, {arguments['n_out']}"
    generator = torch.Generator().manual_seed(seed)
    first, second = (call(arguments["n_in"], arguments["n_out"], generator=generator) for _ in range(2))
    twice = f"[{made}, generator=g) for g in [torch.Generator().manual_seed({seed})] * 2]"
    trial.assert_true(not torch.equal(first, second), "a generator does not move on", f"not torch.equal(*{twice})")
    with torch.random.fork_rng():
        seeded = []
        for _ in range(2):
            torch.manual_seed(seed)
            seeded.append(call(arguments["n_in"], arguments["n_out"]))
        later = call(arguments["n_in"], arguments["n_out"])
    said = f"torch.equal(*[(torch.manual_seed({seed}), {made}))[1] for _ in range(2)])"
    trial.assert_true(torch.equal(*seeded), "PyTorch's own generator does not decide", said)
    moves = f"not torch.equal({made}), {made}))"
    trial.assert_true(not torch.equal(seeded[0], later), "two calls without a generator give the same", moves)


_ALGEBRA = ("fp64", "fp32")


CHECKS = (
    check("xavier_normal.contract", _contract, effort=0.25),
    check("xavier_normal.numpy_numbers", _numpy_numbers, effort=0.25, dtypes=("fp32",)),
    check("xavier_normal.variance", _variance, effort=0.5, dtypes=_ALGEBRA),
    check("xavier_normal.normality", _normality, effort=0.25, dtypes=_ALGEBRA),
    check("xavier_normal.independence", _independence, effort=0.5, dtypes=_ALGEBRA),
    check("xavier_normal.generator", _generator, effort=0.5, dtypes=_ALGEBRA),
)

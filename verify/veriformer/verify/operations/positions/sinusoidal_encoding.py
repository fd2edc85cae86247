"""Sinusoidal encodings: their record and their laws."""

from __future__ import annotations

import numpy as np
import torch

from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.outcome import Observation
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import call_within_bound
from veriformer.verify.laws.equality import slice_result
from veriformer.verify.laws.family import check
from veriformer.verify.operations.derived import operation
from veriformer.verify.operations.positions.encodings import ALGEBRA, SLACK
from veriformer.verify.strategies import choice, sizes


def draw_sinusoidal(trial: Trial) -> Arguments:
    """Draw any number of positions, also none, of an even width."""
    large = trial.sizes({"positions": (1, 10000), "pairs": (1, 500)}, lambda s: 4 * s["positions"] * s["pairs"])
    n, d = trial.draw(sizes(0, 9)), trial.draw(choice(4, 2, 6, 8, 10))
    n, d = (n, d) if large is None else (large["positions"], 2 * large["pairs"])
    return {"num_positions": n, "d_model": d, **trial.option("base", None, 100.0, 500.0, 1e6, 10000)}


def _changed_sinusoidal(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    a: Arguments = {"num_positions": trial.draw(sizes(3)), "d_model": 6, "base": 100.0}
    return a, {"base": {**a, "base": 30.0}}


SINUSOIDAL_ENCODING = operation(
    "sinusoidal_encoding",
    sample=draw_sinusoidal,
    sample_basic=lambda trial: {"num_positions": trial.draw(sizes(2)), "d_model": trial.draw(choice(4, 6))},
    argument_perturbations=_changed_sinusoidal,
    sample_large=draw_sinusoidal,
    structural_dtypes=("fp32", "bf16"),
)


# Sinusoidal encodings
def _encoding(trial: Trial) -> tuple[Observation, Reference]:
    n, d = trial.draw(sizes(4, 12)), trial.draw(choice(4, 6, 2, 8))
    options = trial.option("base", None, 100.0, 1e6)
    return call_within_bound(trial, SINUSOIDAL_ENCODING, {"num_positions": n, "d_model": d, **options})


def unturned(pe: torch.Tensor, turned: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Return rows k later, less the rows turned by what row k holds, in float64."""
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
    bound = np.concatenate((b[k:, 0::2] + sines, b[k:, 1::2] + cosines), -1) * (1 + SLACK) + 2.0**-48
    law = Reference(np.zeros_like(bound), bound, scale=1.0, constant=True)
    observed = trial.observe(
        unturned, pe, slice_result(pe, (slice(k, None),)), Observation(torch.tensor(k), f"torch.tensor({k})")
    )
    trial.assert_within_bound(observed, law, f"rows {k} later, less the rows turned by row {k}")


def gram_steps(pe: torch.Tensor) -> torch.Tensor:
    """Return inner products of rows, less those of the rows after them, in float64."""
    products = pe.double() @ pe.double().mT
    return products[1:, 1:] - products[:-1, :-1]


def squared_lengths(pe: torch.Tensor) -> torch.Tensor:
    """Return the sums of squares of rows, in float64."""
    return pe.double().square().sum(-1)


def _offset(trial: Trial) -> None:
    pe, reference = _encoding(trial)
    size, d = np.abs(reference.exact) + reference.bound, reference.exact.shape[1]
    slack = size @ reference.bound.T
    slack = slack + slack.T + SLACK * (size @ size.T)
    bound = slack[1:, 1:] + slack[:-1, :-1]
    law = Reference(np.zeros_like(bound), bound, scale=float(d), constant=True)
    trial.assert_within_bound(trial.observe(gram_steps, pe), law, "inner products of rows at equal distances")
    lengths = Reference(np.full(len(slack), d / 2), np.diag(slack).copy(), constant=True)
    trial.assert_within_bound(trial.observe(squared_lengths, pe), lengths, "squared lengths of rows")


CHECKS = (
    check("sinusoidal_encoding.shift", _shift, dtypes=ALGEBRA),
    check("sinusoidal_encoding.offset", _offset, dtypes=ALGEBRA),
)

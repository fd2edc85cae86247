"""ALiBi's slopes: their record and their laws."""

from __future__ import annotations

import numpy as np
import torch

from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.trial import Trial
from veriformer.verify.laws.agreement import call_within_bound
from veriformer.verify.laws.family import check
from veriformer.verify.operations.derived import operation
from veriformer.verify.operations.positions.encodings import ALGEBRA, SLACK, slopes_by_ratio
from veriformer.verify.strategies import choice

HEADS = (3, 1, 2, 4, 5, 6, 7, 8, 12, 16, 20, 32, 71, 112)


ALIBI_SLOPES = operation(
    "alibi_slopes",
    sample=lambda trial: {"num_heads": trial.draw(choice(*HEADS))},
    sample_basic=lambda trial: {"num_heads": trial.draw(choice(4, 8, 2))},
    also=(slopes_by_ratio,),
    structural_dtypes=("fp32", "bf16"),
)


# ALiBi
def step_ratios(m: torch.Tensor) -> torch.Tensor:
    """Return each slope less the one before times the first, and the last less 1/256, in float64."""
    m = m.double()
    return torch.cat((m[1:] - m[:-1] * m[0], m[-1:] - 2.0**-8))


def _geometric(trial: Trial) -> None:
    m, reference = call_within_bound(trial, ALIBI_SLOPES, {"num_heads": trial.draw(choice(4, 8, 2, 1, 16, 32))})
    size, b = np.abs(reference.exact) + reference.bound, reference.bound
    bound = np.append(b[1:] + b[:-1] * size[0] + size[:-1] * b[0] + SLACK * size[1:], b[-1])
    law = Reference(np.zeros_like(bound), bound, scale=2.0**-8, constant=True)
    trial.assert_within_bound(trial.observe(step_ratios, m), law, "slopes against the first times the slope before")


def joined(m: torch.Tensor, below: torch.Tensor, above: torch.Tensor) -> torch.Tensor:
    """Return slopes, less those of the power below and every other one of the power above, in float64."""
    wanted = torch.cat((below, above[::2]))[: m.shape[0]]
    return m.double() - wanted.double()


def _any_heads(trial: Trial) -> None:
    heads = trial.draw(choice(3, 5, 6, 7, 12, 20, 71, 112))
    below = 1 << (heads.bit_length() - 1)
    found = [call_within_bound(trial, ALIBI_SLOPES, {"num_heads": number}) for number in (heads, below, 2 * below)]
    (_, own), (_, lower), (_, upper) = found
    bound = own.bound + np.concatenate((lower.bound, upper.bound[::2]))[:heads]
    law = Reference(np.zeros_like(bound), bound * (1 + SLACK), scale=2.0**-8, constant=True)
    trial.assert_within_bound(trial.observe(joined, *(m for m, _ in found)), law, "slopes of other numbers of heads")


CHECKS = (
    check("alibi_slopes.geometric", _geometric, dtypes=ALGEBRA),
    check("alibi_slopes.any_heads", _any_heads, dtypes=ALGEBRA),
)

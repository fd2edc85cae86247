"""Measured noise floors: how far rounding alone moves what a black box computes.

No bound can be derived for a model of which nothing but its call is known. So the same computation is repeated with
every parameter and every intermediate result moved by a random relative error of one roundoff (Monte-Carlo arithmetic,
after Parker, and Vignes' CESTAC). Two ways that must agree over the reals may differ by what that explains, no more.

The statement. Way $a$ gives $a_0$ as it is, and $a_1 … a_m$ with errors put in; way $b$ likewise. A cell is a vector of
them that is judged as a whole (the logits at one position, the gradient of one parameter). In it

    s_a² = (1/m) Σ_k ‖a_k − a_0‖²,   and s_b² likewise,   and   d = ‖a_0 − b_0‖.

Suppose that rounding moves both ways as the errors that were put in do, or less: then each deviation is, to first
order in the roundoff, a centred Gaussian vector of some covariance Σ_a, Σ_b, and $a_0 − b_0$ one of covariance
Σ_a + Σ_b. How fast the tail of d²/(s_a² + s_b²) falls depends on how many directions share that variance. It falls
slowest where one direction has all of it and one of the two ways nearly all the noise (for quadratic forms of
Gaussians one term has the heaviest tail: Székely and Bakirov, 2003); then the ratio is F(1, m), the square of
Student's t with m degrees of freedom. Hence, with N cells in a judgement,

    P(d > c √(s_a² + s_b²) in any cell) ≤ ERROR_RATE   for   c = t_m⁻¹(1 − ERROR_RATE / 2N).

The errors put in are uniform between minus and plus one unit in the last place, 1.15 u in the mean square, where
rounding commits at most u. Whole numbers are left alone: masks, positions and counts are exact.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from scipy.special import stdtrit
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from veriformer.verify.judging.judge import Floats

ERROR_RATE = 1e-7
"""How often a judgement may accuse two ways that differ by rounding."""

RUNS = 4
"""Perturbed runs of each way."""

_EXACT = frozenset(
    [
        "clone",
        "cat",
        "stack",
        "where",
        "masked_fill",
        "embedding",
        "index",
        "gather",
        "expand",
        "copy",
        "_to_copy",
        "repeat_interleave",
        "select_backward",
        "slice_backward",
        "index_put",
        "scatter",
        "scatter_add",
        "full",
        "full_like",
        "zeros",
        "zeros_like",
        "ones",
        "ones_like",
        "empty",
        "empty_like",
        "empty_strided",
        "new_zeros",
        "new_ones",
        "new_full",
        "new_empty",
        "new_empty_strided",
        "arange",
        "scalar_tensor",
        "lift_fresh",
        "lift_fresh_copy",
        "bernoulli",
        "rand",
        "rand_like",
        "randn",
        "uniform",
        "normal",
        "native_dropout",
        "constant_pad_nd",
        "tril",
        "triu",
        "repeat",
        "neg",
        "abs",
        "relu",
        "amax",
        "max",
        "maximum",
        "minimum",
        "clamp",
        "sort",
        "topk",
        "round",
        "floor",
        "ceil",
        "sign",
        "fill",
        "zero",
        "roll",
        "flip",
        "masked_fill_backward",
        "_local_scalar_dense",
    ]
)
"""Operations that move, choose or draw numbers and so commit no error."""


class Roundoff(TorchDispatchMode):
    """While it is entered, every operation commits a random relative error of one unit in the last place.

    coarse: the unit in the last place where a wider one than the result's own is wanted.
    """

    supports_higher_order_operators = True

    def __init__(self, seed: int, coarse: float = 0.0) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)
        self.coarse = coarse

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if _inexact(func):
            first = result[0] if isinstance(result, tuple | list) else result
            if isinstance(first, torch.Tensor) and first.is_floating_point():
                self._move(first)
        return result

    def _move(self, x: torch.Tensor) -> None:
        amplitude = max(torch.finfo(x.dtype).eps, self.coarse)
        factor = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        factor.uniform_(-amplitude, amplitude, generator=self.generator).add_(1)
        x.mul_(factor.masked_fill_(x == x.round(), 1))


@cache
def _inexact(func: Any) -> bool:
    """Whether an operation commits an error of its own. FlexAttention, which has no schema, is a kernel like others."""
    if not hasattr(func, "_schema"):
        return True
    name = func._schema.name.split("::")[-1].rstrip("_")
    views = any(r.alias_info is not None and not r.alias_info.is_write for r in func._schema.returns)
    return not views and name not in _EXACT and any("Tensor" in str(a.type) for a in func._schema.arguments)


def moved(model: nn.Module, seed: int, coarse: float = 0.0) -> nn.Module:
    """A copy of a model with a random error of one unit in the last place in every parameter and buffer."""
    generator = torch.Generator().manual_seed(seed)
    other = copy.deepcopy(model)
    with torch.no_grad():
        for x in (*other.parameters(), *other.buffers()):
            if x.is_floating_point():
                amplitude = max(torch.finfo(x.dtype).eps, coarse)
                noise = torch.rand(x.shape, generator=generator, dtype=torch.float64) * 2 - 1
                x.copy_((x.double() * (1 + amplitude * noise)).to(x.dtype))
    return other


def cells(result: Any) -> list[Floats]:
    """What a way gave, as the vectors that are judged one by one."""
    if isinstance(result, list | tuple):
        return [cell for part in result for cell in cells(part)]
    values: Floats = result.detach().to("cpu", torch.float64).numpy()
    return list(values.reshape(-1, values.shape[-1]))


Way = Callable[..., Any]


def spread(
    way: Way, given: Mapping[str, Any], model: nn.Module, moved: Sequence[nn.Module], seed: int, coarse: float = 0.0
) -> Floats:
    """The mean squared deviation of each cell from that of the model, over one perturbed run of each moved model.

    Every run draws the same random numbers, so that what a model draws at random is no noise of rounding.
    """
    base = _run(way, given, model)
    squares = np.zeros(len(base))
    for i, other in enumerate(moved):
        with torch.compiler.set_stance("force_eager"), Roundoff(seed + i, coarse):  # a compiler would bypass the mode
            found = _run(way, given, other)
        squares += [float(np.square(a - b).sum()) for a, b in zip(found, base, strict=True)]
    means: Floats = squares / len(moved)
    return means


def _run(way: Way, given: Mapping[str, Any], model: nn.Module) -> list[Floats]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return cells(way(model, **{key: _copied(value) for key, value in given.items()}))


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value


def factor(runs: int, judged: int, rate: float = ERROR_RATE) -> float:
    """How many spreads two ways may differ by: Student's t, two-sided, at the error rate shared among the cells."""
    return float(stdtrit(runs, 1 - rate / (2 * max(1, judged))))

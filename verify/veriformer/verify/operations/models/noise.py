"""Measured noise floors: sensitivity of a black box to rounding errors.

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

With few runs c is large: 4 know so little of a spread that c is in the hundreds. So runs are doubled until every cell
is either within FACTOR spreads or beyond c of them, which 32 to 64 always decide. Each look has its share of the rate.

Where nothing may flow from what two calls differ in, more can be seen. In most implementations the difference is zero,
bit for bit. In the others it is made of rounding alone and has no mean; so the mean of m runs, in each of which both
calls commit the same errors, is held against its own spread, by Student's t again (``vanishing``). To first order the
same is true of two ways that must agree: theirs is asked for where they are further apart than rounding usually brings
them, for it takes many runs.

The errors put in are uniform between minus and plus one unit in the last place, 1.15 u in the mean square, where
rounding commits at most u. A cast to a narrower dtype is a rounding like others, and so is one to a whole number, as
where a cache is quantised. Whole numbers are left alone: masks, positions and counts are exact.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from veriformer.verify.judging import students_t
from veriformer.verify.judging.judge import Floats

ERROR_RATE = 1e-7
"""Probability that a judgement accuses two ways that differ by rounding."""

RUNS = 4
"""Perturbed runs of each way to begin with; they are doubled while the judgement needs more."""

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
"""Operations that move, choose or draw numbers and so commit no error, but for what Roundoff says of some of them."""


class Roundoff(TorchDispatchMode):
    """While it is entered, every operation commits a random relative error of one unit in the last place.

    coarse: the unit in the last place where a wider one than the result's own is wanted.
    """

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False: the wrapper that keeps a compiler away costs more than most operations, and no compiler is at
        work.
        """
        return False

    def __init__(self, seed: int, coarse: float = 0.0) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)
        self.coarse = coarse

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = _name(func)
        if name == "round" and len(args) == 1 and not kwargs and args[0].is_floating_point():
            return self._round(func, args[0])
        result = func(*args, **(kwargs or {}))
        if _narrows(name, args, result) if name in _COPIES else inexact(func):
            first = result[0] if isinstance(result, tuple | list) else result
            if isinstance(first, torch.Tensor) and first.is_floating_point():
                self._move(first)
        return result

    def _round(self, func: Any, x: torch.Tensor) -> Any:
        """Round up or down at random, with the probability that the fraction gives."""
        noise = self._uniform(x, 0.5)
        return func(x.add_(noise) if func._schema.is_mutable else x + noise)

    def _move(self, x: torch.Tensor) -> None:
        eps = torch.finfo(x.dtype).eps
        wide = x.float() if x.dtype.itemsize == 1 else x  # nothing is computed in a byte
        exact = (wide == wide.round()) & (wide.abs() < 1 / eps)  # from there on every number is whole
        factor = self._uniform(wide, max(eps, self.coarse)).add_(1)
        x.copy_(wide * factor.masked_fill_(exact, 1))

    def _uniform(self, x: torch.Tensor, amplitude: float) -> torch.Tensor:
        drawn = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        return drawn.uniform_(-amplitude, amplitude, generator=self.generator)


_COPIES = frozenset({"copy", "_to_copy"})
"""Operations that copy, and round where the copy is narrower."""


def _narrows(name: str, args: Sequence[Any], result: Any) -> bool:
    """Return whether a copy has fewer digits than its source."""
    source = args[0] if name == "_to_copy" else args[1]
    if not (isinstance(source, torch.Tensor) and source.is_floating_point() and result.is_floating_point()):
        return False
    return torch.finfo(result.dtype).eps > torch.finfo(source.dtype).eps


@cache
def _name(func: Any) -> str:
    """Return the name of an operation without its overload; of one of higher order, which has no schema, nothing."""
    return func._schema.name.split("::")[-1].rstrip("_") if hasattr(func, "_schema") else ""


@cache
def inexact(func: Any) -> bool:
    """Return whether an operation commits an error of its own; FlexAttention, without a schema, does."""
    if not hasattr(func, "_schema"):
        return True
    views = any(r.alias_info is not None and not r.alias_info.is_write for r in func._schema.returns)
    return not views and _name(func) not in _EXACT and any("Tensor" in str(a.type) for a in func._schema.arguments)


def perturb(model: nn.Module, seed: int, coarse: float = 0.0) -> nn.Module:
    """Return a copy of a model with a random error of one unit in the last place in every parameter and buffer."""
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
    """Return the result of a way as the vectors that are judged one by one."""
    if isinstance(result, list | tuple):
        return [cell for part in result for cell in cells(part)]
    values: Floats = result.detach().to("cpu", torch.float64).numpy()
    return list(values.reshape(-1, values.shape[-1]))


Way = Callable[..., Any]


class Spread:
    """Sensitivity of a way's result to roundoff, over a given number of perturbed runs.

    Every run draws the same random numbers, so that what a model draws at random is no noise of rounding.
    moved: by its number, a copy of the model whose parameters carry a roundoff. coarse: as for Roundoff.
    """

    def __init__(
        self,
        way: Way,
        given: Mapping[str, Any],
        model: nn.Module,
        moved: Callable[[int], nn.Module],
        seed: int,
        coarse: float = 0.0,
    ) -> None:
        self._ask = lambda one: _run(way, given, one)
        self._model, self._moved, self._seed, self._coarse = model, moved, seed, coarse
        self._deviations: list[Floats] = []

    @cached_property
    def _base(self) -> list[Floats]:
        return self._ask(self._model)

    def squares(self, runs: int) -> Floats:
        """Return the mean squared deviation of each cell from that of the model, over so many runs."""
        for i in range(len(self._deviations), runs):
            pairs = zip(self.run(i), self._base, strict=True)
            squares = np.asarray([float(np.square(a - b).sum()) for a, b in pairs])
            self._deviations.append(np.where(np.isnan(squares), np.inf, squares))  # it left the range: nothing is known
        means: Floats = np.mean(self._deviations[:runs], axis=0)
        return means

    def run(self, number: int) -> list[Floats]:
        """Return the cells of one perturbed run. Equal numbers commit equal errors in calls of equal shapes."""
        other = self._moved(number)
        # A compiler would bypass the mode.
        with torch.compiler.set_stance("force_eager"), Roundoff(self._seed + number, self._coarse):
            return self._ask(other)


def _run(way: Way, given: Mapping[str, Any], model: nn.Module) -> list[Floats]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return cells(way(model, **{key: _copied(value) for key, value in given.items()}))


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value


def factor(runs: int, judged: int, rate: float = ERROR_RATE) -> float:
    """Return the admitted number of spreads: Student's t, two-sided, the error rate shared among cells."""
    return students_t.quantile(runs, 1 - rate / (2 * max(1, judged)))

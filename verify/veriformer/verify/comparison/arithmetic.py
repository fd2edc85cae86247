"""The rounding errors that a computation may commit, whatever the order in which it adds, put in at random.

PyTorch's kernels add in blocks, others one after the other; what both may differ by is not seen where only the result
of a kernel is moved. So kernels that are made of several steps are taken apart by PyTorch's own decompositions, and
what adds K terms t_k commits the error of recursive summation. Each partial sum S_k is rounded, which adds
u² S_k² / 3 to the variance. For terms of one sign S_k grows like k, for terms of random sign like √k; so

    Σ_k S_k² ≤ (K / 3) S_K²  and  ≈ (K / 2) Σ t_k²,

and the error put in has the variance u² (K / 3) (S_K² + Σ t_k²), where Σ t_k² is the same operation on squares.
Tables say which kinds of error a kernel commits.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch

from veriformer.verify.operations.models.noise import Roundoff, inexact

TAKEN_APART = frozenset(
    (
        *("gelu", "silu", "softplus", "mish", "elu", "log_sigmoid_forward", "glu", "hardswish", "hardsigmoid"),
        *("native_layer_norm", "native_group_norm", "native_batch_norm", "_native_batch_norm_legit"),
        *("_native_batch_norm_legit_no_training", "_batch_norm_with_update", "_fused_rms_norm"),
        *("_softmax", "_log_softmax", "logsumexp", "var", "std", "var_mean", "std_mean", "linalg_vector_norm", "norm"),
        *("addcmul", "addcdiv", "lerp", "_scaled_dot_product_flash_attention_for_cpu"),
        *("mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "nll_loss_forward"),
        *("_softmax_backward_data", "_log_softmax_backward_data", "gelu_backward", "silu_backward", "elu_backward"),
        *("softplus_backward", "tanh_backward", "sigmoid_backward", "mse_loss_backward"),
        *("native_layer_norm_backward", "native_group_norm_backward", "native_batch_norm_backward"),
    )
)
"""Kernels of several steps, which commit the errors of each."""

OF_ARGUMENT = frozenset(
    (
        *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "pow", "sqrt", "rsqrt", "sigmoid", "polar"),
        *("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
        *("erf", "erfc", "erfinv", "special_erfcx", "lgamma", "digamma"),
    )
)
"""Functions whose argument others may have rounded on the way, as 2^(x log₂ e) does for e^x."""

ON_INTEGERS = frozenset(
    ["add", "sub", "mul", "mm", "bmm", "addmm", "baddbmm", "sum", "convolution", "cumsum", "dot", "mv", "rsub"]
)
"""Operations that are exact where all is whole numbers."""

WITHOUT_ERROR = frozenset(
    (
        *("convert_element_type", "broadcast_in_dim", "to", "alias", "set_", "resize_", "new_full", "unbind"),
        *("masked_select", "nonzero", "index_select", "where", "pixel_shuffle", "one_hot"),
        *("argmax", "argmin", "amin", "any", "all", "median", "kthvalue", "mode", "cummax", "cummin", "unique2"),
        *("searchsorted", "bucketize", "isnan", "isinf", "isfinite", "eq", "ne", "lt", "le", "gt", "ge"),
        *("logical_not", "logical_and", "logical_or", "bitwise_not", "nan_to_num", "trunc", "fmod", "frexp"),
        *("max_pool2d_with_indices", "max_pool2d_with_indices_backward", "max_pool3d_with_indices"),
        *("threshold", "threshold_backward", "hardtanh", "hardtanh_backward", "leaky_relu_", "var_mean_"),
        *("view_as_real", "view_as_complex", "complex", "real", "imag", "conj", "_conj"),
        *("reflection_pad1d", "reflection_pad2d", "replication_pad2d", "upsample_nearest2d", "upsample_nearest1d"),
        *("is_pinned", "pin_memory", "_pin_memory"),
    )
)
"""Operations that move or choose numbers, beside those that are known already."""


Args = tuple[Any, ...]
Terms = Callable[[Args, torch.Tensor], float]


def _last_of_first(args: Args, result: torch.Tensor) -> float:
    return float(args[0].shape[-1])


def _last_of_second(args: Args, result: torch.Tensor) -> float:
    return float(args[1].shape[-1])


def _shrunk(args: Args, result: torch.Tensor) -> float:
    return float(args[0].numel() / max(1, result.numel()))


def _of_kernel(args: Args, result: torch.Tensor) -> float:
    return float(args[1].numel() / max(1, args[1].shape[0]))


_SUMS: Mapping[str, Terms] = {
    **dict.fromkeys(("mm", "bmm", "mv", "dot", "vdot"), _last_of_first),
    **dict.fromkeys(("addmm", "baddbmm", "addmv"), _last_of_second),
    **dict.fromkeys(("sum", "mean", "avg_pool1d", "avg_pool2d", "avg_pool3d", "_adaptive_avg_pool2d"), _shrunk),
    **dict.fromkeys(("convolution", "mkldnn_convolution"), _of_kernel),
    **dict.fromkeys(("index_add", "scatter_add"), lambda args, result: float(args[2].numel())),
    "embedding_dense_backward": lambda args, result: float(args[1].numel()),
    "cumsum": lambda args, result: float(args[0].shape[args[1]] if args[0].ndim else 1),
}
"""Operations that add, linear in each tensor: how many terms there are."""


class Arithmetic(Roundoff):
    """Dispatch mode in which every operation commits a random error of this many units in the last place.

    amplitude: how many units. Sums err as those of recursive summation do.
    """

    def __init__(self, seed: int, amplitude: float = 1.0) -> None:
        super().__init__(seed)
        self.amplitude = amplitude

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = _name(func)
        if name in TAKEN_APART or not hasattr(func, "_schema"):
            taken = self._apart(func, args, kwargs)
            if taken is not NotImplemented:
                return taken
        if name in OF_ARGUMENT:
            rounded = tuple(self._rounded(a) if isinstance(a, torch.Tensor) else a for a in args)
            if func._schema.name.endswith("_"):  # it is the argument that is written
                args[0].copy_(rounded[0])
                rounded = (args[0], *rounded[1:])
            args = rounded
        sums = _sums(func, name, args, kwargs)
        result = func(*args, **kwargs)
        if name in WITHOUT_ERROR or not inexact(func):
            return result
        outputs = result if isinstance(result, tuple | list) else (result,)
        for index, x in enumerate(outputs):
            if isinstance(x, torch.Tensor) and (x.is_floating_point() or x.is_complex()):
                with torch.no_grad():
                    self._err(x, name, sums[index] if index < len(sums) else None)
        return result

    def _apart(self, func: Any, args: Args, kwargs: Mapping[str, Any]) -> Any:
        from torch._decomp import decomposition_table  # slow to import, and needed in these processes alone

        made = decomposition_table.get(func)
        if made is None:
            return NotImplemented
        with self:
            return made(*args, **kwargs)

    def _rounded(self, x: torch.Tensor) -> torch.Tensor:
        if not x.is_floating_point() or x.dtype not in (torch.float32, torch.float64):
            return x
        return x * (1 + self._uniform(x, torch.finfo(x.dtype).eps))

    def _room(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Generator | None]:
        """Return an empty tensor for errors of x, in single precision unless x is double, and what draws them."""
        made = torch.empty(x.shape, dtype=torch.float64 if x.dtype == torch.float64 else torch.float32, device=x.device)
        return made, self.generator if x.device.type == "cpu" else None

    def _uniform(self, x: torch.Tensor, unit: float) -> torch.Tensor:
        made, generator = self._room(x)
        return made.uniform_(-unit * self.amplitude, unit * self.amplitude, generator=generator)

    def _normal(self, x: torch.Tensor) -> torch.Tensor:
        made, generator = self._room(x)
        return made.normal_(0, self.amplitude, generator=generator)

    def _err(self, x: torch.Tensor, name: str, summed: _Summed | None) -> None:
        unit = torch.finfo(x.dtype).eps
        if x.is_complex():
            parts = torch.view_as_real(x)
            parts.add_(self._uniform(parts, unit).to(parts.dtype) * x.abs().unsqueeze(-1))
            return
        error = self._uniform(x, unit) * x
        if summed is not None:
            squares, terms = summed
            adding = torch.finfo(torch.float64 if x.dtype == torch.float64 else torch.float32).eps / 2
            size = (squares.double() + x.double().square()).sqrt_().mul_(math.sqrt(terms / 3) * adding)
            error = error + self._normal(x) * size.to(error.dtype)
        if name in ON_INTEGERS:
            error = error.masked_fill((x == x.round()) & (x.abs() < 0.5 / unit), 0)
        x.add_(error.masked_fill_(~error.isfinite(), 0).to(x.dtype))


_Summed = tuple[torch.Tensor, float]
"""Σ t² of every result, and how many terms it has."""


def _sums(func: Any, name: str, args: Args, kwargs: Mapping[str, Any]) -> list[_Summed | None]:
    if name not in _SUMS and name != "convolution_backward":
        return []
    if any(isinstance(a, torch.Tensor) and a.is_complex() for a in args):
        return []
    wide = _extreme(args)
    squares = func(
        *(_squared(value, wide) for value in args), **{key: _squared(value, wide) for key, value in kwargs.items()}
    )
    if name == "convolution_backward":
        gradient, _, weight = args[:3]
        of_weight = gradient.numel() / max(1, gradient.shape[1])
        counts = (weight.numel() / max(1, weight.shape[1]), of_weight, of_weight)
        return [None if x is None else (x.abs(), max(1.0, k)) for x, k in zip(squares, counts, strict=True)]
    terms = max(1.0, _SUMS[name](args, squares))
    if name == "mean" or "avg_pool" in name:
        squares = squares / terms  # the sum of K terms, each of which has been divided by K
    return [(squares.abs(), terms)]


def _name(func: Any) -> str:
    return str(func._schema.name.split("::")[-1].rstrip("_")) if hasattr(func, "_schema") else ""


def _extreme(args: Args) -> bool:
    """Return whether single precision does not hold the squares of products of these."""
    floats = [a for a in args if isinstance(a, torch.Tensor) and a.is_floating_point() and a.numel()]
    largest = [float(a.abs().nan_to_num(0.0, 0.0, 0.0).max()) for a in floats]
    return any(not 2.0**-24 < size < 2.0**24 for size in largest if size)


def _squared(value: Any, wide: bool) -> Any:
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return (value.double() if wide or value.dtype == torch.float64 else value.float()).square()
    return value

"""Shared front end of the backends of attention: one signature, one specification, one list of argument checks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.attention_backends.call import Call
from veriformer.impl.precision import accumulation_dtype, uses_autocast

SPECIFICATION = r"""Let every query gather the values of the keys that match it.

    $$O = \mathrm{dropout}(\mathrm{softmax}(S))\, V, \quad
      S = c \tanh\big(\mathrm{scale}\, Q K^\top / c\big) + \mathrm{bias}, \quad S_{ij} = -\infty \text{ where hidden}$$

    In this order: scale (by default $1/\sqrt{d_k}$), soft-cap, bias, mask, softmax, dropout, values. `mask` is bool,
    True where attention is allowed. `is_causal` aligns at the bottom right: query `i` sees key `j` if
    `j ≤ i + n_k − n_q`, and with `window=w` only if also `j > i + n_k − n_q − w`. Query head `h` reads key head
    `h // (H // G)`. Dropped weights are not renormalised; `generator` draws them (None is PyTorch's global one), and
    only when `training`.

    A query that sees nothing (all hidden, all biases −∞, or no key) gives a zero row with zero gradient. Keys and
    values that a query cannot see may hold NaN or ∞: neither its result nor its gradient changes. That takes a look at
    the values, which a compiler, `vmap` and meta tensors do not allow: there it is not promised.

    Shapes: `q [B, H, n_q, d_k]`, `k [B, G, n_k, d_k]`, `v [B, G, n_k, d_v]` → `[B, H, n_q, d_v]`; `mask` and `bias`
    align to the right with `[B, H, n_q, n_k]`, rank 2 to 4, each axis full or 1. Dtypes: float64, float32, bfloat16,
    float16, the same for q, k and v; halves are accumulated in float32, and `bias` is converted to the dtype of the
    scores. Gradients go to q, k, v and bias. Raises `ValueError` or `TypeError`, naming the argument, for anything
    else, such as a `window` without `is_causal`, `softcap ≤ 0` or a probability outside [0, 1]. Equations 20–24a, 46.
    """


class Attention(Protocol):
    """Signature of every backend."""

    def __call__(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        mask: Tensor | None = None,
        bias: Tensor | None = None,
        is_causal: bool = False,
        window: int | None = None,
        scale: float | None = None,
        softcap: float | None = None,
        dropout_p: float = 0.0,
        training: bool = False,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Attend."""
        ...


@dataclass
class AttentionOptions:
    """The optional arguments of `attention`, checked; mask and bias have rank 4, each axis full or 1."""

    mask: Tensor | None = None
    bias: Tensor | None = None
    is_causal: bool = False
    window: int | None = None
    scale: float | None = None
    softcap: float | None = None
    dropout_p: float = 0.0
    training: bool = False
    generator: torch.Generator | None = None


def check_arguments(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    is_causal: bool = False,
    window: int | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    dropout_p: float = 0.0,
    training: bool = False,
    generator: torch.Generator | None = None,
) -> AttentionOptions:
    """Refuse what `SPECIFICATION` says is refused, and return the optional arguments."""
    shape = _check_tensors(q, k, v)
    return AttentionOptions(
        _check_mask(mask, q, shape),
        None if bias is None else _rank_four("bias", checks.tensor("bias", bias), q, shape),
        checks.flag("is_causal", is_causal),
        _check_window(window, is_causal),
        None if scale is None else checks.finite("scale", scale),
        _check_softcap(softcap),
        checks.probability("dropout_p", dropout_p),
        checks.flag("training", training),
        _check_generator(generator),
    )


def backend(compute: Callable[[Call], Tensor]) -> Attention:
    """Put the checks before a backend, whose docstring tells how it computes what `SPECIFICATION` says."""

    def attention(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        mask: Tensor | None = None,
        bias: Tensor | None = None,
        is_causal: bool = False,
        window: int | None = None,
        scale: float | None = None,
        softcap: float | None = None,
        dropout_p: float = 0.0,
        training: bool = False,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        options = check_arguments(
            q,
            k,
            v,
            mask=mask,
            bias=bias,
            is_causal=is_causal,
            window=window,
            scale=scale,
            softcap=softcap,
            dropout_p=dropout_p,
            training=training,
            generator=generator,
        )
        return without_autocast(compute, _call(q, k, v, options))

    attention.__doc__ = f"{SPECIFICATION}\n    {compute.__doc__}"
    attention.__module__ = compute.__module__
    return attention


def _call(q: Tensor, k: Tensor, v: Tensor, options: AttentionOptions) -> Call:
    return Call(
        q,
        k,
        v,
        options.mask,
        None if options.bias is None else options.bias.to(accumulation_dtype(q.dtype)),
        options.is_causal and _hides(options.window, q.shape[2], k.shape[2]),
        options.window,
        q.shape[3] ** -0.5 if options.scale is None else options.scale,
        options.softcap,
        options.dropout_p if options.training else 0.0,
        options.generator,
    )


def _hides(window: int | None, n_q: int, n_k: int) -> bool:
    """Return whether causality hides anything: the last query alone sees every key in its window."""
    return n_q > 1 or (window is not None and window < n_k)


def without_autocast(compute: Callable[[Call], Tensor], call: Call) -> Tensor:
    """Return `compute(call)`; autocast would take products of float32 back to halves, whose range scores may leave."""
    kind = call.q.device.type
    if uses_autocast(kind):
        with torch.autocast(kind, enabled=False):
            return compute(call)
    return compute(call)


Shape = tuple[int, int, int, int]


def _check_tensors(q: Tensor, k: Tensor, v: Tensor) -> Shape:
    """Return `(B, H, n_q, n_k)`."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        if checks.tensor(name, x).ndim != 4:
            checks.raise_for(name, "rank 4, [batch, heads, length, width]", f"shape {tuple(x.shape)}", "reshape it")
    checks.same_dtype_and_device({"q": q, "k": k, "v": v})
    (B, H, n_q, d_k), (_, G, n_k, _) = q.shape, k.shape
    if d_k == 0:
        checks.raise_for(
            "q", "a width d_k of 1 or more", f"shape {tuple(q.shape)}", "give the queries some coordinates"
        )
    if G == 0 or H % G:
        checks.raise_for("k", f"a number of heads that divides the {H} of q", G, "repeat or drop key heads")
    _check_size("k", k, 0, "batch size", B, "q")
    _check_size("k", k, 3, "width d_k", d_k, "q")
    _check_size("v", v, 0, "batch size", B, "q")
    _check_size("v", v, 1, "number of heads", G, "k")
    _check_size("v", v, 2, "length n_k", n_k, "k")
    return B, H, n_q, n_k


def _check_size(name: str, x: Tensor, axis: int, meaning: str, size: int, other: str) -> None:
    if x.shape[axis] != size:
        got = f"{x.shape[axis]} (shape {tuple(x.shape)})"
        checks.raise_for(
            name, f"{meaning} {size}, as {other} has", got, "nothing is broadcast here, so expand it yourself"
        )


def _check_mask(mask: object, q: Tensor, shape: Shape) -> Tensor | None:
    if mask is None:
        return None
    if not isinstance(mask, Tensor):
        checks.raise_for("mask", "a bool tensor or None", type(mask).__name__, "use torch.tensor(mask)", TypeError)
    if mask.dtype != torch.bool:
        checks.raise_for(
            "mask", "dtype bool, True where visible", mask.dtype, "convert it, or pass it as bias", TypeError
        )
    return _rank_four("mask", mask, q, shape)


def _rank_four(name: str, x: Tensor, q: Tensor, shape: Shape) -> Tensor:
    fits = all(have in (1, full) for have, full in zip(x.shape[::-1], shape[::-1], strict=False))
    if not (2 <= x.ndim <= 4 and fits):
        expected = f"rank 2 to 4, each axis 1 or that of [B, H, n_q, n_k] = {list(shape)}, aligned to the right"
        checks.raise_for(name, expected, f"shape {tuple(x.shape)}", "insert axes of size 1 where it is to be repeated")
    if x.device != q.device:
        checks.raise_for(name, f"device {q.device}, where q lives", x.device, "move one of the two first")
    return x[(None,) * (4 - x.ndim)]


def _check_window(window: int | None, is_causal: bool) -> int | None:
    if window is None:
        return None
    width = checks.integer("window", window, minimum=1)
    if not is_causal:
        advice = "a window ends at the causal edge"
        checks.raise_for("window", "is_causal=True beside it", f"window={window} alone", advice)
    return width


def _check_softcap(softcap: float | None) -> float | None:
    if softcap is None:
        return None
    cap = checks.finite("softcap", softcap)
    if cap <= 0:
        checks.raise_for("softcap", "a number above 0", cap, "pass None for no cap")
    return cap


def _check_generator(generator: object) -> torch.Generator | None:
    if generator is not None and not isinstance(generator, torch.Generator):
        checks.raise_for("generator", "a torch.Generator or None", type(generator).__name__, "make one", TypeError)
    return generator

"""The front that every backend of attention stands behind: one signature, one check, one meaning."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.attention_backends.masks import band
from veriformer.impl.precision import accumulation_dtype


class Attention(Protocol):
    """What every backend looks like from outside."""

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
    ) -> Tensor: ...


@dataclass(frozen=True)
class Call:
    """A call of attention whose arguments have been checked.

    `mask` and `bias` have rank 4, each axis full or 1; `bias` has the accumulation dtype; `scale` is a number; `dropout_p` is 0 unless training;
    `is_causal` is False where it would hide nothing.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    mask: Tensor | None
    bias: Tensor | None
    is_causal: bool
    window: int | None
    scale: float
    softcap: float | None
    dropout_p: float
    generator: torch.Generator | None

    @property
    def shift(self) -> int:
        """How far a query's position is ahead of its index, with the last query at the last key."""
        return self.k.shape[2] - self.q.shape[2]

    @property
    def group(self) -> int:
        """How many query heads read each key head."""
        return self.q.shape[1] // self.k.shape[1]

    def visible(self) -> Tensor | None:
        """Return which query sees which key, bool, broadcastable to `[B, H, n_q, n_k]`; None means all of them."""
        if not self.is_causal:
            return self.mask
        seen = band((0, self.q.shape[2]), (0, self.k.shape[2]), self.shift, self.window, self.q.device)
        return seen if self.mask is None else seen & self.mask

    def poisoned(self) -> bool:
        """Tell whether hidden keys or values might hold NaN or ∞, which a product with a zero weight does not remove."""
        if self.mask is None and not self.is_causal:
            return False
        return any(checks.readable(x) and not bool(x.detach().isfinite().all()) for x in (self.k, self.v))


def backend(compute: Callable[[Call], Tensor]) -> Attention:
    """Put the common front before a backend, whose docstring says how it computes what the front specifies."""

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
        B, H, n_q, _ = _check_tensors(q, k, v)
        shape = (B, H, n_q, k.shape[2])
        p = checks.probability("dropout_p", dropout_p)
        if generator is not None and not isinstance(generator, torch.Generator):
            checks.refuse("generator", "a torch.Generator or None", type(generator).__name__, "make one", TypeError)
        causal, window = _check_causal(is_causal, window, shape)
        call = Call(
            q, k, v, _check_mask(mask, q, shape), _check_bias(bias, q, shape), causal, window,
            q.shape[3] ** -0.5 if scale is None else checks.finite("scale", scale), _check_softcap(softcap),
            p if checks.flag("training", training) else 0.0, generator,
        )  # fmt: skip
        return compute(call)

    attention.__doc__ = f"{SPECIFICATION}\n\n{compute.__doc__}"
    attention.__module__ = compute.__module__
    return attention


SPECIFICATION = r"""Let every query gather the values of the keys that match it.

    $$O = \mathrm{dropout}(\mathrm{softmax}(S))\, V, \quad
      S = c \tanh\big(\mathrm{scale}\, Q K^\top / c\big) + \mathrm{bias}, \quad S_{ij} = -\infty \text{ where hidden}$$

    In this order: scale (by default $1/\sqrt{d_k}$), soft-cap, bias, mask, softmax, dropout, values. `mask` is bool, True
    where attention is allowed. `is_causal` aligns at the bottom right: query `i` sees key `j` if `j ≤ i + n_k − n_q`, and
    with `window=w` only if also `j > i + n_k − n_q − w`. Query head `h` reads key head `h // (H // G)`. Dropped weights
    are not renormalised; `generator` draws them (None is PyTorch's global one), and only when `training`.

    A query that sees nothing (all hidden, all biases −∞, or no key) gives a zero row with zero gradient. Keys and values
    that a query cannot see may hold NaN or ∞: neither its result nor its gradient changes. (That takes a look at the
    values, which a compiler, `vmap` and meta tensors do not allow.)

    Shapes: `q [B, H, n_q, d_k]`, `k [B, G, n_k, d_k]`, `v [B, G, n_k, d_v]` → `[B, H, n_q, d_v]`; `mask` and `bias` align
    to the right with `[B, H, n_q, n_k]`, rank 2 to 4, each axis full or 1. Dtypes: float64, float32, bfloat16, float16,
    the same for q, k and v; halves are accumulated in float32, and `bias` is converted to the dtype of the scores.
    Gradients go to q, k, v and bias. Raises `ValueError` or `TypeError`, naming the argument, for anything else;
    among it a `window` without `is_causal`, `softcap ≤ 0`, and probabilities outside [0, 1]. Equations 20–24a and 46."""


def _check_tensors(q: Any, k: Any, v: Any) -> torch.Size:
    for name, x in (("q", q), ("k", k), ("v", v)):
        if checks.tensor(name, x).ndim != 4:
            checks.refuse(
                name, "rank 4, [batch, heads, length, width]", f"shape {tuple(x.shape)}", "add the missing axes"
            )
    checks.alike({"q": q, "k": k, "v": v})
    (B, H, _, d_k), G = q.shape, k.shape[1]
    if d_k == 0:
        checks.refuse("q", "a width d_k of 1 or more", f"shape {tuple(q.shape)}", "queries without width match nothing")
    if G == 0 or H % G:
        checks.refuse("k", f"a number of heads that divides the {H} of q", G, "repeat or drop key heads")
    _same("k", k, "batch size", 0, "q", B)
    _same("k", k, "width d_k", 3, "q", d_k)
    for axis, meaning in enumerate(("batch size", "number of heads", "length n_k")):
        _same("v", v, meaning, axis, "k", k.shape[axis])
    return q.shape


def _same(name: str, x: Tensor, meaning: str, axis: int, other: str, size: int) -> None:
    if x.shape[axis] != size:
        got = f"{x.shape[axis]} (shape {tuple(x.shape)})"
        checks.refuse(
            name, f"{meaning} {size}, as {other} has", got, "nothing is broadcast here; expand it if you mean it"
        )


def _check_causal(is_causal: bool, window: int | None, shape: tuple[int, ...]) -> tuple[bool, int | None]:
    checks.flag("is_causal", is_causal)
    if window is None:
        return is_causal and shape[2] > 1, None
    checks.integer("window", window, minimum=1)
    if not is_causal:
        checks.refuse(
            "window", "is_causal=True beside it", f"window={window} alone", "a window counts back from a causal edge"
        )
    return shape[2] > 1 or window < shape[3], window


def _check_softcap(softcap: float | None) -> float | None:
    if softcap is not None and checks.finite("softcap", softcap) <= 0:
        checks.refuse("softcap", "a number above 0", softcap, "pass None for no cap")
    return softcap if softcap is None else float(softcap)


def _check_mask(mask: Any, q: Tensor, shape: tuple[int, ...]) -> Tensor | None:
    if mask is None:
        return None
    if not isinstance(mask, Tensor):
        checks.refuse("mask", "a bool tensor or None", type(mask).__name__, "use torch.tensor(mask)", TypeError)
    if mask.dtype != torch.bool:
        checks.refuse(
            "mask", "dtype bool, True where attention is allowed", mask.dtype, "use mask.bool(), or bias", TypeError
        )
    return _rank_four("mask", mask, q, shape)


def _check_bias(bias: Any, q: Tensor, shape: tuple[int, ...]) -> Tensor | None:
    if bias is None:
        return None
    return _rank_four("bias", checks.tensor("bias", bias), q, shape).to(accumulation_dtype(q.dtype))


def _rank_four(name: str, x: Tensor, q: Tensor, shape: tuple[int, ...]) -> Tensor:
    fits = 2 <= x.ndim <= 4 and all(have in (1, full) for have, full in zip(x.shape[::-1], shape[::-1], strict=False))
    if not fits:
        expected = f"rank 2 to 4, each axis 1 or that of [B, H, n_q, n_k] = {list(shape)}, aligned to the right"
        checks.refuse(name, expected, f"shape {tuple(x.shape)}", "insert axes of size 1 where it is to be repeated")
    if x.device != q.device:
        checks.refuse(name, f"device {q.device}, where q lives", x.device, "move one of the two first")
    return x[(None,) * (4 - x.ndim)]

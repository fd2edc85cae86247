"""The contract's argument checks, to put in front of a kernel that has none of its own.

``dress(softmax=kernel, ...)`` gives an implementation: each kernel behind the checks of its operation, with its
optional arguments filled in. Where no front is written below, our own implementation does the refusing. A variant, a
mutant or a wrapped library says what it computes; refusals are said once.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from veriformer import impl
from veriformer.impl import checks

Kernel = Callable[..., Any]


@dataclass(frozen=True, kw_only=True)
class AttentionOptions:
    """The optional arguments of ``attention``, checked; mask and bias have rank 4 and are not expanded."""

    mask: Tensor | None = None
    bias: Tensor | None = None
    is_causal: bool = False
    window: int | None = None
    scale: float | None = None
    softcap: float | None = None
    dropout_p: float = 0.0
    training: bool = False
    generator: torch.Generator | None = None


def dress(claims: Mapping[str, Any] | None = None, /, **kernels: Kernel) -> SimpleNamespace:
    """An implementation of the operations named, each a kernel behind the checks of its operation.

    Raises AttributeError for a name that is no operation.
    """
    operations = {
        name: _FRONTS[name](kernel) if name in _FRONTS else _guarded(name, kernel) for name, kernel in kernels.items()
    }
    return SimpleNamespace(**operations, **({"CLAIMS": dict(claims)} if claims else {}))


def _guarded(name: str, kernel: Kernel) -> Kernel:
    """Kernel: the contract's arguments, by position or name as the contract has them, with their defaults.

    Our own implementation is called first, for what it refuses; random generators are put back as they were, and
    iterators, which it would use up, are made into lists.
    """
    right = getattr(impl, name)
    signature = inspect.signature(right)

    def operation(*arguments: Any, **options: Any) -> Any:
        bound = signature.bind(*arguments, **options)
        bound.apply_defaults()
        bound.arguments.update({k: list(x) for k, x in bound.arguments.items() if isinstance(x, Iterator)})
        with torch.no_grad(), _kept(bound.arguments.get("generator")):
            right(*bound.args, **bound.kwargs)
        return kernel(*bound.args, **bound.kwargs)

    operation.__name__ = operation.__qualname__ = name
    return operation


@contextlib.contextmanager
def _kept(generator: object) -> Iterator[None]:
    """Leave a generator, and PyTorch's global one, as they were found."""
    drawn = generator if isinstance(generator, torch.Generator) else torch.default_generator
    state = drawn.get_state()
    try:
        yield
    finally:
        drawn.set_state(state)


def _softmax(kernel: Kernel) -> Kernel:
    """Kernel: (z, dim) with at least one entry along dim."""

    def softmax(z: Tensor, dim: int = -1) -> Any:
        dim = checks.dimension("dim", dim, checks.tensor("z", z))
        if z.shape[dim] == 0:
            checks.raise_for(
                "z", f"at least one entry along dim={dim}", f"shape {tuple(z.shape)}", "nothing has no softmax"
            )
        return kernel(z, dim)

    return softmax


def _logsumexp(kernel: Kernel) -> Kernel:
    """Kernel: (z, dim) with at least one entry along dim; of nothing it is −∞."""

    def logsumexp(z: Tensor, dim: int = -1) -> Any:
        dim = checks.dimension("dim", dim, checks.tensor("z", z))
        return kernel(z, dim) if z.shape[dim] else z.sum(dim) - torch.inf

    return logsumexp


def _cross_entropy(kernel: Kernel) -> Kernel:
    """Kernel: (logits, target, ignore_index, label_smoothing, reduction)."""

    def cross_entropy(
        logits: Tensor,
        target: Tensor,
        *,
        ignore_index: int = -100,
        label_smoothing: float = 0.0,
        reduction: str = "mean",
    ) -> Any:
        ignore_index = checks.integer("ignore_index", ignore_index)
        label_smoothing = checks.probability("label_smoothing", label_smoothing)
        if reduction not in ("none", "sum", "mean"):
            checks.raise_for("reduction", "'none', 'sum' or 'mean'", repr(reduction), "choose one of them")
        _check_targets(logits, target, ignore_index)
        return kernel(logits, target, ignore_index, label_smoothing, reduction)

    return cross_entropy


def _perplexity(kernel: Kernel) -> Kernel:
    """Kernel: (logits, target, ignore_index) with int64 targets."""

    def perplexity(logits: Tensor, target: Tensor, *, ignore_index: int = -100) -> Any:
        ignore_index = checks.integer("ignore_index", ignore_index)
        _check_targets(logits, target, ignore_index)
        if target.is_floating_point():
            checks.raise_for("target", "int64 classes", target.dtype, "pass the tokens that came", TypeError)
        return kernel(logits, target, ignore_index)

    return perplexity


def _check_targets(logits: Tensor, target: Tensor, ignore_index: int) -> None:
    if checks.tensor("logits", logits).ndim == 0 or logits.shape[-1] == 0:
        checks.raise_for(
            "logits", "shape [..., V] with V of 1 or more", f"shape {tuple(logits.shape)}", "add the classes"
        )
    if not isinstance(target, Tensor):
        checks.raise_for("target", "a torch.Tensor", type(target).__name__, "pass classes or probabilities", TypeError)
    expected = logits.shape if target.is_floating_point() else logits.shape[:-1]
    if target.dtype != torch.int64 and not target.is_floating_point():
        checks.raise_for("target", "int64 classes or probabilities", target.dtype, "use target.long()", TypeError)
    if target.shape != expected:
        checks.raise_for("target", f"shape {tuple(expected)}", f"shape {tuple(target.shape)}", "match it to the logits")
    if checks.can_read_values(target) and target.device.type == "cpu":
        _check_values(logits, target, ignore_index)


def _check_values(logits: Tensor, target: Tensor, ignore_index: int) -> None:
    V = logits.shape[-1]
    if target.is_floating_point():
        if not bool(((target >= 0) & (target <= 1)).all()):
            checks.raise_for("target", "probabilities in [0, 1]", "others", "normalise the target")
    elif not bool(((target == ignore_index) | ((target >= 0) & (target < V))).all()):
        checks.raise_for("target", f"classes in [0, {V}) or {ignore_index}", "others", "check the vocabulary")


def _layer_norm(kernel: Kernel) -> Kernel:
    """Kernel: (x, weight, bias, eps) with weight and bias [d] or None."""

    def layer_norm(x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, *, eps: float = 1e-5) -> Any:
        _check_features(x, {"weight": weight, "bias": bias})
        return kernel(x, weight, bias, checks.nonnegative("eps", eps))

    return layer_norm


def _rms_norm(kernel: Kernel) -> Kernel:
    """Kernel: (x, weight, eps) with weight [d] or None."""

    def rms_norm(x: Tensor, weight: Tensor | None = None, *, eps: float = 1e-6) -> Any:
        _check_features(x, {"weight": weight})
        return kernel(x, weight, checks.nonnegative("eps", eps))

    return rms_norm


def _check_features(x: Tensor, parameters: Mapping[str, Tensor | None]) -> None:
    if checks.tensor("x", x).ndim == 0 or x.shape[-1] == 0:
        checks.raise_for("x", "shape [..., d] with d of 1 or more", f"shape {tuple(x.shape)}", "nothing has no norm")
    for name, parameter in parameters.items():
        if parameter is not None and checks.tensor(name, parameter).shape != x.shape[-1:]:
            got = f"shape {tuple(parameter.shape)}"
            checks.raise_for(name, f"shape {tuple(x.shape[-1:])}", got, "give one number to each feature")
    checks.same_dtype_and_device({"x": x, **parameters})


def _clip_grad_norm(kernel: Kernel) -> Kernel:
    """Kernel: (grads, max_norm) with a list of tensors."""

    def clip_grad_norm(grads: Sequence[Tensor], max_norm: float) -> Any:
        max_norm = checks.nonnegative("max_norm", max_norm)
        if not isinstance(grads, list | tuple):
            checks.raise_for("grads", "a list of tensors", type(grads).__name__, "put them into a list", TypeError)
        return kernel([checks.tensor(f"grads[{i}]", g) for i, g in enumerate(grads)], max_norm)

    return clip_grad_norm


def _causal_mask(kernel: Kernel) -> Kernel:
    """Kernel: (n_q, n_k, window)."""

    def causal_mask(n_q: int, n_k: int, *, window: int | None = None) -> Any:
        n_q, n_k = checks.integer("n_q", n_q, minimum=0), checks.integer("n_k", n_k, minimum=0)
        return kernel(n_q, n_k, None if window is None else checks.integer("window", window, minimum=1))

    return causal_mask


def _attention(kernel: Kernel) -> Kernel:
    """Kernel: (q, k, v, options)."""

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
    ) -> Any:
        full = _check_heads(q, k, v)
        options = AttentionOptions(
            mask=_plane("mask", mask, full),
            bias=_plane("bias", bias, full),
            is_causal=checks.flag("is_causal", is_causal),
            window=_check_window(window, is_causal),
            scale=None if scale is None else checks.number("scale", scale),
            softcap=_check_softcap(softcap),
            dropout_p=checks.probability("dropout_p", dropout_p),
            training=checks.flag("training", training),
            generator=_check_generator(generator),
        )
        return kernel(q, k, v, options)

    return attention


def _cached_attention(kernel: Kernel) -> Kernel:
    """Kernel: (q_new, k_new, v_new, cache, scale, softcap); rows that do not fit are refused by the cache."""

    def cached_attention(
        q_new: Tensor,
        k_new: Tensor,
        v_new: Tensor,
        cache: Any,
        *,
        scale: float | None = None,
        softcap: float | None = None,
    ) -> Any:
        checks.tensor("q_new", q_new)
        _, _, n, _ = _check_heads(q_new, k_new, v_new)
        if k_new.shape[2] != n:
            checks.raise_for("k_new", f"{n} rows, one for each query", k_new.shape[2], "give each new token both")
        scale = None if scale is None else checks.number("scale", scale)
        return kernel(q_new, k_new, v_new, cache, scale, _check_softcap(softcap))

    return cached_attention


def _check_heads(q: Tensor, k: Tensor, v: Tensor) -> tuple[int, ...]:
    for name, x in {"q": q, "k": k, "v": v}.items():
        if checks.tensor(name, x).ndim != 4:
            checks.raise_for(
                name, "rank 4: [batch, heads, n, width]", f"shape {tuple(x.shape)}", "add the missing axes"
            )
    checks.same_dtype_and_device({"q": q, "k": k, "v": v})
    (B, H, n_q, d_k), (_, G, n_k, _) = q.shape, k.shape
    if k.shape != (B, G, n_k, d_k) or d_k == 0:
        checks.raise_for(
            "k", f"shape ({B}, G, n_k, {d_k}) with q's batch and width", f"shape {tuple(k.shape)}", "match it to q"
        )
    if v.shape[:3] != k.shape[:3]:
        checks.raise_for(
            "v", f"shape {tuple(k.shape[:3])} and a width, as k has", f"shape {tuple(v.shape)}", "match it to k"
        )
    if G == 0 or H % G:
        checks.raise_for("k", f"a number of heads that divides the {H} of q", G, "see grouped-query attention")
    return B, H, n_q, n_k


def _plane(name: str, x: Tensor | None, full: tuple[int, ...]) -> Tensor | None:
    if x is None:
        return None
    if not isinstance(x, Tensor):
        checks.raise_for(name, "a torch.Tensor", type(x).__name__, "or leave it out", TypeError)
    if name == "mask" and x.dtype != torch.bool:
        checks.raise_for(name, "a bool tensor", x.dtype, "True means: may attend", TypeError)
    if name == "bias":
        checks.tensor(name, x)
    sizes = zip(reversed(x.shape), reversed(full), strict=False)
    if not 2 <= x.ndim <= 4 or any(have not in (1, want) for have, want in sizes):
        expected = f"rank 2 to 4, each axis that of {full} or 1, aligned to the right"
        checks.raise_for(name, expected, f"shape {tuple(x.shape)}", "add or repeat axes")
    return x[(None,) * (4 - x.ndim)]


def _check_window(window: int | None, is_causal: bool) -> int | None:
    if window is None:
        return None
    if not is_causal:
        checks.raise_for("window", "is_causal=True with it", "is_causal=False", "a window counts back from each query")
    return checks.integer("window", window, minimum=1)


def _check_softcap(softcap: float | None) -> float | None:
    if softcap is not None and checks.number("softcap", softcap) <= 0:
        checks.raise_for("softcap", "a number above 0", softcap, "or None for no cap")
    return softcap


def _check_generator(generator: torch.Generator | None) -> torch.Generator | None:
    if generator is not None and not isinstance(generator, torch.Generator):
        checks.raise_for("generator", "a torch.Generator", type(generator).__name__, "or None", TypeError)
    return generator


def _model(kernel: Kernel) -> Kernel:
    """Kernel: a factory of a whole model, of which nothing is refused."""
    return kernel


_FRONTS: dict[str, Callable[[Kernel], Kernel]] = {
    "softmax": _softmax,
    "logsumexp": _logsumexp,
    "cross_entropy": _cross_entropy,
    "perplexity": _perplexity,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "clip_grad_norm": _clip_grad_norm,
    "causal_mask": _causal_mask,
    "attention": _attention,
    "causal_lm": _model,
    "masked_lm": _model,
    "seq2seq_lm": _model,
    "cached_attention": _cached_attention,
}

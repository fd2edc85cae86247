"""The contract's argument checks, to put in front of a kernel that has none of its own.

``with_validation(softmax=kernel, ...)`` gives an implementation: each kernel behind the checks of its operation, with
its optional arguments filled in. The checks are those of our own implementation, called as functions where it has them
apart, and else by calling its operation first. A variant, a mutant or a wrapped library says what it computes; refusals
are said once.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from veriformer import impl
from veriformer.impl import checks
from veriformer.impl.attention_backends.arguments import AttentionOptions, check_arguments
from veriformer.impl.layers.normalizing import check_vectors
from veriformer.impl.losses.targets import check_classes, check_scores, check_target_probabilities

__all__ = ["AttentionOptions", "RawOp", "with_checks", "with_validation"]

RawOp = Callable[..., Any]


def with_validation(claims: Mapping[str, Any] | None = None, /, **operations: RawOp) -> SimpleNamespace:
    """Wrap raw operations into an implementation that validates their arguments.

    Raises AttributeError for a name that is no operation.
    """
    checked = {
        name: _VALIDATORS[name](raw) if name in _VALIDATORS else _guarded(name, raw) for name, raw in operations.items()
    }
    return SimpleNamespace(**checked, **({"CLAIMS": dict(claims)} if claims else {}))


def with_checks(name: str, right: RawOp, operation: RawOp) -> RawOp:
    """Wrap an operation with the contract's signature, argument checks of that name, and every default filled in.

    right: our own, which names the arguments; where an operation has no checks of its own, it is called first.
    """
    refuse = _VALIDATORS[name](_nothing) if name in _VALIDATORS else None
    signature = inspect.signature(right)

    def checked(*arguments: Any, **options: Any) -> Any:
        if refuse is not None:
            refuse(*arguments, **options)
        bound = signature.bind(*arguments, **options)
        bound.apply_defaults()
        if refuse is None:
            bound.arguments.update({k: list(x) for k, x in bound.arguments.items() if isinstance(x, Iterator)})
            with torch.no_grad(), _kept(bound.arguments.get("generator")):
                right(*bound.args, **bound.kwargs)
        return operation(*bound.args, **bound.kwargs)

    checked.__name__ = checked.__qualname__ = name
    if refuse is not None:
        checked.__signature__ = signature  # type: ignore[attr-defined]
    return checked


def _nothing(*arguments: Any) -> None:
    """Do nothing: the body behind argument checks that run alone."""


def _guarded(name: str, kernel: RawOp) -> RawOp:
    """Wrap a raw operation: the contract's arguments, by position or name as in the contract, with their defaults.

    Our own implementation is called first, for what it refuses; random generators are put back as they were, and
    iterators, which it would use up, are made into lists.
    """
    return with_checks(name, getattr(impl, name), kernel)


@contextlib.contextmanager
def _kept(generator: object) -> Iterator[None]:
    """Leave a generator, and PyTorch's global one, as they were found."""
    drawn = generator if isinstance(generator, torch.Generator) else torch.default_generator
    state = drawn.get_state()
    try:
        yield
    finally:
        drawn.set_state(state)


def _softmax(kernel: RawOp) -> RawOp:
    """Check softmax: (z, dim), at least one entry along dim."""

    def softmax(z: Tensor, dim: int = -1) -> Any:
        dim = checks.dimension("dim", dim, checks.tensor("z", z))
        if z.shape[dim] == 0:
            checks.raise_for(
                "z",
                f"at least one entry along dim={dim}",
                f"shape {tuple(z.shape)}",
                "softmax over an empty axis is undefined",
            )
        return kernel(z, dim)

    return softmax


def _logsumexp(kernel: RawOp) -> RawOp:
    """Check logsumexp: (z, dim); over an empty axis it is −∞, without a call."""

    def logsumexp(z: Tensor, dim: int = -1) -> Any:
        dim = checks.dimension("dim", dim, checks.tensor("z", z))
        return kernel(z, dim) if z.shape[dim] else z.sum(dim) - torch.inf

    return logsumexp


def _cross_entropy(kernel: RawOp) -> RawOp:
    """Check cross-entropy: (logits, target, ignore_index, label_smoothing, reduction)."""

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


def _perplexity(kernel: RawOp) -> RawOp:
    """Check perplexity: (logits, target, ignore_index), int64 targets."""

    def perplexity(logits: Tensor, target: Tensor, *, ignore_index: int = -100) -> Any:
        ignore_index = checks.integer("ignore_index", ignore_index)
        _check_targets(logits, target, ignore_index)
        if target.is_floating_point():
            checks.raise_for("target", "int64 classes", target.dtype, "pass the tokens that came", TypeError)
        return kernel(logits, target, ignore_index)

    return perplexity


def _check_targets(logits: Tensor, target: Tensor, ignore_index: int) -> None:
    check_scores("logits", logits)
    if isinstance(target, Tensor) and target.is_floating_point():
        check_target_probabilities(logits, target)
    else:
        check_classes("target", target, logits, ignore_index, of="logits")


def _layer_norm(kernel: RawOp) -> RawOp:
    """Check LayerNorm: (x, weight, bias, eps), weight and bias [d] or None."""

    def layer_norm(x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, *, eps: float = 1e-5) -> Any:
        check_vectors(x, eps, weight=weight, bias=bias)
        return kernel(x, weight, bias, float(eps))

    return layer_norm


def _rms_norm(kernel: RawOp) -> RawOp:
    """Check RMSNorm: (x, weight, eps), weight [d] or None."""

    def rms_norm(x: Tensor, weight: Tensor | None = None, *, eps: float = 1e-6) -> Any:
        check_vectors(x, eps, weight=weight)
        return kernel(x, weight, float(eps))

    return rms_norm


def _clip_grad_norm(kernel: RawOp) -> RawOp:
    """Check gradient clipping: (grads, max_norm), a list of tensors."""

    def clip_grad_norm(grads: Sequence[Tensor], max_norm: float) -> Any:
        max_norm = checks.nonnegative("max_norm", max_norm)
        if not isinstance(grads, list | tuple):
            checks.raise_for("grads", "a list of tensors", type(grads).__name__, "put them into a list", TypeError)
        return kernel([checks.tensor(f"grads[{i}]", g) for i, g in enumerate(grads)], max_norm)

    return clip_grad_norm


def _causal_mask(kernel: RawOp) -> RawOp:
    """Check the causal mask: (n_q, n_k, window)."""

    def causal_mask(n_q: int, n_k: int, *, window: int | None = None) -> Any:
        n_q, n_k = checks.integer("n_q", n_q, minimum=0), checks.integer("n_k", n_k, minimum=0)
        return kernel(n_q, n_k, None if window is None else checks.integer("window", window, minimum=1))

    return causal_mask


def _attention(kernel: RawOp) -> RawOp:
    """Check attention: (q, k, v, options)."""

    def attention(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Any:
        return kernel(q, k, v, check_arguments(q, k, v, **options))

    attention.__signature__ = inspect.signature(impl.attention)  # type: ignore[attr-defined]
    return attention


def _cached_attention(kernel: RawOp) -> RawOp:
    """Check cached attention: (q_new, k_new, v_new, cache, scale, softcap); the cache refuses rows of another shape."""

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
        options = check_arguments(q_new, k_new, v_new, scale=scale, softcap=softcap)
        if k_new.shape[2] != q_new.shape[2]:
            expected = f"{q_new.shape[2]} rows, one for each query"
            checks.raise_for("k_new", expected, k_new.shape[2], "give each new token both")
        return kernel(q_new, k_new, v_new, cache, options.scale, options.softcap)

    return cached_attention


def _model(kernel: RawOp) -> RawOp:
    """Return a model's factory unchanged: nothing is refused."""
    return kernel


_VALIDATORS: dict[str, Callable[[RawOp], RawOp]] = {
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

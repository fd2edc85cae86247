"""Every check was seen red: for each requirement a small fault that it must catch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests import red_decisions, red_heads, red_layers, red_training
from veriformer.spec.requirements import REQUIREMENTS
from veriformer.verify.checks import ALL
from veriformer.verify.loading import load, wrap
from veriformer.verify.models.subject import OPERATIONS as MODELS
from veriformer.verify.profiles import Profile
from veriformer.verify.results import Status
from veriformer.verify.row import Row, run_row

PROFILE = Profile(name="red", examples=20, shrinks=0, timeout_s=60)
GOOD = load("impl:reference").implementation
Operation = Callable[..., Any]
Fault = Callable[[Operation], Operation]


def changed(change: Callable[[Tensor], Tensor]) -> Fault:
    """The right result, changed; in a list with a norm, every tensor of the list."""

    def fault(op: Operation) -> Operation:
        def broken(*args: Any, **options: Any) -> Any:
            result = op(*args, **options)
            return change(result) if isinstance(result, Tensor) else ([change(x) for x in result[0]], result[1])

        return broken

    return fault


def given(change: Callable[..., Any]) -> Fault:
    """The right operation on changed arguments: ``change(*args, **options)`` returns both."""

    def fault(op: Operation) -> Operation:
        def broken(*args: Any, **options: Any) -> Any:
            args, options = change(*args, **options)
            return op(*args, **options)

        return broken

    return fault


def instead(broken: Operation) -> Fault:
    """Something else: it gets the right operation first, then the arguments."""
    return lambda op: functools.partial(broken, op)


class _WithGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
        ctx.change = change
        return x.clone()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        return ctx.change(g), None


def gradient_of(place: int, change: Callable[[Tensor], Tensor]) -> Fault:
    """The right result; the gradient of one positional argument is changed."""

    def fault(op: Operation) -> Operation:
        def broken(*args: Any, **options: Any) -> Any:
            moved = [_WithGradient.apply(x, change) if i == place else x for i, x in enumerate(args)]
            return op(*moved, **options)

        return broken

    return fault


def without(name: str) -> Fault:
    """An option that is taken and ignored."""
    return given(lambda *args, **options: (args, {k: v for k, v in options.items() if k != name}))


def instead_of(name: str, value: Any) -> Fault:
    """An option that always has this value."""
    return given(lambda *args, **options: (args, {**options, name: value}))


def modifies(op: Operation, *args: Any, **options: Any) -> Any:
    result = op(*args, **options)
    target = args[0][0] if isinstance(args[0], list) else args[0]
    with torch.no_grad():
        target.data.mul_(0.5).add_(1.0)
    return result


def ignores_strides(*args: Any, **options: Any) -> Any:
    def flat(x: Any) -> Any:
        if isinstance(x, list):
            return [flat(item) for item in x]
        if not isinstance(x, Tensor) or x.is_contiguous() or not x.is_floating_point():
            return x
        return x.as_strided(x.shape, torch.empty(x.shape).stride())

    return tuple(flat(x) for x in args), options


def accepts(op: Operation, *args: Any, **options: Any) -> Any:
    try:
        return op(*args, **options)
    except (ValueError, TypeError):
        return torch.zeros(())


def mumbles(op: Operation, *args: Any, **options: Any) -> Any:
    try:
        return op(*args, **options)
    except (ValueError, TypeError):
        raise ValueError("bad input") from None


def by_tiles(op: Operation, x: Tensor, *args: Any, **options: Any) -> Tensor:
    """The second tile of the last axis, or of the rows, is read one entry late."""
    late = x.clone()
    late[..., 512:] = x[..., 511:-1] if x.shape[-1] > 512 else x[..., 512:]
    late[65536:] = x[65535:-1] if len(x) > 65536 else x[65536:]
    return op(late, *args, **options)


def particular(op: Operation, *args: Any, **options: Any) -> Any:
    if any(isinstance(value, np.generic) for value in (*args, *options.values())):
        raise TypeError("expected a Python number")
    return op(*args, **options)


@functools.cache
def remembered(n_q: int, n_k: int, window: int | None = None) -> Tensor:
    return GOOD.causal_mask(n_q, n_k, window=window)


def blurred(x: Tensor) -> Tensor:
    """Rounded to four bits."""
    m, e = torch.frexp(x.double())
    return torch.ldexp((m * 16).round() / 16, e).to(x.dtype)


def mixed(x: Tensor) -> Tensor:
    """A little of everything in everything."""
    return x + 0.01 * x.sum()


def more(x: Tensor) -> Tensor:
    return x * 1.03125


def shifted(x: Tensor) -> Tensor:
    return x + 0.0625


FAMILIES: dict[str, Fault] = {
    "contract": changed(lambda x: x.to(torch.float64 if x.dtype != torch.float64 else torch.float32)),
    "equation": changed(more),
    "gradient": gradient_of(0, shifted),
    "purity": instead(modifies),
    "layout": given(ignores_strides),
    "refusal": instead(accepts),
    "refusal_names_argument": instead(mumbles),
    "batch": changed(mixed),
    "long": instead(by_tiles),
    "numpy_numbers": instead(particular),
    "accuracy": changed(blurred),
}


def naive_softmax(op: Operation, z: Tensor, dim: int = -1) -> Tensor:
    e = z.exp()
    return e / e.sum(dim, keepdim=True)


def naive_logsumexp(op: Operation, z: Tensor, dim: int = -1) -> Tensor:
    return z.exp().sum(dim).log()


def by_place(op: Operation, z: Tensor, dim: int = -1) -> Tensor:
    shape = [1] * z.ndim
    shape[dim] = z.shape[dim]
    return op(z + 0.1 * torch.arange(z.shape[dim]).reshape(shape).to(z.dtype), dim)


def naive_cross_entropy(op: Operation, logits: Tensor, target: Tensor, **options: Any) -> Tensor:
    e = logits.exp()
    return op((e / e.sum(-1, keepdim=True)).log(), target, **options)


def over_all(op: Operation, logits: Tensor, target: Tensor, *, reduction: str = "mean", **options: Any) -> Tensor:
    loss = op(logits, target, reduction="none", **options)
    return {"none": loss, "sum": loss.sum(), "mean": loss.sum() / max(1, loss.numel())}[reduction]


def zero_times_infinity(op: Operation, logits: Tensor, target: Tensor, **options: Any) -> Tensor:
    result = op(logits, target, **options)
    return result * torch.nan if logits.isinf().any() else result


def mean_of_means(op: Operation, logits: Tensor, target: Tensor, **options: Any) -> Tensor:
    half = (len(target) + 1) // 2 if target.ndim else 0
    if not 0 < half < len(target):
        return op(logits, target, **options)
    parts = (op(logits[:half], target[:half], **options), op(logits[half:], target[half:], **options))
    return (parts[0] * parts[1]).sqrt()


def eps_outside(op: Operation, x: Tensor, weight: Any = None, bias: Any = None, *, eps: float = 1e-5) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    y = centred / (centred.square().mean(-1, keepdim=True).sqrt() + eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def one_pass(op: Operation, x: Tensor, weight: Any = None, bias: Any = None, *, eps: float = 1e-5) -> Tensor:
    m = x.mean(-1, keepdim=True)
    y = (x - m) / ((x * x).mean(-1, keepdim=True) - m * m + eps).sqrt()
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def eps_on_root(op: Operation, x: Tensor, weight: Any = None, *, eps: float = 1e-6) -> Tensor:
    y = x / (x.square().mean(-1, keepdim=True).sqrt() + eps)
    return y if weight is None else y * weight


def squares_in_half(op: Operation, x: Tensor, *args: Any, **options: Any) -> Tensor:
    return op(x, *args, **options) * (1 + 0 * x.half().square().sum(-1, keepdim=True).to(x.dtype))


def plus_weight(op: Operation, x: Tensor, weight: Any = None, *args: Any, **options: Any) -> Tensor:
    y = op(x, None, *args[1:], **{k: v for k, v in options.items() if k != "bias"})
    weight = options.get("weight", weight)
    y = y if weight is None else y + weight
    return y + options["bias"] if options.get("bias") is not None else y


def per_tensor(op: Operation, grads: list[Tensor], max_norm: float) -> Any:
    norms = op(grads, max_norm)[1]
    return [op([g], max_norm)[0][0] for g in grads], norms


def naive_clip(op: Operation, grads: list[Tensor], max_norm: float) -> Any:
    norm = sum((g.square().sum() for g in grads), torch.zeros(())).sqrt()
    factor = (max_norm / norm).clamp(max=1)
    return [g * factor for g in grads], norm


def as_set(op: Operation, grads: list[Tensor], max_norm: float) -> Any:
    once = [g for i, g in enumerate(grads) if not any(torch.equal(g, h) for h in grads[:i] if g.shape == h.shape)]
    norm = op(once, max_norm)[1]
    factor = (max_norm / norm).clamp(max=1) if norm > 0 else torch.ones(())
    return [g * factor.to(g.dtype) for g in grads], norm


def in_one_dtype(op: Operation, grads: list[Tensor], max_norm: float) -> Any:
    clipped, norm = op(grads, max_norm)
    return [g.float() for g in clipped], norm


def always_scales(op: Operation, grads: list[Tensor], max_norm: float) -> Any:
    norm = op(grads, max_norm)[1]
    return [g * (min(max_norm, 1e30) / norm) for g in grads], norm


def needs_some(op: Operation, grads: list[Tensor], max_norm: float) -> Any:
    clipped, norm = op(grads, max_norm)
    return clipped, norm if clipped and clipped[0].numel() else norm * torch.nan


def divides_by_zero(op: Operation, grads: list[Tensor], max_norm: float) -> Any:
    norm = op(grads, max_norm)[1]
    return [g / norm * min(max_norm, 1.0) if norm == 0 else g for g in grads], norm


def small_epsilon(op: Operation, grads: list[Tensor], max_norm: float) -> Any:
    norm = op(grads, max_norm)[1]
    return [g * (max_norm / (norm + 1e-6)).clamp(max=1).to(g.dtype) for g in grads], norm


def absolute_units(op: Operation, grads: list[Tensor], max_norm: float) -> Any:
    return op(grads, min(max_norm, 1.0))


def local_mask(op: Operation, n_q: int, n_k: int, *, window: int | None = None) -> Tensor:
    return op(n_q, n_q, window=window)[:, :1].expand(n_q, n_k) if n_q and n_k < n_q else op(n_q, n_k, window=window)


def top_left(op: Operation, n_q: int, n_k: int, *, window: int | None = None) -> Tensor:
    square = max(n_q, n_k)
    return op(square, square, window=window)[:n_q, :n_k]


def wider(op: Operation, n_q: int, n_k: int, *, window: int | None = None) -> Tensor:
    return op(n_q, n_k, window=None if window is None else window + 1)


def attend(change: Callable[..., dict[str, Any]]) -> Fault:
    """Attention with some of its arguments changed, all of them by name."""

    def fault(op: Operation) -> Operation:
        def broken(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
            a = {"q": q, "k": k, "v": v, **options}
            a |= change(**a)
            return op(a.pop("q"), a.pop("k"), a.pop("v"), **a)

        return broken

    return fault


def tiled_heads(*, q: Tensor, k: Tensor, v: Tensor, **_: Any) -> dict[str, Any]:
    r = q.shape[1] // k.shape[1]
    return {"k": k.repeat(1, r, 1, 1), "v": v.repeat(1, r, 1, 1)}


def flipped_last(x: Tensor | None) -> Tensor | None:
    return None if x is None else x.flip(-1)


def read_without_stride(*, mask: Tensor | None = None, q: Tensor, **_: Any) -> dict[str, Any]:
    """A mask [B, 1, …] read as if it were [B, H, …]."""
    if mask is None or mask.ndim < 4 or mask.shape[1] != 1:
        return {}
    b, h = q.shape[:2]
    return {"mask": mask.reshape(-1, *mask.shape[2:])[torch.arange(b * h) % mask.shape[0]].unflatten(0, (b, h))}


def later_tiles_lost(*, q: Tensor, k: Tensor, v: Tensor, **_: Any) -> dict[str, Any]:
    n = torch.arange(k.shape[2])[:, None]
    return {"v": torch.where((n >= 64) & (n < 128), 0.5 * v, v)}


def top_left_attention(*, q: Tensor, k: Tensor, is_causal: bool = False, **o: Any) -> dict[str, Any]:
    if not is_causal or q.shape[2] == k.shape[2]:
        return {}
    seen = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril()
    return {"is_causal": False, "window": None, "mask": seen if o.get("mask") is None else seen & o["mask"]}


def leaks_last(op: Operation, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    result = op(q, k, v, **options)
    return result + 0.01 * v.mean() if options.get("is_causal") else result


def uniform_when_empty(op: Operation, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    result = op(q, k, v, **options)
    return torch.where((result == 0).all(-1, keepdim=True), v.mean(), result) if k.shape[2] else result


def touches_hidden(op: Operation, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    return op(q, k, v, **options) + 0 * v.sum() + 0 * k.sum()


def scores_in_half(op: Operation, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    s = q[:, :1].half() @ k[:, :1].half().mT
    return op(q, k, v, **options) + (0 * s.sum()).to(q.dtype)


def not_low_enough(op: Operation, q: Tensor, k: Tensor, v: Tensor, *, mask: Any = None, **options: Any) -> Tensor:
    if mask is None:
        return op(q, k, v, **options)
    return op(q, k, v, bias=torch.where(mask, 0.0, -1e4).to(q.dtype), **options)


def by_key_place(op: Operation, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    return op(q, k * (1 + 0.05 * torch.arange(k.shape[2], dtype=k.dtype)[:, None]), v, **options)


def squared_keys(*, k: Tensor, **_: Any) -> dict[str, Any]:
    return {"k": k + 0.05 * k * k}


def dropping(change: Callable[..., dict[str, Any]]) -> Fault:
    """Attention whose options are changed where it drops."""
    return attend(lambda **a: change(**a) if a.get("training") and a.get("dropout_p") else {})


def rescaled_kept(op: Operation, q: Tensor, k: Tensor, v: Tensor, **o: Any) -> Tensor:
    p = o.get("dropout_p", 0.0) if o.get("training") else 0.0
    return op(q, k, v, **o) * (1 - p)


def dropped_alike(op: Operation, q: Tensor, k: Tensor, v: Tensor, **o: Any) -> Tensor:
    """One mask for every batch element."""
    if not o.get("training") or not o.get("dropout_p"):
        return op(q, k, v, **o)
    one = torch.eye(k.shape[2], dtype=q.dtype).expand(1, q.shape[1], -1, -1)
    kept = op(0 * q[:1], torch.zeros_like(one)[..., :1].expand(-1, -1, -1, q.shape[3]), one, **o) != 0
    off = {**o, "training": False}
    eye = torch.eye(k.shape[2], dtype=q.dtype).expand(*k.shape[:2], -1, -1)
    weights = op(q, k, eye, **off) * kept / (1 - o["dropout_p"])
    return weights @ v.repeat_interleave(q.shape[1] // k.shape[1], 1)


def fresh_in_backward(op: Operation, q: Tensor, k: Tensor, v: Tensor, **o: Any) -> Tensor:
    """The value of one mask, the gradient of another."""
    if not o.get("training") or not o.get("dropout_p"):
        return op(q, k, v, **o)
    with torch.no_grad():
        value = op(q, k, v, **o)
    other = op(q, k, v, **{**o, "generator": torch.Generator().manual_seed(0)})
    return other + (value - other).detach()


SPECIFIC: dict[str, Fault] = {
    "softmax.sensitivity": without("dim"),
    "softmax.simplex": changed(more),
    "softmax.shift": instead(naive_softmax),
    "softmax.jacobian": gradient_of(0, shifted),
    "softmax.permutation": instead(by_place),
    "softmax.range": instead(naive_softmax),
    "logsumexp.sensitivity": without("dim"),
    "logsumexp.shift": changed(more),
    "logsumexp.between": changed(lambda x: x - 3.0),
    "logsumexp.range": instead(naive_logsumexp),
    "cross_entropy.sensitivity": without("label_smoothing"),
    "cross_entropy.conservation": gradient_of(0, shifted),
    "cross_entropy.ignored": instead(lambda op, z, t, **o: op(z, t, **o) + 0.01 * z.mean()),
    "cross_entropy.reductions": instead(over_all),
    "cross_entropy.smoothing": given(
        lambda *a, label_smoothing=0.0, **o: (a, {**o, "label_smoothing": label_smoothing**2})
    ),
    "cross_entropy.one_hot": given(
        lambda z, t, **o: ((z, t), {**o, "label_smoothing": 0.0} if t.is_floating_point() else o)
    ),
    "cross_entropy.partition": changed(mixed),
    "cross_entropy.range": instead(naive_cross_entropy),
    "cross_entropy.hidden_classes": instead(zero_times_infinity),
    "cross_entropy.no_target": changed(lambda x: torch.where(x == 0, torch.nan, x)),
    "perplexity.sensitivity": without("ignore_index"),
    "perplexity.between": changed(lambda x: 0.5 * x),
    "perplexity.uniform": changed(lambda x: x.log2()),
    "perplexity.counted": given(lambda z, t, **o: ((z + 0.1 * z.mean(), t) if z.ndim > 3 else (z * len(z) / 3, t), o)),
    "perplexity.partition": instead(mean_of_means),
    "perplexity.range": instead(naive_cross_entropy),
    "perplexity.no_target": changed(lambda x: torch.where(x == 1, 0 * x, x)),
    "layer_norm.sensitivity": without("eps"),
    "layer_norm.moments": changed(more),
    "layer_norm.shift": given(lambda x, *a, **o: ((x + 0.1 * x * x, *a), o)),
    "layer_norm.scale": instead(eps_outside),
    "layer_norm.odd": changed(torch.abs),
    "layer_norm.affine": instead(plus_weight),
    "layer_norm.near_eps": instead(eps_outside),
    "layer_norm.constant_rows": instead(eps_outside),
    "layer_norm.range": instead(squares_in_half),
    "layer_norm.conditioning": instead(one_pass),
    "rms_norm.sensitivity": without("eps"),
    "rms_norm.unit": changed(more),
    "rms_norm.scale": instead(eps_on_root),
    "rms_norm.odd": changed(torch.abs),
    "rms_norm.affine": instead(plus_weight),
    "rms_norm.near_eps": instead(eps_on_root),
    "rms_norm.range": instead(squares_in_half),
    "clip_grad_norm.sensitivity": given(lambda grads, max_norm: ((grads, 1.0), {})),
    "clip_grad_norm.direction": changed(shifted),
    "clip_grad_norm.norm_bound": changed(more),
    "clip_grad_norm.identity": instead(always_scales),
    "clip_grad_norm.zero_maximum": given(lambda grads, max_norm: ((grads, max_norm or 1.0), {})),
    "clip_grad_norm.no_gradients": instead(needs_some),
    "clip_grad_norm.zero_gradients": instead(divides_by_zero),
    "clip_grad_norm.range": instead(naive_clip),
    "clip_grad_norm.scale": instead(absolute_units),
    "clip_grad_norm.duplicates": instead(as_set),
    "clip_grad_norm.grouping": instead(per_tensor),
    "clip_grad_norm.mixed_dtypes": instead(in_one_dtype),
    "clip_grad_norm.denominator": instead(small_epsilon),
    "causal_mask.equation": changed(torch.logical_not),
    "causal_mask.sensitivity": without("window"),
    "causal_mask.window": instead(wider),
    "causal_mask.nested": changed(lambda x: x.flip(0)),
    "causal_mask.fresh": lambda op: remembered,
    "causal_mask.alignment": instead(top_left),
    "attention.sensitivity": without("softcap"),
    "attention.scale": without("scale"),
    "attention.softcap": without("softcap"),
    "attention.grouped_heads": attend(tiled_heads),
    "attention.widths": changed(lambda x: x / x.shape[-1]),
    "attention.mask": without("mask"),
    "attention.padding": without("mask"),
    "attention.packing": without("mask"),
    "attention.bias": attend(lambda bias=None, **_: {"bias": flipped_last(bias)}),
    "attention.bias_dtype": attend(lambda bias=None, **_: {"bias": None if bias is None else bias.half().round()}),
    "attention.window": attend(lambda window=None, **_: {"window": None if window is None else window + 1}),
    "attention.alignment": attend(top_left_attention),
    "attention.long": attend(later_tiles_lost),
    "attention.long_windows": attend(later_tiles_lost),
    "attention.causality": instead(leaks_last),
    "attention.causal_is_mask": instead(leaks_last),
    "attention.mask_is_bias": without("mask"),
    "attention.mask_broadcast": attend(read_without_stride),
    "attention.grouped_is_copied": attend(tiled_heads),
    "attention.permutation": instead(by_key_place),
    "attention.key_shift": attend(squared_keys),
    "attention.conservation": gradient_of(1, shifted),
    "attention.scale_balance": gradient_of(0, more),
    "attention.convexity": changed(lambda x: 3.0 * x),
    "attention.linear_in_values": attend(lambda v, **_: {"v": v + 0.05 * v * v}),
    "attention.empty_row": instead(uniform_when_empty),
    "attention.no_query": changed(lambda x: x[..., :0] if x.numel() == 0 else x),
    "attention.hidden_poison": instead(touches_hidden),
    "attention.hidden_scores": instead(not_low_enough),
    "attention.range": instead(scores_in_half),
    "attention.dropout_off": attend(lambda dropout_p=0.0, **_: {"training": True}),
    "attention.dropout_scale": instead(rescaled_kept),
    "attention.dropout_generator": without("generator"),
    "attention.dropout_rate": dropping(lambda dropout_p, **_: {"dropout_p": 1.0 - dropout_p}),
    "attention.dropout_independence": instead(dropped_alike),
    "attention.dropout_gradient": instead(fresh_in_backward),
    "attention.dropout_long": instead(fresh_in_backward),
}


SPECIFIC |= red_layers.SPECIFIC | red_heads.SPECIFIC | red_training.SPECIFIC | red_decisions.SPECIFIC


def fault_of(slug: str) -> Fault | None:
    return SPECIFIC.get(slug) or FAMILIES.get(slug.partition(".")[2])


def test_the_table_covers_every_requirement() -> None:
    slugs = {r.slug for r in REQUIREMENTS if r.operation not in MODELS}  # those have a table of their own
    assert {slug for slug in slugs if fault_of(slug) is None} == set()
    assert set(SPECIFIC) <= slugs


@pytest.mark.parametrize(
    "check", [c for c in ALL if c.operation not in MODELS], ids=lambda check: check.requirement.slug
)
def test_a_fault_is_seen(check: Any) -> None:
    fault = fault_of(check.requirement.slug)
    assert fault is not None
    place = red_heads.ON_CACHES.get(check.requirement.slug, check.operation)
    broken = SimpleNamespace(**{**vars(GOOD), place: fault(getattr(GOOD, place))})
    dtype = "fp32" if "fp32" in check.dtypes else check.dtypes[0]
    result = run_row(Row(check, dtype), wrap(broken), PROFILE, "red", {})
    assert result.status is Status.FAIL, f"{result.status}: {result.message}"

"""Multi-head attention as a record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.spec.arithmetic.vocabulary import Array
from veriformer.spec.heads.multi_head_attention import multi_head_attention, multi_head_attention_vjp
from veriformer.spec.operations import OPERATIONS
from veriformer.verify.judging.op_info import Index, InvalidCall
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.operations.changes import perturbed
from veriformer.verify.operations.derived import invalid_calls, operation
from veriformer.verify.strategies import Values, choice, sizes, values, widths

WEIGHTS = ("w_q", "w_k", "w_v", "w_o")


KINDS = ("gaussian", "integers", "one-signed", "duplicates", "sparse", "ties")
"""Values of ordinary size: peaked scores are attention's own matter."""


class Shape(NamedTuple):
    """Sizes of a call; m and c are the length and the width of the context, None without one."""

    b: int
    n: int
    d: int
    heads: int
    groups: int
    d_k: int
    d_v: int
    d_out: int
    m: int | None = None
    c: int | None = None

    @property
    def keys(self) -> int:
        """Number of keys."""
        return self.n if self.m is None else self.m


RANGES: dict[str, tuple[int, int]] = {
    "batch": (1, 16),
    "n": (1, 400),
    "d": (1, 256),
    "groups": (1, 20),
    "repeats": (1, 8),
    "d_k": (1, 192),
    "d_v": (1, 192),
    "d_out": (1, 256),
    "m": (1, 400),
    "c": (1, 256),
}
"""Smallest and largest size of the axes of a call; heads are groups times repeats."""


def _shape(s: Mapping[str, int]) -> Shape:
    """Return the shape of sizes by their names in ``RANGES``."""
    b, n, d, groups, repeats, *rest = (s[name] for name in RANGES if name in s)
    return Shape(b, n, d, groups * repeats, groups, *rest)


def _work(shape: Shape) -> float:
    """Return the number of scores; 64 products count as one, and so do 4 features or weights."""
    b, n, d, heads, g, d_k, d_v, d_out = shape[:8]
    m, c = shape.keys, d if shape.c is None else shape.c
    into, out = heads * d_k + g * (d_k + d_v), heads * d_v
    products = n * d * heads * d_k + m * c * g * (d_k + d_v) + n * out * d_out + heads * n * m * (d_k + d_v)
    entries = b * (n + m) * (into + d_out + c) + (d + c) * into + out * d_out
    return b * (heads * n * m + products / 64) + entries / 4


def draw_shape(trial: Trial, *, context: bool | None = None, least: int = 1, **ranges: tuple[int, int]) -> Shape:
    """Draw small odd sizes most often; heads are a multiple of groups. context: whether there is one; None draws it."""
    wanted = trial.draw(st.booleans()) and trial.offers("context") if context is None else context
    chosen = {name: r for name, r in ({**RANGES, "n": (least, 400)} | ranges).items() if wanted or name not in "mc"}
    ties = (("d_k", "d_v"), ("d", "d_out"))
    large = trial.sizes(chosen, lambda s: _work(_supported(trial, _shape(s))), ties)
    if large is not None:
        return _supported(trial, _shape(large))
    b, groups, repeats = trial.draw(sizes(1, 2)), trial.draw(sizes(1, 2)), trial.draw(sizes(1, 3))
    n, d, d_k = trial.draw(sizes(least, 4)), trial.draw(widths(4)), trial.draw(widths(3))
    d_v, d_out = trial.draw(sizes(1, 3)), trial.draw(sizes(1, 4))
    other = (trial.draw(sizes(1, 5)), trial.draw(sizes(1, 3))) if wanted else (None, None)
    return _supported(trial, Shape(b, n, d, groups * repeats, groups, d_k, d_v, d_out, *other))


def _supported(trial: Trial, shape: Shape) -> Shape:
    """Return the sizes, or nearby ones that the target takes."""
    grouped = trial.offers("num_kv_heads") and all(map(trial.supports, ("grouped heads", "one key head for several")))
    if not grouped:
        shape = shape._replace(groups=shape.heads)
    if not trial.supports("heads of odd width"):
        shape = shape._replace(d_k=shape.d_k + shape.d_k % 2)
    if not trial.supports("d_v ≠ d_k"):
        shape = shape._replace(d_v=shape.d_k)
    if not trial.supports("heads narrower or wider than d / H"):
        shape = shape._replace(d=shape.heads * shape.d_k)
    if not trial.supports("d_out ≠ d"):
        shape = shape._replace(d_out=shape.d)
    return shape if trial.supports("a context of another width") or shape.c is None else shape._replace(c=shape.d)


def draw_tensors(trial: Trial, shape: Shape, kinds: Sequence[str] = KINDS) -> dict[str, torch.Tensor]:
    """Draw tokens, weights and, where there is one, the context, each of a kind of its own."""
    c = shape.d if shape.c is None else shape.c
    axes: dict[str, tuple[int, ...]] = {
        "x": (shape.b, shape.n, shape.d),
        "w_q": (shape.d, shape.heads * shape.d_k),
        "w_k": (c, shape.groups * shape.d_k),
        "w_v": (c, shape.groups * shape.d_v),
        "w_o": (shape.heads * shape.d_v, shape.d_out),
    }
    if shape.m is not None:
        axes["context"] = (shape.b, shape.m, c)
    return {name: _sized(trial, trial.draw(values(tuple(kinds))), name, axes[name]) for name in axes}


def _sized(trial: Trial, kind: Values, name: str, axes: tuple[int, ...]) -> torch.Tensor:
    """Draw weights that leave the size of what they are multiplied with about as it is."""
    return trial.tensor(kind.array(*axes) * (0.5 if name.startswith("w_") else 1.0))


def counts(trial: Trial, shape: Shape) -> dict[str, Any]:
    """Return the numbers of heads; that of key heads may be left out where it is the same."""
    alike = shape.groups == shape.heads and (trial.draw(st.booleans()) or not trial.offers("num_kv_heads"))
    return {"num_heads": shape.heads} | ({} if alike else {"num_kv_heads": shape.groups})


def draw_mask(trial: Trial, b: int, n: int, *, dtype: torch.dtype = torch.bool) -> torch.Tensor:
    """Draw real tokens and padding, at least one of them real in every row."""
    rng = trial.draw(values()).rng
    real = rng.random((b, n)) < 0.6
    real[range(b), rng.integers(0, n, b)] = True
    real[0] |= b > 1 and rng.random() < 0.25  # the first one may have no padding while others do
    return torch.as_tensor(real).to(dtype)


def draw_multi_head(
    trial: Trial,
    kinds: Sequence[str] = KINDS,
    *,
    n: tuple[int, int] = RANGES["n"],
    m: tuple[int, int] = RANGES["m"],
) -> Arguments:
    """Draw self-attention or cross-attention, causal where every query sees a key, a mask on a context.

    Where nothing is judged but how it is called, a mask over the tokens of self-attention too: rows of its own judge
    that, at real tokens alone.
    """
    shape = draw_shape(trial, n=n, m=m)
    options: dict[str, Any] = counts(trial, shape)
    every_query_sees = shape.keys == shape.n or (shape.keys > shape.n and _bottom_right(trial))
    if trial.draw(st.booleans()) and every_query_sees and trial.supports("is_causal=True"):
        options["is_causal"] = True
    elif shape.m is not None and trial.draw(st.booleans()):
        dtype = trial.draw(choice(torch.bool, torch.int64, torch.float32))
        options["attention_mask"] = draw_mask(trial, shape.b, shape.m, dtype=dtype)
    asked = shape.m is None and trial.probing and trial.offers("attention_mask")
    if asked and trial.draw(choice(False, True, False, "is_causal" not in options)):
        options["attention_mask"] = draw_mask(trial, shape.b, shape.n)
    return {**draw_tensors(trial, shape, kinds), **options}


def _bottom_right(trial: Trial) -> bool:
    return trial.claims.convention("causal.alignment") == "bottom-right"


def _options(a: Mapping[str, Any]) -> dict[str, Any]:
    names = ("num_heads", "num_kv_heads", "context", "attention_mask", "is_causal")
    options = {name: a[name] for name in names if name in a}
    if isinstance(options.get("attention_mask"), Array):  # floating zeros and ones came into the arithmetic as well
        options["attention_mask"] = np.asarray(options["attention_mask"].value, dtype=np.float64) == 1
    return options


def _formula(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [multi_head_attention(xp, a["x"], *(a[name] for name in WEIGHTS), **_options(a))]


def _padded_queries(a: Arguments, part: int) -> Any:
    """Return the mask of padded queries of self-attention, ``[B, n, 1]``, which are unjudged; or None."""
    mask = a.get("attention_mask")
    if mask is None or a.get("context") is not None:
        return None
    return (mask == 0).cpu().numpy()[..., None]


def _vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    found = multi_head_attention_vjp(xp, a["x"], a["w_q"], a["w_k"], a["w_v"], a["w_o"], g, **_options(a))
    return dict(zip(("x", *WEIGHTS, "context"), found, strict=True))


def _ordinary(trial: Trial) -> Arguments:
    shape = draw_shape(trial, context=False)
    return {**draw_tensors(trial, shape, ("gaussian",)), "num_heads": shape.heads, "num_kv_heads": shape.groups}


def _part(trial: Trial) -> tuple[Arguments, Arguments, dict[str, Index]]:
    """Draw a call, and one of its batch elements alone."""
    whole = draw_multi_head(trial)
    i = trial.draw(sizes(0, whole["x"].shape[0] - 1))
    element = (slice(i, i + 1),)
    sliced = [name for name in ("x", "context", "attention_mask") if isinstance(whole.get(name), torch.Tensor)]
    alone = {**whole, **{name: whole[name][element] for name in sliced}}
    return whole, alone, {name: element for name in ("result", *sliced) if name != "attention_mask"}


def _changes(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    kind = trial.draw(values(("gaussian",)))
    n, d = 3, trial.draw(sizes(2, 3))
    shapes = {"x": (1, n, d), "w_q": (d, 4), "w_k": (d, 4), "w_v": (d, 2), "w_o": (2, 3)}
    rng = kind.rng
    tensors = {name: _sized(trial, kind, name, shape) for name, shape in shapes.items()}
    a: Arguments = {**tensors, "num_heads": 2}
    changed: dict[str, Arguments] = {name: {**a, name: perturbed(trial, a[name], rng)} for name in tensors}
    changed["num_heads"] = {**a, "num_heads": 1}
    changed["context"] = {**a, "context": trial.tensor(rng.standard_normal((1, 2, d)))}
    changed["attention_mask"] = {**a, "attention_mask": torch.tensor([[True, True, False]])}
    changed["is_causal"] = {**a, "is_causal": True}
    return a, changed


def _bulk(trial: Trial) -> Arguments:
    trial.only_large(2.0)
    return draw_multi_head(trial, ("gaussian", "sparse"), n=(4, 60), m=(4, 400))


def _long(trial: Trial) -> Arguments:
    """Draw a large call; a third of them are plain."""
    trial.only_large(8.0)
    if trial.draw(choice(False, True, True)):
        return draw_multi_head(trial)
    shape = draw_shape(trial)
    causal = {"is_causal": True} if shape.m is None and trial.draw(st.booleans()) else {}
    counted = {"num_heads": shape.heads, "num_kv_heads": shape.groups}
    return {**draw_tensors(trial, shape, ("gaussian", "sparse")), **counted, **causal}


def _good(trial: Trial) -> Arguments:
    """Draw tokens and weights of grouped heads, of which no two sizes are equal."""
    shape = Shape(b=2, n=3, d=5, heads=4, groups=2, d_k=3, d_v=2, d_out=7)
    return {**draw_tensors(trial, shape, ("gaussian",)), "num_heads": 4, "num_kv_heads": 2}


def _refusals(trial: Trial, good: Arguments) -> Iterator[InvalidCall]:
    x = good["x"]
    for name in ("x", *WEIGHTS):
        yield InvalidCall(f"{name} without an axis", {**good, name: good[name][0]}, (name,))
    yield InvalidCall("rows of w_o for other heads", {**good, "w_o": good["w_o"][:6]}, ("w_o", "w_v"))
    wider, other = good["w_q"].new_zeros(5, 13), good["w_k"].new_zeros(5, 8)
    yield InvalidCall("columns that no heads share", {**good, "w_q": wider}, ("w_q", "w_k", "num_heads"))
    both = ("num_heads", "num_kv_heads")
    yield InvalidCall("keys of another width", {**good, "w_k": other}, ("w_q", "w_k", *both))
    yield InvalidCall("key heads that do not divide", {**good, "num_kv_heads": 3}, both)
    more = {**good, "num_kv_heads": 8, "w_k": good["w_k"].new_zeros(5, 24)}
    yield InvalidCall("more key heads than heads", more, both)
    for name in both:
        yield InvalidCall(f"{name} of 0", {**good, name: 0}, (name,))
    contexts = {"batch": torch.cat((x, x[:1])), "one batch element": x[:1], "width": torch.cat((x, x), -1)}
    for what, context in contexts.items():
        yield InvalidCall(f"a context of {what}", {**good, "context": context}, ("context", "x", "w_k", "w_v"))
    for what, mask in _bad_masks(*x.shape[:2]):
        yield InvalidCall(what, {**good, "attention_mask": mask}, ("attention_mask", "x", "context"))


def _bad_masks(b: int, n: int) -> Iterator[tuple[str, Any]]:
    yield "a mask of another length", torch.ones(b, n + 1, dtype=torch.bool)
    yield "a mask for one batch element", torch.ones(1, n, dtype=torch.bool)
    yield "a mask of rank 3", torch.ones(b, n, n, dtype=torch.bool)
    yield "a mask of other numbers", torch.full((b, n), 2)
    yield "a mask to be added", torch.full((b, n), -1e9)


MULTI_HEAD_ATTENTION = operation(
    "multi_head_attention",
    sample=draw_multi_head,
    sample_basic=_ordinary,
    formulas=(_formula,),
    vjps=(_vjp,),
    invalid_calls=lambda trial: invalid_calls(OPERATIONS["multi_head_attention"], trial, _good(trial), _refusals),
    batch_slice=_part,
    argument_perturbations=_changes,
    unjudged=_padded_queries,
    sample_accuracy=_bulk,
    sample_large=_long,
    dtypes=("fp64", "fp32", "bf16"),
    use_exact_oracle=False,
)

"""Linear attention as a record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import hypothesis.strategies as st
import torch

from veriformer.spec.efficient.linear_attention import FEATURE_MAPS, linear_attention, linear_attention_vjp
from veriformer.verify.judging.op_info import Formula, Index, InvalidCall, Vjp
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.operations.changes import perturbed
from veriformer.verify.operations.derived import operation
from veriformer.verify.strategies import sizes, values, widths

Shape = tuple[int, int, int, int, int, int]
"""B, H, n_q, n_k, d, d_v."""


KINDS = ("integers", "gaussian", "ties", "one-signed", "duplicates", "sparse", "small", "offset")


RANGES: dict[str, tuple[int, int]] = {
    "batch": (1, 32),
    "heads": (1, 32),
    "n_q": (1, 600),
    "n_k": (1, 1200),
    "d": (2, 256),
    "d_v": (1, 256),
}
"""Smallest and largest size of the axes of a call."""


def _work(s: Mapping[str, int]) -> float:
    """Return the number of scores; 64 products count as one, and so do 4 entries of q, k, v or the result."""
    wide = s["d"] + s["d_v"]
    return s["batch"] * s["heads"] * (s["n_q"] * s["n_k"] * (1 + wide / 64) + (s["n_q"] + s["n_k"]) * wide / 4)


def draw_shape(trial: Trial, ranges: Mapping[str, tuple[int, int]] = RANGES, *, least: int = 1) -> Shape:
    """Draw small odd sizes most often, large ones within these ranges."""
    chosen = {**RANGES, **ranges}
    large = trial.sizes(chosen, _work, ties=(("n_q", "n_k"), ("d", "d_v")))
    if large is not None:
        b, h, n_q, n_k, d, d_v = (large[name] for name in chosen)
        return b, h, max(n_q, least), max(n_k, least), d, d_v
    b, h = trial.draw(sizes(1, 3)), trial.draw(sizes(1, 3))
    n_q, n_k = trial.draw(sizes(least, 5)), trial.draw(sizes(least, 6))
    return b, h, n_q, n_k, trial.draw(widths(4)), trial.draw(sizes(1, 4))


def draw_tensors(trial: Trial, shape: Shape, kinds: Sequence[str] = KINDS) -> dict[str, torch.Tensor]:
    """Draw queries, keys and values of this shape, each of a kind of its own."""
    b, h, n_q, n_k, d, d_v = shape
    axes = {"q": (b, h, n_q, d), "k": (b, h, n_k, d), "v": (b, h, n_k, d_v)}
    return {name: trial.tensor(trial.draw(values(tuple(kinds))).array(*axes[name])) for name in axes}


_SMALL = 8


def draw_linear(trial: Trial, kinds: Sequence[str] = KINDS, **ranges: tuple[int, int]) -> Arguments:
    """Draw a call, causal or not, in which every query sees a key."""
    b, h, n_q, n_k, d, d_v = draw_shape(trial, ranges)
    causal = trial.draw(st.booleans())
    bottom_right = trial.claims.convention("causal.alignment") == "bottom-right"
    if causal and max(n_q, n_k) > _SMALL:  # no more scores than were drawn
        n_q, n_k = min(n_q, n_k), max(n_q, n_k)
    n_k = max(n_q, n_k) if causal and bottom_right else n_q if causal else n_k
    options: dict[str, Any] = {"is_causal": True} if causal else {}
    options |= {"feature_map": "elu+1"} if trial.draw(st.booleans()) else {}
    return {**draw_tensors(trial, (b, h, n_q, n_k, d, d_v), kinds), **options}


def _formula_by(form: str) -> Formula:
    def formula(xp: Any, a: Mapping[str, Any]) -> list[Any]:
        return [linear_attention(xp, a["q"], a["k"], a["v"], feature_map=form, is_causal=a.get("is_causal", False))]

    return formula


def _vjp_by(form: str) -> Vjp:
    def vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
        options = {"feature_map": form, "is_causal": a.get("is_causal", False)}
        return dict(zip("qkv", linear_attention_vjp(xp, a["q"], a["k"], a["v"], g, **options), strict=True))

    return vjp


def _ordinary(trial: Trial) -> Arguments:
    b, h, n, _, d, d_v = draw_shape(trial)
    return draw_tensors(trial, (b, h, n, n, d, d_v), ("gaussian",))


def _part(trial: Trial) -> tuple[Arguments, Arguments, dict[str, Index]]:
    """Draw a call, and one head of one of its batch elements alone."""
    whole = draw_linear(trial)
    b, h = whole["q"].shape[:2]
    i, j = trial.draw(sizes(0, b - 1)), trial.draw(sizes(0, h - 1))
    one = (slice(i, i + 1), slice(j, j + 1))
    alone = {**whole, **{name: whole[name][one] for name in "qkv"}}
    return whole, alone, dict.fromkeys(("result", "q", "k", "v"), one)


def _changes(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    n, d = trial.draw(sizes(3, 5)), trial.draw(sizes(2, 4))
    kind = trial.draw(values(("gaussian", "one-signed")))
    q, k, v = (trial.tensor(x) for x in kind.array(3, 1, 2, n, d))
    a: Arguments = {"q": q, "k": k, "v": v}
    changed: dict[str, Arguments] = {name: {**a, name: perturbed(trial, a[name], kind.rng)} for name in "qkv"}
    return a, {**changed, "is_causal": {**a, "is_causal": True}}


def _bulk(trial: Trial) -> Arguments:
    trial.only_large(2.0)
    return draw_linear(trial, ("gaussian", "duplicates", "sparse"), n_q=(8, 200), n_k=(16, 400))


def _refusals(trial: Trial, good: Arguments) -> Iterator[InvalidCall]:
    three = ("q", "k", "v")
    for name in three:
        yield InvalidCall(f"{name} of rank 3", {**good, name: good[name][0]}, (name,))
    two = {name: torch.cat((good[name], good[name]), 1) for name in three}
    yield InvalidCall("grouped heads", {**good, "q": two["q"]}, three)
    yield InvalidCall("one head of keys", {**two, "k": two["k"][:, :1], "v": two["v"][:, :1]}, three)


LINEAR_ATTENTION = operation(
    "linear_attention",
    sample=draw_linear,
    sample_basic=_ordinary,
    formulas=tuple(_formula_by(form) for form in FEATURE_MAPS),
    vjps=tuple(_vjp_by(form) for form in FEATURE_MAPS),
    refuses=_refusals,
    batch_slice=_part,
    argument_perturbations=_changes,
    sample_accuracy=_bulk,
    dtypes=("fp64", "fp32", "fp16"),
    use_exact_oracle=False,
)

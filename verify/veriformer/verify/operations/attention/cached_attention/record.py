"""Attention over a cache as a record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from veriformer.spec.attention.attention import attention_vjp
from veriformer.spec.efficient import kv_cache as spec
from veriformer.spec.efficient.cached_attention import cached_attention
from veriformer.verify.judging.op_info import Index, InvalidCall, OpInfo
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.operations.attention.kv_cache.draws import draw_call, draw_part, in_doubt
from veriformer.verify.operations.changes import perturbed
from veriformer.verify.strategies import choice, extent, sizes, values


def filled(xp: Any, a: Mapping[str, Any], stored: Any = lambda xp, x: x) -> spec.Cache:
    """Return the spec's cache after all that comes before the new tokens."""
    k_new = xp.asarray(a["k_new"])
    b, groups, _, d = k_new.shape
    cache = spec.kv_cache(xp, b, groups, a["max_length"], d, window=a.get("window"))
    past = list(a.get("past", ()))
    for k, v in zip(past[::2], past[1::2], strict=True):
        cache, _, _ = spec.cache_update(xp, cache, stored(xp, k), stored(xp, v))
    if a.get("order") is not None:
        cache = spec.cache_reorder(xp, cache, a["order"])
    return spec.cache_reset(cache) if a.get("forget") else cache


def _options(a: Mapping[str, Any]) -> dict[str, Any]:
    return {name: a[name] for name in ("scale", "softcap") if name in a}


def _attention(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    stored = in_doubt if a.get("quantization") else lambda xp, x: x
    k, v = (stored(xp, a[name]) for name in ("k_new", "v_new"))
    return [cached_attention(xp, a["q_new"], k, v, filled(xp, a, stored), **_options(a))[0]]


def _attention_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    _, k, v = spec.cache_update(xp, filled(xp, a), a["k_new"], a["v_new"])
    dq, dk, dv, _ = attention_vjp(xp, a["q_new"], k, v, g, is_causal=True, window=a.get("window"), **_options(a))
    old = k.shape[2] - a["k_new"].shape[2]
    return {"q_new": dq, "k_new": dk[:, :, old:], "v_new": dv[:, :, old:]}


def draw_cached(trial: Trial) -> Arguments:
    """Draw a past or none, a window or none, scale and soft-cap."""
    a = draw_call(trial)
    given = {"window": draw_part(trial, a["max_length"], 8)} if trial.draw(choice(False, True)) else {}
    scale = trial.option("scale", None, 1.0, 0.3, -0.7, 0.0)
    return {**a, **given, **scale, **trial.option("softcap", None, None, 2.0, 0.5)}


def _ordinary_call(trial: Trial) -> Arguments:
    return draw_call(trial, kinds=("gaussian",))


def _part(trial: Trial) -> tuple[Arguments, Arguments, dict[str, Index]]:
    """Draw a call, and one of its batch elements with one group of heads alone."""
    whole = draw_cached(trial)
    b, groups, _, _ = whole["k_new"].shape
    i, group = trial.draw(sizes(0, b - 1)), trial.draw(sizes(0, groups - 1))
    repeats = whole["q_new"].shape[1] // groups
    rows = (slice(i, i + 1), slice(group, group + 1))
    heads = (slice(i, i + 1), slice(group * repeats, (group + 1) * repeats))
    index: dict[str, Index] = {"result": heads, "q_new": heads, "k_new": rows, "v_new": rows}
    alone = {**whole, **{name: whole[name][index[name]] for name in ("q_new", "k_new", "v_new")}}
    alone["past"] = [x[rows] for x in whole["past"]]
    return whole, alone, index


def _changes(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    a = draw_call(trial, chunks=(2, 1), new=2, kinds=("gaussian", "one-signed"))
    rng = trial.draw(values()).rng
    changed: dict[str, Arguments] = {
        name: {**a, name: perturbed(trial, a[name], rng)} for name in ("q_new", "k_new", "v_new")
    }
    for i in range(4):
        past = [perturbed(trial, x, rng) if i == j else x for j, x in enumerate(a["past"])]
        changed[f"{'keys' if i % 2 == 0 else 'values'} of past update {i // 2}"] = {**a, "past": past}
    for name, other in {"scale": 1.75, "softcap": 0.25, "window": 2}.items():
        changed[name] = {**a, name: other}
    return a, changed


def _long(trial: Trial) -> Arguments:
    """Draw a few tokens over a long past, or a long text at once."""
    trial.only_large(2.0)
    kinds = ("gaussian", "one-signed", "peaked")
    if trial.draw(choice(False, False, False, True)):
        few = (trial.draw(sizes(1, 2)), trial.draw(sizes(1, 2)), trial.draw(extent(2, 64)))
        a = draw_call(trial, chunks=(), new=trial.draw(extent(33, 150)), kinds=kinds, axes=few)
    else:
        a = draw_call(trial, kinds=kinds)
    window = {"window": trial.draw(extent(1, a["max_length"]))} if trial.draw(choice(False, True)) else {}
    return {**a, **window, **trial.option("scale", None, 0.3, -0.7), **trial.option("softcap", None, None, 2.0)}


def _bad_calls(trial: Trial) -> Iterator[InvalidCall]:
    rng = trial.draw(values()).rng

    def made(*shape: int) -> torch.Tensor:
        return trial.tensor(rng.standard_normal(shape))

    b, h, groups, n, d = 2, 4, 2, 3, 3
    good: dict[str, Any] = {"q_new": made(b, h, n, d), "k_new": made(b, groups, n, d), "v_new": made(b, groups, n, d)}
    good |= {"past": [made(b, groups, 2, d), made(b, groups, 2, d)], "max_length": 6}
    three = ("q_new", "k_new", "v_new", "q", "k", "v")
    other = torch.float32 if trial.dtype is torch.float64 else torch.float64
    yield InvalidCall("no queries", {**good, "q_new": None}, ("q_new",))
    yield InvalidCall("queries of another dtype", {**good, "q_new": good["q_new"].to(other)}, three)
    yield InvalidCall("values of another dtype", {**good, "v_new": good["v_new"].to(other)}, three)
    yield InvalidCall("heads that do not divide", {**good, "q_new": made(b, 3, n, d)}, three)
    yield InvalidCall("queries of another batch", {**good, "q_new": made(1, h, n, d)}, three)
    yield InvalidCall("queries of another width", {**good, "q_new": made(b, h, n, d + 1)}, three)
    yield InvalidCall("values of another width", {**good, "v_new": made(b, groups, n, d + 1)}, three)
    yield InvalidCall("too many tokens", {**good, "max_length": 4}, (*three, "max_length", "cache"))
    for name, value in (("softcap", 0.0), ("softcap", -1.0), ("softcap", True), ("scale", True), ("scale", "much")):
        yield InvalidCall(f"{name} {value!r}", {**good, name: value}, (name,))


CACHED_ATTENTION = OpInfo(
    name="cached_attention",
    sample=draw_cached,
    sample_basic=_ordinary_call,
    formulas=(_attention,),
    vjps=(_attention_vjp,),
    inputs=("q_new", "k_new", "v_new"),
    invalid_calls=_bad_calls,
    batch_slice=_part,
    argument_perturbations=_changes,
    sample_large=_long,
    dtypes=("fp64", "fp32", "bf16"),
    use_exact_oracle=False,
)

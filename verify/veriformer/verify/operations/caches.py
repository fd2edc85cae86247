"""The cache of keys and values, and attention over it, as records.

Their arguments are those of the functions in ``uses``: what is done to a cache, and what is then asked of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

import torch

from veriformer.spec.arithmetic.exact_inputs import exactly_equal
from veriformer.spec.arithmetic.running_error import RunningError, RunningErrorArray
from veriformer.spec.attention.attention import attention_vjp
from veriformer.spec.efficient import kv_cache as spec
from veriformer.spec.efficient.cached_attention import cached_attention
from veriformer.spec.efficient.int8 import LEVELS, int8_half_step
from veriformer.verify.operation import Index, Operation, Refusal
from veriformer.verify.operations.changes import nudged
from veriformer.verify.strategies import KINDS, choice, maybe, sizes, values, widths
from veriformer.verify.trial import Arguments, Observation, Outcome, Trial


def chunk_sizes(trial: Trial, *, least: int = 1, most: int = 4, largest: int = 3) -> list[int]:
    """How many tokens each call appends."""
    return [trial.draw(sizes(1, largest)) for _ in range(trial.draw(sizes(least, most)))]


def draw_rows(
    trial: Trial, axes: tuple[int, int, int], chunks: Sequence[int], kinds: Sequence[str] = KINDS
) -> list[Any]:
    """Keys and values [B, G, n, d] for each chunk, in turn; axes are B, G, d."""
    b, g, d = axes
    n = sum(chunks)
    whole = [trial.tensor(trial.draw(values(tuple(kinds))).array(b, g, n, d)) for _ in "kv"]
    parts = [torch.tensor_split(x, list(accumulate(chunks))[:-1], 2) for x in whole]
    return [part.contiguous() for pair in zip(*parts, strict=True) for part in pair]


def sized(trial: Trial, axes: tuple[int, int, int], max_length: int) -> dict[str, Any]:
    """The arguments that make a cache for rows of these axes B, G, d."""
    b, g, d = axes
    a = {"batch": b, "num_kv_heads": g, "max_length": max_length, "head_dim": d}
    return a if trial.dtype is torch.float32 and trial.draw(choice(True, False)) else {**a, "dtype": trial.dtype}


def draw_order(trial: Trial, batch: int) -> torch.Tensor:
    """From which element each goes on: from any, or each from the next, an order that from three on is no inverse."""
    if batch > 2 and trial.draw(choice(True, False, False)):
        return torch.arange(batch).roll(trial.draw(choice(-1, 1)))
    return torch.as_tensor(trial.draw(values()).rng.integers(0, batch, batch))


def draw_axes(trial: Trial) -> tuple[int, int, int]:
    """B, G, d of a cache."""
    return trial.draw(sizes(1, 3)), trial.draw(sizes(1, 3)), trial.draw(widths(5))


def draw_cache(trial: Trial) -> Arguments:
    """Updates of several sizes, up to the last token that there is room for or not as far."""
    axes, chunks = draw_axes(trial), chunk_sizes(trial)
    room = sum(chunks) + trial.draw(choice(0, 1, 5))
    return {**sized(trial, axes, room), "actions": ("update",) * len(chunks), "rows": draw_rows(trial, axes, chunks)}


def shown(outcome: Outcome, arguments: Arguments) -> list[Observation]:
    """Keys and values after every update."""
    return [outcome.item(0, i) for i in range(2 * arguments["actions"].count("update"))]


def _cache_formula(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    cache = spec.kv_cache(xp, a["batch"], a["num_kv_heads"], a["max_length"], a["head_dim"], window=a.get("window"))
    supply, found = iter(a["rows"]), []
    for _ in a["actions"]:
        cache, k, v = spec.cache_update(xp, cache, next(supply), next(supply))
        found += [k, v]
    return found


def _ordinary_cache(trial: Trial) -> Arguments:
    axes = draw_axes(trial)
    rows = draw_rows(trial, axes, [2], ("gaussian",))
    return {**sized(trial, axes, 4), "actions": ("update",), "rows": rows}


def _bad_caches(trial: Trial) -> Iterator[Refusal]:
    rng = trial.draw(values()).rng
    good: dict[str, Any] = {"batch": 2, "num_kv_heads": 3, "max_length": 4, "head_dim": 5, "dtype": trial.dtype}
    for name in ("batch", "num_kv_heads", "max_length", "head_dim"):
        yield Refusal(f"negative {name}", {**good, name: -1}, (name,))
        yield Refusal(f"a fraction for {name}", {**good, name: 2.5}, (name,))
        yield Refusal(f"a bool for {name}", {**good, name: True}, (name,))
    yield Refusal("an unknown quantization", {**good, "quantization": "int3"}, ("quantization",))
    yield Refusal("a window of 0", {**good, "window": 0}, ("window",))
    yield Refusal("a bool for a window", {**good, "window": True}, ("window",))
    yield Refusal("a dtype of integers", {**good, "dtype": torch.int64}, ("dtype",))

    def made(*shape: int) -> torch.Tensor:
        return trial.tensor(rng.standard_normal(shape))

    k, v = made(2, 3, 2, 5), made(2, 3, 2, 5)
    other = torch.float32 if trial.dtype is torch.float64 else torch.float64
    for what, pair, name in (
        ("keys of rank 3", (k[0], v), "k_new"),
        ("values of rank 3", (k, v[0]), "v_new"),
        ("no keys", (None, v), "k_new"),
        ("no values", (k, None), "v_new"),
        ("another batch", (made(1, 3, 2, 5), made(1, 3, 2, 5)), "k_new"),
        ("other heads", (made(2, 1, 2, 5), made(2, 1, 2, 5)), "k_new"),
        ("another width", (made(2, 3, 2, 4), made(2, 3, 2, 4)), "k_new"),
        ("more values than keys", (k, made(2, 3, 3, 5)), "v_new"),
        ("one value for all keys", (k, v[:, :, :1]), "v_new"),
        ("values of another width", (k, made(2, 3, 2, 4)), "v_new"),
        ("keys of another dtype", (k.to(other), v.to(other)), "k_new"),
        ("values of another dtype", (k, v.to(other)), "v_new"),
        ("too many tokens", (made(2, 3, 5, 5), made(2, 3, 5, 5)), "k_new"),
    ):
        either = (name,) if name == "v_new" and pair[1] is None else ("k_new", "v_new", "dtype", "max_length")
        yield Refusal(what, {**good, "actions": ("update",), "rows": list(pair)}, either)
    for what, index in (
        ("an order of another batch", torch.tensor([0, 1, 0])),
        ("an order of rank 2", torch.tensor([[0, 1]])),
        ("an order of floats", torch.tensor([0.0, 1.0])),
        ("an order of int32", torch.tensor([0, 1], dtype=torch.int32)),
        ("an order beyond the batch", torch.tensor([0, 2])),
        ("a negative order", torch.tensor([-1, 0])),
    ):
        after: dict[str, Any] = {"actions": ("update", "reorder"), "rows": [k, v, index]}
        yield Refusal(what, {**good, **after}, ("index",))


KV_CACHE = Operation(
    name="kv_cache",
    draw=draw_cache,
    ordinary=_ordinary_cache,
    formulas=(_cache_formula,),
    refusals=_bad_caches,
    parts=shown,
    sharp=False,
)


def in_doubt(xp: Any, x: Any) -> Any:
    """What a cache of bytes may return for rows x: anything within half a step of each row, and the rounding of it.

    The quotient that is rounded to a code, the step, and their product are computed in the dtype at worst.
    """
    if not isinstance(xp, RunningError):
        return x
    x = xp.asarray(x)
    absmax = xp.max(abs(x), axis=-1, keepdims=True)
    there_and_back = x * LEVELS / xp.where(exactly_equal(absmax, 0), 1, absmax) * (absmax / LEVELS)
    half = int8_half_step(xp, x)
    return RunningErrorArray(xp, x.value, there_and_back.error + half.magnitude + half.error, x.magnitude)


def filled(xp: Any, a: Mapping[str, Any], stored: Any = lambda xp, x: x) -> spec.Cache:
    """The spec's cache after all that comes before the new tokens."""
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


def draw_call(
    trial: Trial,
    *,
    chunks: Sequence[int] | None = None,
    new: int | None = None,
    kinds: Sequence[str] = KINDS,
    axes: tuple[int, int, int] | None = None,
) -> dict[str, Any]:
    """New tokens over a past that came in these chunks, or in drawn ones; axes B, G, d; no options."""
    b, groups, d = axes or draw_axes(trial)
    heads = groups * trial.draw(sizes(1, 3))
    before = [trial.draw(sizes(1, 3)) for _ in range(trial.draw(sizes(0, 2)))] if chunks is None else list(chunks)
    n = trial.draw(sizes(1, 4)) if new is None else new
    rows = draw_rows(trial, (b, groups, d), [*before, n], kinds)
    q = trial.tensor(trial.draw(values(tuple(kinds))).array(b, heads, n, d))
    room = sum(before) + n + trial.draw(choice(0, 1, 4))
    return {"q_new": q, "k_new": rows[-2], "v_new": rows[-1], "past": rows[:-2], "max_length": room}


def draw_cached(trial: Trial) -> Arguments:
    """A past or none, a window or none, scale and soft-cap."""
    a = draw_call(trial)
    window = trial.draw(maybe(sizes(1, 8)))
    given = {} if window is None else {"window": window}
    scale = trial.option("scale", None, 1.0, 0.3, -0.7, 0.0)
    return {**a, **given, **scale, **trial.option("softcap", None, None, 2.0, 0.5)}


def _ordinary_call(trial: Trial) -> Arguments:
    return draw_call(trial, kinds=("gaussian",))


def _part(trial: Trial) -> tuple[Arguments, Arguments, dict[str, Index]]:
    """One batch element and one group of heads, alone."""
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
        name: {**a, name: nudged(trial, a[name], rng)} for name in ("q_new", "k_new", "v_new")
    }
    for i in range(4):
        past = [nudged(trial, x, rng) if i == j else x for j, x in enumerate(a["past"])]
        changed[f"{'keys' if i % 2 == 0 else 'values'} of past update {i // 2}"] = {**a, "past": past}
    for name, other in {"scale": 1.75, "softcap": 0.25, "window": 2}.items():
        changed[name] = {**a, name: other}
    return a, changed


LENGTHS = (130, 257, 65, 17, 128, 64, 129, 127, 63, 16, 15)
"""Rows of a cache around the pages of 16, 64, 128 and 256 in which it may keep them."""


def draw_pages(trial: Trial, length: int) -> list[int]:
    """The chunks in which so many rows come: all at once or in two, then token by token."""
    cut, single = trial.draw(choice(0, 1, length // 2)), trial.draw(sizes(0, 2))
    return [n for n in (length - cut, cut) if n] + [1] * single


def _long(trial: Trial) -> Arguments:
    """A few tokens over a long past, or a long text at once."""
    axes = (trial.draw(sizes(1, 2)), trial.draw(sizes(1, 2)), trial.draw(sizes(2, 4)))
    kinds = ("gaussian", "one-signed", "peaked")
    if trial.draw(choice(False, False, False, True)):
        a = draw_call(trial, chunks=(), new=trial.draw(choice(70, 130)), kinds=kinds, axes=(1, *axes[1:]))
    else:
        pages = draw_pages(trial, trial.draw(choice(*LENGTHS)))
        a = draw_call(trial, chunks=pages, new=trial.draw(sizes(1, 2)), kinds=kinds, axes=axes)
    return {**a, **trial.option("window", None, None, None, 65)}


def _bad_calls(trial: Trial) -> Iterator[Refusal]:
    rng = trial.draw(values()).rng

    def made(*shape: int) -> torch.Tensor:
        return trial.tensor(rng.standard_normal(shape))

    b, h, groups, n, d = 2, 4, 2, 3, 3
    good: dict[str, Any] = {"q_new": made(b, h, n, d), "k_new": made(b, groups, n, d), "v_new": made(b, groups, n, d)}
    good |= {"past": [made(b, groups, 2, d), made(b, groups, 2, d)], "max_length": 6}
    three = ("q_new", "k_new", "v_new", "q", "k", "v")
    other = torch.float32 if trial.dtype is torch.float64 else torch.float64
    yield Refusal("no queries", {**good, "q_new": None}, ("q_new",))
    yield Refusal("queries of another dtype", {**good, "q_new": good["q_new"].to(other)}, three)
    yield Refusal("values of another dtype", {**good, "v_new": good["v_new"].to(other)}, three)
    yield Refusal("heads that do not divide", {**good, "q_new": made(b, 3, n, d)}, three)
    yield Refusal("queries of another batch", {**good, "q_new": made(1, h, n, d)}, three)
    yield Refusal("queries of another width", {**good, "q_new": made(b, h, n, d + 1)}, three)
    yield Refusal("values of another width", {**good, "v_new": made(b, groups, n, d + 1)}, three)
    yield Refusal("too many tokens", {**good, "max_length": 4}, (*three, "max_length", "cache"))
    for name, value in (("softcap", 0.0), ("softcap", -1.0), ("softcap", True), ("scale", True), ("scale", "much")):
        yield Refusal(f"{name} {value!r}", {**good, name: value}, (name,))


CACHED_ATTENTION = Operation(
    name="cached_attention",
    draw=draw_cached,
    ordinary=_ordinary_call,
    formulas=(_attention,),
    vjps=(_attention_vjp,),
    inputs=("q_new", "k_new", "v_new"),
    refusals=_bad_calls,
    part=_part,
    changes=_changes,
    long=_long,
    dtypes=("fp64", "fp32", "bf16"),
    sharp=False,
)

__all__ = ["CACHED_ATTENTION", "KV_CACHE"]

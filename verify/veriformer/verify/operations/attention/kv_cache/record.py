"""The key-value cache as a record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from veriformer.spec.efficient import kv_cache as spec
from veriformer.verify.judging.op_info import InvalidCall, OpInfo
from veriformer.verify.judging.outcome import Observation, Outcome
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.operations.attention.kv_cache.draws import (
    draw_axes,
    draw_extent,
    draw_pages,
    draw_rows,
    sized,
)
from veriformer.verify.strategies import choice, sizes, values


def chunk_sizes(trial: Trial, *, least: int = 1, most: int = 4, largest: int = 3) -> list[int]:
    """Draw the number of tokens that each call appends."""
    return [trial.draw(sizes(1, largest)) for _ in range(trial.draw(sizes(least, most)))]


def draw_cache(trial: Trial) -> Arguments:
    """Draw updates of several sizes: of max_length tokens together, or of fewer."""
    axes, length = draw_extent(trial, sizes(1, 1))
    chunks = draw_pages(trial, length) if length > 1 else chunk_sizes(trial)
    room = sum(chunks) + trial.draw(choice(0, 1, 5))
    return {**sized(trial, axes, room), "actions": ("update",) * len(chunks), "rows": draw_rows(trial, axes, chunks)}


def updated_rows(outcome: Outcome, arguments: Arguments) -> list[Observation]:
    """Return keys and values after every update."""
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


def _bad_caches(trial: Trial) -> Iterator[InvalidCall]:
    rng = trial.draw(values()).rng
    good: dict[str, Any] = {"batch": 2, "num_kv_heads": 3, "max_length": 4, "head_dim": 5, "dtype": trial.dtype}
    for name in ("batch", "num_kv_heads", "max_length", "head_dim"):
        yield InvalidCall(f"negative {name}", {**good, name: -1}, (name,))
        yield InvalidCall(f"a fraction for {name}", {**good, name: 2.5}, (name,))
        yield InvalidCall(f"a bool for {name}", {**good, name: True}, (name,))
    yield InvalidCall("an unknown quantization", {**good, "quantization": "int3"}, ("quantization",))
    yield InvalidCall("a window of 0", {**good, "window": 0}, ("window",))
    yield InvalidCall("a bool for a window", {**good, "window": True}, ("window",))
    yield InvalidCall("a dtype of integers", {**good, "dtype": torch.int64}, ("dtype",))

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
        yield InvalidCall(what, {**good, "actions": ("update",), "rows": list(pair)}, either)
    for what, index in (
        ("an order of another batch", torch.tensor([0, 1, 0])),
        ("an order of rank 2", torch.tensor([[0, 1]])),
        ("an order of floats", torch.tensor([0.0, 1.0])),
        ("an order beyond the batch", torch.tensor([0, 2])),
        ("a negative order", torch.tensor([-1, 0])),
    ):
        after: dict[str, Any] = {"actions": ("update", "reorder"), "rows": [k, v, index]}
        yield InvalidCall(what, {**good, **after}, ("index",))


KV_CACHE = OpInfo(
    name="kv_cache",
    sample=draw_cache,
    sample_basic=_ordinary_cache,
    formulas=(_cache_formula,),
    invalid_calls=_bad_caches,
    parts=updated_rows,
    use_exact_oracle=False,
)

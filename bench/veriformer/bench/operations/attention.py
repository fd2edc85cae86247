"""Calls of attention and caches: G key heads, R query heads each, t tokens cached, a capacity of m, a window of W."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from veriformer.bench.operations.family import KEPT, Call, Costs, Family, Operation, Sizes, recorded, sized
from veriformer.bench.polynomials import Axis
from veriformer.spec import costs
from veriformer.spec.efficient.int8 import int8_cache_bytes
from veriformer.spec.efficient.linear_recurrence import linear_flops, state_bytes

_BATCH = 2
_WIDTH = 4
"""Bytes of an element."""


def grouped(cost: Callable[[], Any], **sizes: Any) -> Callable[[], Any]:
    """Substitute the letters of the calls below in a cost: H = G R heads of one width d."""
    r, g, d = (costs.symbol(x) for x in "RGd")
    known = {"B": _BATCH, "H": g * r, "d_k": d, "d_v": d, **sizes}
    letters = {costs.symbol(name): value for name, value in known.items()}
    return lambda: cost().subs(letters, simultaneous=True)


def _filled(make: Operation, s: Sizes, length: int, **scope: Any) -> Any:
    cache = make(_BATCH, s["G"], s["m"], s["d"], **scope)
    cache.update(*_new(s, length))
    return cache


def _new(s: Sizes, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(_BATCH, s["G"], length, s["d"]), torch.randn(_BATCH, s["G"], length, s["d"])


def _scope(s: Sizes, int8: bool) -> dict[str, Any]:
    """Return the options of one of the four scopes of a cache: of everything or a window, as it is or in bytes."""
    return ({"quantization": "int8"} if int8 else {}) | ({"window": s["W"]} if "W" in s else {})


def _append(int8: bool = False) -> Callable[[Operation, Sizes], Call]:
    """Return a call that appends a token to t; the first append, which may allocate a capacity, is not counted."""

    def call(operation: Operation, s: Sizes) -> Call:
        cache, new = _filled(operation, s, s["t"], **_scope(s, int8)), _new(s, 1)
        cache.update(*_new(s, 1))
        return Call(lambda: cache.update(*new), new, gradients=False)

    return call


def _held(int8: bool = False) -> Callable[[Operation, Sizes], Call]:
    """Return a cache that is full, or one of t tokens that shows a window of them."""

    def call(operation: Operation, s: Sizes) -> Call:
        new = _new(s, s["t"] if "W" in s else s["m"])

        def run() -> object:
            cache = operation(_BATCH, s["G"], s["m"], s["d"], **_scope(s, int8))
            cache.update(*new)
            return cache

        return Call(run, new, gradients=False)

    return call


def _cached(attend: Operation, make: Operation, s: Sizes) -> Call:
    """Return the call of attention of one new token over the target's own cache of t tokens."""
    cache = _filled(make, s, s["t"])
    tensors = [torch.randn(_BATCH, s["G"] * s["R"], 1, s["d"]), *_new(s, 1)]
    return Call(lambda: attend(*tensors, cache), tensors, gradients=False)


def _append_bytes() -> Any:
    """Return a key and a value are read and written: 2 · 2 B G d."""
    return costs.kv_cache_bytes().subs(costs.symbol("n_k"), 1) * 2


def _rows(length: str) -> Callable[[], Any]:
    """Return keys and values of so many tokens."""
    return grouped(costs.kv_cache_bytes, n_k=_H(length))


def _in_bytes(width: int) -> Callable[[], Any]:
    """Return the whole cache in one byte an entry, with scales of a width."""
    letters = {"B": _BATCH, "n_k": _H("m"), "d_k": _H("d"), "w": width}
    return lambda: int8_cache_bytes().subs({_H(name): value for name, value in letters.items()}, simultaneous=True)


def _appending(case: str, letters: str, returned: str | None, *, int8: bool) -> Family:
    """Return a step of a cache; what it returns is decoded where it is held in bytes."""
    decoded = _rows(returned) if returned else None
    known = Costs(flops=lambda: 0 * _H("w"), moved=grouped(_append_bytes), others=decoded, extra=decoded)
    return Family("kv_cache", letters, _append(int8), known, case=f"append{case}")


def _windowed(case: str, *, int8: bool) -> Family:
    return Family("kv_cache", "G t W m d", _held(int8), Costs(kept=_rows("W"), grows=(KEPT,)), case=f"rows{case}")


def _states() -> Any:
    """Return the cost of the sums before each chunk of tokens, for backward; the chunk's length is not predicted."""
    return state_bytes() * _H("n")


def _square(cost: Callable[[], Any], heads: int | None = None) -> Callable[[], Any]:
    """Return all lengths n, a key head for each head; H of them where their number is not given."""
    n, heads = costs.symbol("n"), heads or costs.symbol("H")
    return grouped(cost, H=heads, G=heads, n_q=n, n_k=n)


def _features() -> Any:
    """Return the cost of features of queries and keys, and of the sums of keys that normalise."""
    return linear_flops() + state_bytes()


def _block_traffic() -> Any:
    """Return the traffic of a row of queries and a row of keys for every pair, over the block's side, not predicted."""
    return costs.attention_flops() * _H("w")


_H = costs.symbol
# More than a score of heads, whatever the letters: with few of them some take larger blocks. And more than one block of
# rows, the second of which finds the memory of the first.
_MANY = {
    "G": Axis("G", (2, 3, 4, 5), 6),
    "R": Axis("R", (5, 6, 8, 9), 7),
    "H": Axis("H", (10, 12, 14, 16), 32),
    "n_q": Axis("n_q", (256, 384, 512, 768), 640),
}
_SHORTER = Axis("n", (256, 384, 512, 640), 768)
"""Lengths for loops in Python over chunks, each of which is counted operator by operator."""
_WIDER = Axis("d", (96, 104, 112, 120), 128)
"""Widths above the usual chunks, where one moment of those that compete for the peak is the worst."""

_ONE_WIDTH: Mapping[str, str | int] = {"B": _BATCH, "d_k": "d", "d_v": "d"}
_OVER_ITSELF: Mapping[str, str | int] = {**_ONE_WIDTH, "n_q": "n", "n_k": "n"}


def _whole(case: str, letters: str, renamed: Mapping[str, str | int], **sizes: Any) -> Family:
    """Return attention over all keys, of which the costs have some letters replaced."""
    known = Costs(
        flops=grouped(costs.attention_flops, **sizes),
        total=grouped(lambda: costs.attention_flops() + costs.attention_backward_flops(), **sizes),
        moved=grouped(costs.attention_bytes, **sizes, **({"G": _H("H")} if sizes else {})),
        others=grouped(costs.attention_other, **sizes),
        extra=grouped(costs.reference_attention_peak, **sizes),
        total_in_blocks=grouped(lambda: costs.attention_flops() + costs.tiled_backward_flops(), **sizes),
        others_in_blocks=grouped(_block_traffic, **sizes),
        moved_as_printed=grouped(costs.attention_bytes, **sizes, G=_H("H") if sizes else _H("G") * _H("R")),
    )
    return recorded("attention", letters, known, renamed={**_ONE_WIDTH, **renamed}, case=case, nodes=_MANY)


FAMILIES = (
    _whole("grouped heads", "G R n_q n_k d", {}),
    _whole("a key head for each head", "H n_q n_k d", {"G": "H", "R": 1}, H=_H("H")),
    recorded(
        "linear_attention",
        "H n d",
        Costs(
            flops=_square(linear_flops),
            total=_square(lambda: 3 * linear_flops()),
            moved=_square(costs.attention_bytes),
            others=_square(_features),
            extra=_square(state_bytes),
        ),
        renamed=_OVER_ITSELF,
    ),
    recorded(
        "linear_attention",
        "n d",
        Costs(
            moved=_square(costs.attention_bytes, 2),
            others=_square(_features, 2),
            extra=_square(_states, 2),
        ),
        renamed={**_OVER_ITSELF, "H": 2},
        options={"is_causal": True},
        case="causal",
        nodes={"n": _SHORTER, "d": _WIDER},
    ),
    sized("causal_mask", "n_q n_k", Costs(flops=lambda: 0 * _H("w"), moved=lambda: _H("n_q") * _H("n_k"))),
    _appending("", "G t m d", None, int8=False),
    _appending(", int8", "G t m d", "t", int8=True),
    _appending(", window", "G t W m d", None, int8=False),
    _appending(", int8 and window", "G t W m d", "W", int8=True),
    Family(
        "cached_attention",
        "G R t m d",
        _cached,
        Costs(
            flops=grouped(costs.attention_flops, n_q=1, n_k=_H("t") + 1),
            moved=grouped(costs.attention_bytes, n_q=1, n_k=_H("t") + 1),
            others=grouped(costs.attention_other, n_q=1, n_k=_H("t") + 1),
        ),
        case="one new token",
        beside=("kv_cache",),
    ),
    Family("kv_cache", "G m d", _held(), Costs(kept=_rows("m")), case="full"),
    Family(
        "kv_cache",
        "G m d",
        _held(int8=True),
        Costs(kept=_in_bytes(_WIDTH), rivals={f"with scales of {w} bytes": _in_bytes(w) for w in (2, 8)}),
        case="full, int8",
    ),
    _windowed(", window", int8=False),
    _windowed(", int8 and window", int8=True),
)

"""Rotary position embeddings as a record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.spec.positions.angles import cosines_and_sines
from veriformer.spec.positions.rope import rope, rope_vjp
from veriformer.verify.judging.op_info import Index, InvalidCall
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.operations.changes import perturbed
from veriformer.verify.operations.derived import operation
from veriformer.verify.strategies import choice, extent, leading_shapes, sizes, values
from veriformer.verify.targets.claims import Claims


def by_default(claims: Claims) -> dict[str, Any]:
    """Return the default pairing: interleaved, unless the target claims otherwise."""
    return {"by_default": claims.convention("rope.pairing")}


def _options(a: Mapping[str, Any]) -> dict[str, Any]:
    given = {name: a[name] for name in ("base", "scaling") if name in a}
    return {**given, "pairing": a.get("pairing", a["by_default"])}


def _rope(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [rope(xp, a["x"], a["positions"], **_options(a))]


def _rope_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    return {"x": rope_vjp(xp, a["x"], a["positions"], g, **_options(a))}


def _turned_by_three(xp: Any, a: Mapping[str, Any], x: Any, back: int) -> Any:
    """Compute (a + ib)(c + is) as k₁ − k₃ + i (k₁ + k₂): k₁ = c (a + b), k₂ = a (s − c), k₃ = b (c + s), after Gauss.

    Three products in place of four; stable by the norm of the pair, not entry by entry.
    """
    options = _options(a)
    pairing = options.pop("pairing")
    cos, sin = cosines_and_sines(xp, a["positions"], x.shape[-1], **options)
    sin = -sin if back else sin
    half = x.shape[-1] // 2
    p, q = (x[..., :half], x[..., half:]) if pairing == "half" else (x[..., 0::2], x[..., 1::2])
    k1, k2, k3 = cos * (p + q), p * (sin - cos), q * (cos + sin)
    turned = [k1 - k3, k1 + k2]
    return xp.concat(turned, axis=-1) if pairing == "half" else xp.reshape(xp.stack(turned, axis=-1), x.shape)


def _rope_by_three(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [_turned_by_three(xp, a, a["x"], 0)]


def _rope_vjp_by_three(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    return {"x": _turned_by_three(xp, a, g, 1)}


def pairings(trial: Trial) -> dict[str, Any]:
    """Draw either pairing, or none; a target that claims pairing by halves need not accept the option."""
    if trial.claims.deviates("rope.pairing"):
        return {}
    drawn: dict[str, Any] = trial.option("pairing", None, "half", "interleaved")
    return drawn


def _places(trial: Trial, shape: tuple[int, ...]) -> torch.Tensor:
    """Draw positions: in order from anywhere, in any order, repeated, negative, in quarters or thirds, or far out."""
    rng = trial.draw(values(("gaussian",))).rng
    kind = trial.draw(choice("order", "any", "fractions", "far", "numbers"))
    if kind == "order":
        first = int(rng.integers(0, rng.choice([1, 40, 4000])))
        p = np.broadcast_to(np.arange(shape[-1]) + first, shape)
    elif kind == "far":
        p = rng.integers(90000, 100001, shape) * rng.choice([1, -1])
    elif kind == "fractions":
        return trial.tensor(rng.integers(-64, 65, shape) / trial.draw(choice(4, 3)))
    else:
        p = rng.integers(-20, 21, shape)
    if kind == "numbers":
        return trial.tensor(p)
    return torch.as_tensor(np.array(p)).to(trial.draw(choice(torch.int64, torch.int32)))


def positions_for(trial: Trial, lead: tuple[int, ...], n: int) -> torch.Tensor:
    """Draw positions [n], or with all axes of the features but the last, each full or 1."""
    if not lead or not trial.draw(choice(False, True, True)):
        return _places(trial, (n,))
    if trial.draw(st.booleans()):
        return _places(trial, (*lead, n))
    return _places(trial, tuple(size if trial.draw(st.booleans()) else 1 for size in (*lead, n)))


_RANGES: dict[str, tuple[int, int]] = {"batch": (1, 24), "heads": (1, 24), "n": (1, 5000), "pairs": (1, 256)}


def _leads(batch: int, heads: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.sampled_from(((batch, heads), (batch,), (batch, heads)))


def draw_rope(trial: Trial) -> Arguments:
    """Draw features of any leading shape, with any options."""
    large = trial.sizes(_RANGES, lambda s: s["batch"] * s["heads"] * s["n"] * 2 * s["pairs"])
    lead, n, d = trial.draw(leading_shapes(2, 3)), trial.draw(sizes(1, 4)), trial.draw(choice(4, 2, 6, 8))
    if large is not None:
        lead, n, d = trial.draw(_leads(large["batch"], large["heads"])), large["n"], 2 * large["pairs"]
    return {
        "x": trial.tensor(trial.draw(values()).array(*lead, n, d)),
        "positions": positions_for(trial, lead, n),
        **trial.option("base", None, 500.0, 1e6, 2.0, 10000),
        **pairings(trial),
        **trial.option("scaling", None, None, ("linear", 2.0), ("ntk", 4.0), ("linear", 0.3), ("ntk", 1.5)),
    }


def features(trial: Trial, n: int = 3, d: int = 6) -> torch.Tensor:
    """Draw ordinary features [n, d]."""
    return trial.tensor(trial.draw(values(("gaussian", "one-signed"))).array(n, d))


def _ordinary(trial: Trial) -> Arguments:
    n = trial.draw(sizes(1, 4))
    return {"x": trial.tensor(trial.draw(values(("gaussian",))).array(2, 3, n, 4)), "positions": torch.arange(n)}


def _part(trial: Trial) -> tuple[Arguments, Arguments, dict[str, Index]]:
    """Draw a call, and one of its positions alone."""
    n = trial.draw(sizes(1, 4))
    a = {**draw_rope(trial), "x": features(trial, n), "positions": _places(trial, (n,))}
    i = trial.draw(st.integers(0, n - 1))
    index = (slice(i, i + 1),)
    return a, {**a, "x": a["x"][index], "positions": a["positions"][index]}, {"result": index, "x": index}


def _changes(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    a: dict[str, Any] = {"x": features(trial), "positions": torch.tensor([2, 5, 1]), "base": 100.0}
    changed: dict[str, Arguments] = {
        "x": {**a, "x": perturbed(trial, a["x"], trial.draw(values()).rng)},
        "positions": {**a, "positions": torch.tensor([2, 5, 3])},
        "base": {**a, "base": 20.0},
        "linear scaling": {**a, "scaling": ("linear", 2.0)},
        "NTK scaling": {**a, "scaling": ("ntk", 3.0)},
    }
    if not trial.claims.deviates("rope.pairing"):
        changed["pairing"] = {**a, "pairing": "half"}
    return a, changed


def _bulk(trial: Trial) -> Arguments:
    kind = trial.draw(values(("gaussian", "one-signed", "spread")))
    n, d = trial.draw(extent(16, 200)), 2 * trial.draw(extent(4, 64))
    return {"x": trial.tensor(kind.array(n, d)), "positions": torch.arange(n), **pairings(trial)}


def _refusals(trial: Trial, good: Arguments) -> Iterator[InvalidCall]:
    x, at = features(trial), torch.arange(3)
    two: Arguments = {"x": x, "positions": at}
    batched = {"x": torch.stack((x, x))[:, None], "positions": torch.zeros(2, 3).long()}
    yield InvalidCall("an odd width", {**two, "x": x[:, :5]}, ("x",))
    yield InvalidCall("positions of the batch alone", batched, ("positions", "x"))
    yield InvalidCall("positions per feature", {**two, "positions": torch.zeros(3, 6).long()}, ("positions", "x"))
    for scaling in (("cubic", 2.0), ("linear", 0.0), ("linear", -2.0), ("linear", True), "linear"):
        yield InvalidCall(f"scaling {scaling!r}", {**two, "scaling": scaling}, ("scaling",))


ROPE = operation(
    "rope",
    sample=draw_rope,
    sample_basic=_ordinary,
    formulas=(_rope, _rope_by_three),
    vjps=(_rope_vjp, _rope_vjp_by_three),
    refuses=_refusals,
    batch_slice=_part,
    argument_perturbations=_changes,
    sample_accuracy=_bulk,
    sample_large=draw_rope,
    convention_kwargs=by_default,
    structural_dtypes=("fp32", "bf16"),
)

"""The Transformer block as a record. Its parameters are arguments of their own here, put together by ``uses``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from veriformer.spec.blocks.transformer_block import transformer_block, transformer_block_vjp
from veriformer.verify.judging.op_info import Index, InvalidCall, OpInfo
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.operations.changes import perturbed
from veriformer.verify.strategies import choice, sizes, values

PARAMS = (
    "w_q", "w_k", "w_v", "w_o", "w1", "b1", "w2", "b2", "norm1_weight", "norm1_bias", "norm2_weight", "norm2_bias",
)  # fmt: skip


_SETTINGS = ("num_heads", "num_kv_heads", "norm", "activation", "is_causal", "eps")


KINDS = ("gaussian", "integers", "one-signed", "offset")


SMOOTH = ("gelu", "sigmoid", "tanh")
"""Activations whose slope rounding cannot decide."""


_RANGES: dict[str, tuple[int, int]] = {
    "batch": (1, 8),
    "n": (1, 200),
    "d": (4, 200),
    "groups": (1, 10),
    "repeats": (1, 4),
    "d_k": (1, 96),
    "d_v": (1, 96),
    "f": (1, 300),
}


def _work(shape: Sequence[int]) -> float:
    """Return the number of scores; 64 products count as one, and so do 4 features or weights."""
    b, n, d, g, r, d_k, d_v, f = shape
    weights = d * (g * r * (d_k + d_v) + g * (d_k + d_v) + 2 * f)
    scores = g * r * n * n * (1 + (d_k + d_v) / 64)
    entries = b * n * (4 * d + f + g * r * (d_k + d_v)) + weights
    return b * (scores + n * weights / 64) + entries / 4


def draw_block(
    trial: Trial, *, kinds: Sequence[str] = KINDS, least: int = 1, activations: Sequence[str] = (*SMOOTH, "relu")
) -> dict[str, Any]:
    """Return a block of small odd sizes, pre or post, not causal and without a mask."""

    def made(s: Mapping[str, int]) -> list[int]:
        return _supported(trial, [s[name] for name in _RANGES])

    large = trial.sizes({**_RANGES, "n": (least, 200)}, lambda s: _work(made(s)), (("d_k", "d_v"),))
    if large is not None:
        return _block(trial, made(large), kinds, activations)
    sizes_of = ((1, 2), (least, 3), (4, 6), (1, 2), (1, 2), (1, 3), (1, 2), (1, 4))
    return _block(trial, _supported(trial, [trial.draw(sizes(*ends)) for ends in sizes_of]), kinds, activations)


def _supported(trial: Trial, shape: Sequence[int]) -> list[int]:
    """Return the sizes, or nearby ones that the target takes."""
    b, n, d, groups, repeats, d_k, d_v, f = shape
    if not all(map(trial.supports, ("grouped heads", "one key head for several"))):
        groups, repeats = groups * repeats, 1
    if not trial.supports("heads of odd width"):
        d_k += d_k % 2
    if not trial.supports("d_v ≠ d_k"):
        d_v = d_k
    if not trial.supports("heads narrower or wider than d / H"):
        d = groups * repeats * d_k
        d, d_k, d_v = (2 * d, 2 * d_k, 2 * d_k) if d < 3 else (d, d_k, d_v)  # rows of two are ±1 whatever they hold
    return [b, n, d, groups, repeats, d_k, d_v, f]


def _block(trial: Trial, shape: Sequence[int], kinds: Sequence[str], activations: Sequence[str]) -> dict[str, Any]:
    """Draw a block of b, n, d, groups, heads of each, d_k, d_v and f as given."""
    b, n, d, groups, repeats, d_k, d_v, f = shape
    heads = groups * repeats
    shapes: dict[str, tuple[int, ...]] = {
        "w_q": (d, heads * d_k),
        "w_k": (d, groups * d_k),
        "w_v": (d, groups * d_v),
        "w_o": (heads * d_v, d),
    }
    shapes |= {"w1": (d, f), "b1": (f,), "w2": (f, d), "b2": (d,)}
    rng = trial.draw(values()).rng
    weights = {name: trial.tensor(0.3 * rng.standard_normal(shape)) for name, shape in shapes.items()}
    for place in ("norm1", "norm2"):
        weights[f"{place}_weight"] = trial.tensor(1.0 + 0.5 * rng.standard_normal(d))
        weights[f"{place}_bias"] = trial.tensor(0.5 * rng.standard_normal(d))
    x = trial.tensor(trial.draw(values(tuple(kinds))).array(b, n, d) + 0.25 * rng.standard_normal((b, n, d)))
    options: dict[str, Any] = {"num_heads": heads, **trial.option("norm", "pre", "post")}
    options |= {} if repeats == 1 else {"num_kv_heads": groups}
    options |= trial.option("activation", None, *activations)
    return {"x": x, **weights, **options, **trial.option("eps", None, 0.1, 0.02)}


def draw_any(trial: Trial) -> Arguments:
    """Return a block, causal or not, with padding or without."""
    return _with_hiding(trial, draw_block(trial))


def _with_hiding(trial: Trial, a: Arguments) -> Arguments:
    """Add causality or not, padding or none: never at the first token, so that every token sees one."""
    causal = {"is_causal": True} if trial.draw(choice(True, False)) else {}
    if not trial.offers("attention_mask") or not trial.draw(choice(False, True)):
        return {**a, **causal}
    real = trial.draw(values()).rng.random(tuple(a["x"].shape[:2])) < 0.6
    real[:, 0] = True
    return {**a, **causal, "attention_mask": torch.as_tensor(real)}


def settings(a: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a call that the formula takes as they are."""
    return {name: a[name] for name in (*_SETTINGS, "attention_mask") if name in a}


def _formula(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [transformer_block(xp, a["x"], {name: a[name] for name in PARAMS}, **settings(a))]


def _vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    dx, gradients = transformer_block_vjp(xp, a["x"], {name: a[name] for name in PARAMS}, g, **settings(a))
    return {"x": dx, **gradients}


def _ordinary(trial: Trial) -> Arguments:
    return draw_block(trial, kinds=("gaussian",))


def _part(trial: Trial) -> tuple[Arguments, Arguments, dict[str, Index]]:
    """Draw a call, and one of its batch elements alone."""
    whole = draw_any(trial)
    i = trial.draw(sizes(0, whole["x"].shape[0] - 1))
    element = (slice(i, i + 1),)
    alone = {name: whole[name][element] for name in ("x", "attention_mask") if name in whole}
    return whole, {**whole, **alone}, {"result": element, "x": element}


def _long(trial: Trial) -> Arguments:
    """Draw more tokens, or more features, than fit into a tile."""
    trial.only_large(8.0)
    return _with_hiding(trial, draw_block(trial, kinds=("gaussian",), activations=SMOOTH))


def _changes(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    a = draw_block(trial, kinds=("gaussian",), least=3, activations=SMOOTH)
    rng = trial.draw(values()).rng
    changed: dict[str, Arguments] = {name: {**a, name: perturbed(trial, a[name], rng)} for name in ("x", *PARAMS)}
    changed["norm"] = {**a, "norm": "pre" if a.get("norm") == "post" else "post"}
    changed["activation"] = {**a, "activation": "relu"}
    changed["is_causal"] = {**a, "is_causal": True}
    changed["eps"] = {**a, "eps": 1.0}
    mask = torch.ones(a["x"].shape[:2], dtype=torch.bool)
    mask[:, 0] = False
    changed["attention_mask"] = {**a, "attention_mask": mask}
    return a, changed


def _refusals(trial: Trial) -> Iterator[InvalidCall]:
    rng = trial.draw(values()).rng

    def made(*shape: int) -> torch.Tensor:
        return trial.tensor(rng.standard_normal(shape))

    d, f = 5, 7
    shapes = {
        "w_q": (d, 12),
        "w_k": (d, 6),
        "w_v": (d, 4),
        "w_o": (8, d),
        "w1": (d, f),
        "b1": (f,),
        "w2": (f, d),
        "b2": (d,),
    }
    shapes |= {name: (d,) for name in PARAMS if name.startswith("norm")}
    good: dict[str, Any] = {"x": made(2, 3, d), **{name: made(*shape) for name, shape in shapes.items()}}
    good |= {"num_heads": 4, "num_kv_heads": 2}
    other = torch.float32 if trial.dtype is torch.float64 else torch.float64
    yield InvalidCall("tokens of rank 2", {**good, "x": made(3, d)}, ("x",))
    yield InvalidCall("no tokens", {**good, "x": None}, ("x",))
    yield InvalidCall("tokens of another width", {**good, "x": made(2, 3, d + 1)}, ("x", "params", *PARAMS))
    for name in PARAMS:
        yield InvalidCall(f"{name} is missing", {key: good[key] for key in good if key != name}, (name, "params"))
    for name in ("w_q", "b1", "norm2_bias"):
        yield InvalidCall(f"{name} of another dtype", {**good, name: good[name].to(other)}, ("x", "params", *PARAMS))
    for name in ("w_k", "w_o", "w1", "w2", "b2", "norm1_weight"):
        wrong = made(*(size + 1 for size in shapes[name]))
        yield InvalidCall(f"{name} of another shape", {**good, name: wrong}, ("params", "x", *PARAMS))
    yield InvalidCall("an unknown norm", {**good, "norm": "sandwich"}, ("norm",))
    yield InvalidCall("an unknown activation", {**good, "activation": "gauss"}, ("activation",))
    yield InvalidCall("a negative eps", {**good, "eps": -1e-5}, ("eps",))
    yield InvalidCall("key heads that do not divide", {**good, "num_kv_heads": 3}, ("num_kv_heads", "num_heads"))
    yield InvalidCall("heads of 0", {**good, "num_heads": 0}, ("num_heads",))
    mask = torch.ones(2, 4, dtype=torch.bool)
    yield InvalidCall("a mask of another length", {**good, "attention_mask": mask}, ("attention_mask", "x"))


TRANSFORMER_BLOCK = OpInfo(
    name="transformer_block",
    sample=draw_any,
    sample_basic=_ordinary,
    formulas=(_formula,),
    vjps=(_vjp,),
    inputs=("x", *PARAMS),
    invalid_calls=_refusals,
    batch_slice=_part,
    argument_perturbations=_changes,
    sample_large=_long,
    dtypes=("fp64", "fp32", "fp16"),  # in bf16 two norms leave the bounds nothing to say
    use_exact_oracle=False,
)

"""Attention as a record, with the calls that must be refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from veriformer.spec.attention.attention import attention, attention_vjp
from veriformer.verify.judging.op_info import Index, InvalidCall, OpInfo
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.operations.attention.attention.draws import (
    draw_attention,
    draw_options,
    draw_shape,
    draw_tensors,
)
from veriformer.verify.operations.attention.causal_mask import alignment
from veriformer.verify.operations.changes import perturbed
from veriformer.verify.strategies import choice, sizes, values

_OPTIONS = ("mask", "bias", "is_causal", "window", "scale", "softcap", "keep", "alignment")


def _options(a: Mapping[str, Any]) -> dict[str, Any]:
    given = {key: a[key] for key in _OPTIONS if key in a}
    return given | ({"dropout_p": a["dropout_p"]} if "keep" in a else {})


def _attention(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [attention(xp, a["q"], a["k"], a["v"], **_options(a))]


def _attention_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    found = attention_vjp(xp, a["q"], a["k"], a["v"], g, **_options(a))
    return dict(zip(("q", "k", "v", "bias"), found, strict=True))


def _ordinary(trial: Trial) -> Arguments:
    b, h, n, d = (trial.draw(sizes(1, 4)) for _ in range(4))
    kind = trial.draw(values(("gaussian",)))
    n, d = trial.fitted("n", n), trial.fitted("d_k", d)
    q, k, v = (trial.tensor(x) for x in kind.array(3, b, h, n, d))
    causal = {} if trial.supports("the default of is_causal") else {"is_causal": True}
    return {"q": q, "k": k, "v": v, **causal}


def _slice(trial: Trial) -> tuple[Arguments, Arguments, dict[str, Index]]:
    """Draw a call, and one of its batch elements with one group of heads alone."""
    shape = draw_shape(trial)
    whole: Arguments = {**draw_tensors(trial, shape), **draw_options(trial, shape)}
    b, h, groups = shape[:3]
    i, group = trial.draw(sizes(0, b - 1)), trial.draw(sizes(0, groups - 1))
    repeats = h // groups
    heads = (slice(i, i + 1), slice(group * repeats, (group + 1) * repeats))
    group_of = (slice(i, i + 1), slice(group, group + 1))
    index: dict[str, Index] = {"result": heads, "q": heads, "k": group_of, "v": group_of}
    alone: dict[str, Any] = {**whole, **{name: whole[name][index[name]] for name in ("q", "k", "v")}}
    for name in ("mask", "bias"):
        if name in whole:
            alone[name] = _narrowed(whole[name], heads)
    return whole, alone, index


def _narrowed(x: torch.Tensor, heads: Index) -> torch.Tensor:
    lead = heads[4 - x.ndim :] if x.ndim > 2 else ()
    return x[tuple(one if n > 1 else slice(None) for one, n in zip(lead, x.shape, strict=False))]


def _changes(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    n, d = trial.fitted("n", trial.draw(sizes(3, 6))), trial.fitted("d_k", trial.draw(sizes(2, 4)))
    kind = trial.draw(values(("gaussian", "one-signed")))
    q, k, v = (trial.tensor(x) for x in kind.array(3, 2, 2, n, d))
    a: Arguments = {"q": q, "k": k, "v": v, "is_causal": True}
    bias = trial.tensor(kind.array(n, n))
    changed: dict[str, Arguments] = {name: {**a, name: perturbed(trial, a[name], kind.rng)} for name in ("q", "k", "v")}
    changed["mask"] = {**a, "mask": torch.eye(n, dtype=torch.bool)}
    changed["bias"] = {**a, "bias": bias}
    for name, other in {"is_causal": False, "window": 2, "scale": 1.75, "softcap": 0.25}.items():
        changed[name] = {**a, name: other}
    return a, changed


def _bulk(trial: Trial) -> Arguments:
    """Draw calls of any size, scores of ordinary size; two thirds of the calls are plain."""
    trial.only_large(2.0)
    shape = draw_shape(trial, n_q=(8, 60), n_k=(32, 1200), d_k=(8, 256))
    tensors = draw_tensors(trial, shape, ("gaussian", "duplicates", "sparse"))
    options = draw_options(trial, shape, ("gaussian", "sparse")) if trial.draw(choice(False, False, True)) else {}
    return {**tensors, **options}


def _bad_attention(trial: Trial) -> Iterator[InvalidCall]:
    """Yield one invalid call for every way in which sizes, dtypes and options can be wrong."""
    b, groups, n_k, d_k, d_v = (trial.draw(sizes(2, 4)) for _ in range(5))
    n_q, h = n_k + 1, 2 * groups
    kind = trial.draw(values(("gaussian",)))

    def made(*shape: int) -> torch.Tensor:
        return trial.tensor(kind.array(*shape))

    good = {"q": made(b, h, n_q, d_k), "k": made(b, groups, n_k, d_k), "v": made(b, groups, n_k, d_v)}
    for name in good:
        yield InvalidCall(f"no {name}", {**good, name: None}, (name,))
        yield InvalidCall(f"{name} of rank 3", {**good, name: good[name][0]}, (name,))
        yield InvalidCall(
            f"{name} of another dtype", {**good, name: good[name].to(_other(trial.dtype))}, ("q", "k", "v")
        )
    yield InvalidCall("batches that differ", {**good, "k": made(b + 1, groups, n_k, d_k)}, ("q", "k", "v"))
    yield InvalidCall("a batch of one key set", {**good, "k": good["k"][:1], "v": good["v"][:1]}, ("q", "k", "v"))
    yield InvalidCall("widths that differ", {**good, "k": made(b, groups, n_k, d_k + 1)}, ("q", "k"))
    yield InvalidCall("lengths that differ", {**good, "v": made(b, groups, n_k + 1, d_v)}, ("k", "v"))
    yield InvalidCall("one value for all keys", {**good, "v": good["v"][:, :, :1]}, ("k", "v"))
    yield InvalidCall("groups that differ", {**good, "v": made(b, h, n_k, d_v)}, ("k", "v"))
    yield InvalidCall("groups that do not divide the heads", {**good, "q": made(b, h + 1, n_q, d_k)}, ("q", "k", "v"))
    yield InvalidCall("more groups than heads", {**good, "q": made(b, 1, n_q, d_k)}, ("q", "k", "v"))
    yield from _bad_options(good, n_q, n_k)


ATTENTION = OpInfo(
    name="attention",
    sample=draw_attention,
    sample_basic=_ordinary,
    formulas=(_attention,),
    vjps=(_attention_vjp,),
    inputs=("q", "k", "v", "bias"),
    invalid_calls=_bad_attention,
    convention_kwargs=alignment,
    batch_slice=_slice,
    argument_perturbations=_changes,
    sample_accuracy=_bulk,
)


def _other(dtype: torch.dtype) -> torch.dtype:
    return torch.float32 if dtype is torch.float64 else torch.float64


def _bad_options(good: Arguments, n_q: int, n_k: int) -> Iterator[InvalidCall]:
    for name, made in (("mask", torch.ones), ("bias", torch.zeros)):
        dtype = torch.bool if name == "mask" else good["q"].dtype
        yield InvalidCall(f"a {name} too wide", {**good, name: made(n_q, n_k + 1, dtype=dtype)}, (name,))
        yield InvalidCall(f"a transposed {name}", {**good, name: made(n_k, n_q, dtype=dtype)}, (name,))
        yield InvalidCall(f"a {name} of rank 1", {**good, name: made(n_k, dtype=dtype)}, (name,))
        yield InvalidCall(f"a {name} of rank 5", {**good, name: made(1, 1, 1, n_q, n_k, dtype=dtype)}, (name,))
    yield InvalidCall("a mask of numbers", {**good, "mask": torch.ones(n_q, n_k, dtype=good["q"].dtype)}, ("mask",))
    yield InvalidCall("a mask of integers", {**good, "mask": torch.ones(n_q, n_k, dtype=torch.int64)}, ("mask",))
    yield InvalidCall("a window that is not causal", {**good, "window": 2}, ("window", "is_causal"))
    yield InvalidCall("an empty window", {**good, "window": 0, "is_causal": True}, ("window",))
    for name in ("scale", "softcap", "dropout_p"):
        yield InvalidCall(f"a bool for {name}", {**good, name: True}, (name,))
    yield InvalidCall("a bool for a window", {**good, "window": True, "is_causal": True}, ("window",))
    yield InvalidCall("a cap of 0", {**good, "softcap": 0.0}, ("softcap",))
    yield InvalidCall("a negative cap", {**good, "softcap": -1.0}, ("softcap",))
    yield InvalidCall("dropout below 0", {**good, "dropout_p": -0.1}, ("dropout_p",))
    yield InvalidCall("dropout above 1", {**good, "dropout_p": 1.1}, ("dropout_p",))
    yield InvalidCall("dropout above 1 in training", {**good, "dropout_p": 1.1, "training": True}, ("dropout_p",))

"""Attention as a record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from veriformer.spec.attention.attention import attention, attention_vjp
from veriformer.verify.judging.op_info import Index, OpInfo
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.operations.attention.attention.draws import (
    draw_attention,
    draw_options,
    draw_shape,
    draw_tensors,
)
from veriformer.verify.operations.attention.attention.invalid_calls import bad_attention
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


ATTENTION = OpInfo(
    name="attention",
    sample=draw_attention,
    sample_basic=_ordinary,
    formulas=(_attention,),
    vjps=(_attention_vjp,),
    inputs=("q", "k", "v", "bias"),
    invalid_calls=bad_attention,
    convention_kwargs=alignment,
    batch_slice=_slice,
    argument_perturbations=_changes,
    sample_accuracy=_bulk,
)

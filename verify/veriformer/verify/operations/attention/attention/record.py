"""Attention as a record, with the calls that must be refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from veriformer.spec.operations import OPERATIONS
from veriformer.verify.judging.op_info import Index, InvalidCall
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.operations.attention.attention.draws import (
    draw_attention,
    draw_options,
    draw_shape,
    draw_tensors,
)
from veriformer.verify.operations.attention.causal_mask import alignment
from veriformer.verify.operations.changes import perturbed
from veriformer.verify.operations.derived import invalid_calls, operation
from veriformer.verify.strategies import choice, sizes, values


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


def _good(trial: Trial) -> Arguments:
    """Draw queries, keys and values of which no two sizes are equal, with grouped heads."""
    b, groups, n_k, d_k, d_v = (trial.draw(sizes(2, 4)) for _ in range(5))
    kind = trial.draw(values(("gaussian",)))
    shapes = {"q": (b, 2 * groups, n_k + 1, d_k), "k": (b, groups, n_k, d_k), "v": (b, groups, n_k, d_v)}
    return {name: trial.tensor(kind.array(*shape)) for name, shape in shapes.items()}


def _refusals(trial: Trial, good: Arguments) -> Iterator[InvalidCall]:
    q, k, v = good["q"], good["k"], good["v"]
    for name in good:
        yield InvalidCall(f"{name} of rank 3", {**good, name: good[name][0]}, (name,))
    three = ("q", "k", "v")
    yield InvalidCall("a batch of one key set", {**good, "k": k[:1], "v": v[:1]}, three)
    yield InvalidCall("groups that do not divide the heads", {**good, "q": torch.cat((q, q[:, :1]), 1)}, three)
    yield InvalidCall("more groups than heads", {**good, "q": q[:, :1]}, three)
    yield from _bad_options(good, q.shape[2], k.shape[2])


ATTENTION = operation(
    "attention",
    sample=draw_attention,
    sample_basic=_ordinary,
    invalid_calls=lambda trial: invalid_calls(OPERATIONS["attention"], trial, _good(trial), _refusals),
    convention_kwargs=alignment,
    batch_slice=_slice,
    argument_perturbations=_changes,
    sample_accuracy=_bulk,
)


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
    yield InvalidCall("a cap of 0", {**good, "softcap": 0.0}, ("softcap",))
    yield InvalidCall("dropout above 1 in training", {**good, "dropout_p": 1.1, "training": True}, ("dropout_p",))

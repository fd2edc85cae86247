"""Calls of attention that must be refused."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from veriformer.verify.judging.op_info import InvalidCall
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.strategies import sizes, values


def bad_attention(trial: Trial) -> Iterator[InvalidCall]:
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

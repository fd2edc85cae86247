"""Tensors, widths, formulas and bad calls shared by networks of two layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from veriformer.spec.layers.activations import activate, activate_vjp
from veriformer.spec.layers.dropout import dropout, dropout_vjp
from veriformer.spec.layers.linear import linear_vjp
from veriformer.verify.judging.op_info import Formula, Vjp
from veriformer.verify.judging.trial import Trial
from veriformer.verify.operations.changes import several

WEIGHTS = ("w1", "b1", "w2", "b2")


def _folded(xp: Any, x: Any, w: Any, b: Any) -> Any:
    """Return x W + b with the bias as the weight of a feature that is always 1: it joins the sum wherever it likes."""
    one = xp.asarray(np.ones((*x.shape[:-1], 1)))
    return xp.matmul(xp.concat([x, one], axis=-1), xp.concat([w, xp.reshape(b, (1, b.shape[0]))], axis=0))


def _hidden(xp: Any, a: Mapping[str, Any], activation: str) -> tuple[Any, Any]:
    """Return pre-activations, and what dropout leaves of the hidden values."""
    z = _folded(xp, a["x"], a["w1"], a["b1"])
    return z, dropout(xp, activate(xp, z, activation), a.get("dropout_p", 0.0), keep=a.get("keep"))


def bias_in_the_sum(default: str) -> Formula:
    """Return the formula with each bias as one more term of its sum."""

    def formula(xp: Any, a: Mapping[str, Any]) -> list[Any]:
        _, h = _hidden(xp, a, a.get("activation", default))
        return [_folded(xp, h, a["w2"], a["b2"])]

    return formula


def bias_in_the_sum_vjp(default: str) -> Vjp:
    """Return the gradient of that formula."""

    def vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
        activation = a.get("activation", default)
        z, h = _hidden(xp, a, activation)
        dh, dw2, db2 = linear_vjp(xp, h, a["w2"], g)
        dropped = dropout_vjp(xp, h, a.get("dropout_p", 0.0), dh, keep=a.get("keep"))
        dx, dw1, db1 = linear_vjp(xp, a["x"], a["w1"], activate_vjp(xp, z, dropped, activation))
        return {"x": dx, "w1": dw1, "b1": db1, "w2": dw2, "b2": db2}

    return vjp


def network(trial: Trial, lead: tuple[int, ...], d: int, f: int, o: int) -> dict[str, torch.Tensor]:
    """Draw input, weights and biases of a network of these widths."""
    return several(trial, {"x": (*lead, d), "w1": (d, f), "b1": (f,), "w2": (f, o), "b2": (o,)})


def gated(trial: Trial, lead: tuple[int, ...], d: int, f: int, o: int) -> dict[str, torch.Tensor]:
    """Draw input and weights of a gated network of these widths."""
    return several(trial, {"x": (*lead, d), "w_gate": (d, f), "w_up": (d, f), "w_down": (f, o)})


def work(s: Mapping[str, int]) -> float:
    """Return the number of hidden features; 64 products count as one, and so do 4 other features or weights."""
    d, f, o = s["d"], s["f"], s["o"]
    return s["rows"] * (f + (d + o) / 4 + (d + o) * f / 64) + (d + o) * f / 4

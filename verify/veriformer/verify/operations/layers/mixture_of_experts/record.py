"""The mixture of experts as a record.

Scores are drawn so that every dtype computes them exactly: who is chosen hangs on no rounding, also where scores tie.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from veriformer.spec.layers.linear import as_rows
from veriformer.spec.layers.mixture_of_experts import (
    hidden_units,
    mixture_of_experts,
    mixture_of_experts_vjp,
    of_all_experts,
    route,
    through_units,
)
from veriformer.spec.scores.softmax import softmax
from veriformer.verify.judging.op_info import InvalidCall
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.operations.changes import perturbed, several
from veriformer.verify.operations.derived import operation
from veriformer.verify.strategies import choice, extent, leading_shapes, sizes, values
from veriformer.verify.targets.claims import Claims

WEIGHTS = ("router", "w1", "b1", "w2", "b2")


TENSORS = ("x", *WEIGHTS)


GATES = ("renormalised", "of all")
"""The softmax of the scores of the chosen experts alone, or the chosen experts' part of that of all."""


EXPERTS = ("GELU", "SwiGLU")
"""Networks of two layers with GELU and biases, or with a gate under SiLU and without biases."""


def _call(a: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    options = {"top_k": int(a["top_k"])} if "top_k" in a else {}
    return [a[name] for name in TENSORS], {**options, "renormalised": renormalised(a)}


def renormalised(a: Mapping[str, Any]) -> bool:
    """Return whether the gates of the chosen experts sum to 1."""
    return bool(a.get("gates", GATES[0]) == GATES[0])


def _gates(claims: Claims) -> dict[str, Any]:
    return {"gates": claims.convention("mixture_of_experts.gates")}


def gated(trial: Trial) -> bool:
    """Return whether the experts are SwiGLU, as the target claims."""
    return trial.claims.deviates("mixture_of_experts.experts")


def _mixture(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    tensors, options = _call(a)
    return [mixture_of_experts(xp, *tensors, **options)]


def _mixture_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    tensors, options = _call(a)
    return dict(zip(TENSORS, mixture_of_experts_vjp(xp, *[*tensors, g], **options), strict=True))


def _over_all(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """Return the mixture by the softmax over all experts, renormalised afterwards; biases within the sums."""
    if not renormalised(a):
        return []
    rows, *_, q = _renormalised(xp, a)
    y = xp.sum(_answers(xp, a, rows)[1] * _per_expert(xp, q), axis=0)
    return [xp.reshape(y, (*a["x"].shape[:-1], y.shape[-1]))]


def _over_all_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    """Return the chain rule for that form: what the experts that were not chosen get is zero only over the reals."""
    if not renormalised(a):
        return {}
    rows, chosen, p, q = _renormalised(xp, a)
    g, (z, answers) = as_rows(xp, g), _answers(xp, a, rows)
    dq = xp.swapaxes(xp.sum(answers * g, axis=-1), 0, 1)
    share = xp.sum(xp.where(chosen, p, 0), axis=-1, keepdims=True)
    dp = xp.where(chosen, (dq - xp.sum(q * dq, axis=-1, keepdims=True)) / share, 0)
    ds = p * (dp - xp.sum(p * dp, axis=-1, keepdims=True))
    dy = _per_expert(xp, q) * g
    dz = through_units(xp, z, xp.matmul(dy, xp.swapaxes(a["w2"], 1, 2)), gated=a["b1"] is None)
    dx = of_all_experts(xp, dz, a["w1"]) + xp.matmul(ds, xp.swapaxes(a["router"], 0, 1))
    columns, h = xp.swapaxes(rows, 0, 1), hidden_units(xp, z, gated=a["b1"] is None)
    return {
        "x": xp.reshape(dx, a["x"].shape),
        "router": xp.matmul(columns, ds),
        "w1": xp.matmul(columns, dz),
        "b1": None if a["b1"] is None else xp.sum(dz, axis=1),
        "w2": xp.matmul(xp.swapaxes(h, 1, 2), dy),
        "b2": None if a["b2"] is None else xp.sum(dy, axis=1),
    }


def _renormalised(xp: Any, a: Mapping[str, Any]) -> tuple[Any, Any, Any, Any]:
    """Return the rows, the chosen experts of each, the softmax over all, and its share among the chosen."""
    rows = as_rows(xp, a["x"])
    chosen, _ = route(xp, rows, a["router"], int(a.get("top_k", 2)))
    p = softmax(xp, xp.matmul(rows, a["router"]))
    kept = xp.where(chosen, p, 0)
    return rows, chosen, p, kept / xp.sum(kept, axis=-1, keepdims=True)


def _answers(xp: Any, a: Mapping[str, Any], rows: Any) -> tuple[Any, Any]:
    """Return every expert's pre-activations and answer to every row, with the biases within the sums."""
    z = _folded(xp, xp.broadcast_to(rows, (a["w1"].shape[0], *rows.shape)), a["w1"], a["b1"])
    return z, _folded(xp, hidden_units(xp, z, gated=a["b1"] is None), a["w2"], a["b2"])


def _folded(xp: Any, x: Any, w: Any, b: Any) -> Any:
    if b is None:
        return xp.matmul(x, w)
    one = xp.asarray(np.ones((*x.shape[:-1], 1)))
    rows = xp.reshape(b, (b.shape[0], 1, b.shape[1]))
    return xp.matmul(xp.concat([x, one], axis=-1), xp.concat([w, rows], axis=1))


def _per_expert(xp: Any, gates: Any) -> Any:
    return xp.reshape(xp.swapaxes(gates, 0, 1), (*gates.shape[::-1], 1))


def halves(trial: Trial, *shape: int) -> torch.Tensor:
    """Draw multiples of one half up to 1: products and sums of a few of them are exact in every dtype."""
    return trial.tensor(trial.draw(values(("gaussian",))).rng.integers(-2, 3, shape) / 2)


def experts(trial: Trial, number: int, d: int, h: int, o: int) -> dict[str, Any]:
    """Return the weights of this many experts, of which SwiGLU has a gate and a value in the first, and no biases."""
    if gated(trial):
        return {"b1": None, "b2": None, **several(trial, {"w1": (number, d, 2 * h), "w2": (number, h, o)})}
    return several(trial, {"w1": (number, d, h), "b1": (number, h), "w2": (number, h, o), "b2": (number, o)})


WIDTHS = ((3, 2, 1), (2, 3, 2), (4, 1, 3), (1, 2, 3), (3, 3, 2))


def mixture(trial: Trial, lead: tuple[int, ...], number: int, widths: Any = None) -> dict[str, Any]:
    """Draw tokens, router and experts of small, unequal widths; scores tie where the target says what it does then."""
    d, h, o = widths or trial.draw(choice(*WIDTHS))
    x, router = halves(trial, *lead, d), halves(trial, d, number)
    if trial.claims.deviates("choice.ties"):
        x, router = _apart(x, router)
    return {"x": x, "router": router, **experts(trial, number, d, h, o)}


def _apart(x: torch.Tensor, router: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Make the scores of all experts distinct, still exact: each expert has a fraction of a quarter of its own."""
    number = router.shape[1]
    x[..., 0] = 1
    router[0] = torch.arange(number).roll(int(x.sum())) / max(32, 4 << (number - 1).bit_length())
    return x, router


_RANGES: dict[str, tuple[int, int]] = {
    "rows": (1, 1000),
    "experts": (2, 320),
    "d": (1, 60),
    "h": (1, 300),
    "o": (1, 300),
}
"""Smallest and largest numbers of tokens and experts, and their widths; sums of more than 64 scores of halves are not
exact in bf16."""


def _work(s: Mapping[str, int]) -> float:
    """Return every expert's answer to every token, and the weights; 64 products of a matrix cost as much as an
    entry.
    """
    d, h, o = s["d"], s["h"], s["o"]
    return s["experts"] * (s["rows"] * (h + o + (d + o) * h / 64) + (d + o) * h / 4)


def draw_mixture(trial: Trial) -> Arguments:
    """Draw tokens of any leading shape; one expert, some, or all are asked, and scores often tie."""
    large = None if trial.claims.deviates("choice.ties") else trial.sizes(_RANGES, _work)
    if large is not None:
        number = large["experts"]
        a = mixture(trial, trial.axes(large["rows"]), number, (large["d"], large["h"], large["o"]))
        if number > 8 and trial.draw(choice(False, True)):  # the last are asked, where of equal scores the first are
            a["router"][:, : trial.draw(extent(1, number - 4))] = 0
        return {**a, "top_k": trial.draw(extent(1, min(number, 8)))}
    number = trial.draw(sizes(2, 5))
    top_k = trial.option("top_k", *(k for k in (1, 3, None, 2, number, number - 1) if k is None or k <= number))
    return {**mixture(trial, trial.draw(leading_shapes(2, 3)), number), **top_k}


def _ordinary(trial: Trial) -> Arguments:
    return mixture(trial, (trial.draw(sizes(1, 3)), 2), 3)


def _changes(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    a: dict[str, Any] = {**mixture(trial, (3,), 4), "top_k": 2}
    rng = trial.draw(values()).rng
    given = [name for name in TENSORS if a[name] is not None]
    changed: dict[str, Arguments] = {name: {**a, name: perturbed(trial, a[name], rng)} for name in given}
    return a, {**changed, "top_k": {**a, "top_k": trial.draw(choice(1, 3, 4))}}


def _bulk(trial: Trial) -> Arguments:
    return mixture(trial, (trial.draw(sizes(16, 40)),), 4, (6, 5, 4))


def separated(arguments: Arguments) -> bool:
    """Return whether the k-th and the next score differ in every row."""
    scores = np.sort(arguments["x"].double().numpy() @ arguments["router"].double().numpy(), axis=-1)[..., ::-1]
    k = int(arguments.get("top_k", 2))
    return k == scores.shape[-1] or bool((scores[..., k - 1] > scores[..., k]).all())


MIXTURE_OF_EXPERTS = operation(
    "mixture_of_experts",
    sample=draw_mixture,
    sample_basic=_ordinary,
    formulas=(_mixture, _over_all),
    convention_kwargs=_gates,
    vjps=(_mixture_vjp, _over_all_vjp),
    ranking=("x", "router"),
    refuses=lambda trial, good: [InvalidCall("5 of 3 experts", {**good, "top_k": 5}, ("top_k",))],
    argument_perturbations=_changes,
    sample_accuracy=_bulk,
    sample_large=draw_mixture,
    use_exact_oracle=False,
    structural_dtypes=("fp32", "bf16"),
)

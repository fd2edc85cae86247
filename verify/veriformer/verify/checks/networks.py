"""Laws of networks of two layers: the MLP, the feed-forward network with its dropout, and SwiGLU."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from veriformer.verify.checks.agreement import agrees, gradients_agree
from veriformer.verify.checks.attention_dropout import agreement, kept_share
from veriformer.verify.checks.chance import share
from veriformer.verify.checks.equation import draw_cotangent
from veriformer.verify.checks.family import check
from veriformer.verify.checks.laws import alive, constant, equal, inner, scaled, stays_finite
from veriformer.verify.checks.squares import multiplied
from veriformer.verify.judge import Reference
from veriformer.verify.operation import Operation
from veriformer.verify.operations import FEED_FORWARD, MLP, SWIGLU
from veriformer.verify.operations.networks import WEIGHTS, gated, network
from veriformer.verify.script import Seed
from veriformer.verify.strategies import choice, seeds, sizes, values
from veriformer.verify.trial import Arguments, Observation, Trial, array


def _judged(trial: Trial, operation: Operation, arguments: Arguments) -> tuple[Observation, Reference]:
    reference = operation.exact(trial, arguments, sharp=False)[0]
    outcome = trial.call(arguments)
    agrees(trial, operation, arguments, outcome, [reference])
    return outcome.result, reference


def _hidden_order(operation: Operation, trial: Trial) -> None:
    d, f, o = trial.draw(sizes(1, 4)), trial.draw(sizes(2, 6)), trial.draw(sizes(1, 4))
    a: dict[str, Any] = (gated if operation is SWIGLU else network)(trial, (trial.draw(sizes(1, 3)),), d, f, o)
    order = torch.as_tensor(trial.draw(values()).rng.permutation(f))
    columns, rows = (("w_gate", "w_up"), ("w_down",)) if operation is SWIGLU else (("w1", "b1"), ("w2",))
    moved = {name: a[name][..., order] for name in columns} | {name: a[name][order] for name in rows}
    first, of_first = _judged(trial, operation, a)
    second, of_second = _judged(trial, operation, {**a, **moved})
    equal(trial, first, second, of_first, of_second, "hidden units in another order")


def _homogeneous(trial: Trial) -> None:
    a: dict[str, Any] = network(trial, (trial.draw(sizes(1, 3)),), 3, 5, trial.draw(sizes(1, 4)))
    a |= {
        "b1": torch.zeros_like(a["b1"]),
        "b2": torch.zeros_like(a["b2"]),
        **trial.option("activation", None, "relu"),
    }
    factor = trial.draw(choice(2.0, 0.5, 8.0))
    first, of_first = _judged(trial, MLP, a)
    second, of_second = _judged(trial, MLP, {**a, "x": factor * a["x"]})
    grown = trial.observe(multiplied, first, constant(torch.tensor(factor, dtype=torch.float64)))
    there = Reference(of_first.exact * factor, of_first.bound * factor)
    equal(trial, grown, second, there, of_second, "a scaled input without biases")


def _balance(trial: Trial) -> None:
    """The first layer sees x and W₁ through their product alone: ⟨W₁, dW₁⟩ = ⟨x, dx⟩; of the second the result is
    linear in W₂: ⟨W₂, dW₂⟩ = ⟨g, y − b₂⟩."""
    d, f, o = trial.draw(sizes(1, 4)), trial.draw(sizes(2, 5)), trial.draw(sizes(1, 4))
    a: dict[str, Any] = network(trial, (trial.draw(sizes(1, 3)),), d, f, o)
    a |= trial.option("activation", None, "sigmoid", "tanh", "gelu")
    result = MLP.exact(trial, a, sharp=False)[0]
    g = draw_cotangent(trial, result.exact.shape)
    outcome = trial.call(a, wrt=("x", "w1", "w2"), cotangent=g)
    exact = MLP.exact_gradients(trial, a, g, sharp=False)
    alive(trial, outcome.gradient("w1"), exact["w1"], "gradient of w1")
    sizes_of = {name: np.abs(array(a[name])) for name in ("x", "w1", "w2")}
    spread = {name: float(scaled(exact[name].bound, size).sum()) for name, size in sizes_of.items()}
    first = (constant(a["w1"]), outcome.gradient("w1"), constant(a["x"]), outcome.gradient("x"))
    size = float((sizes_of["w1"] * np.abs(exact["w1"].exact)).sum())
    trial.judge(trial.observe(inner, *first), _level(0.0, spread["w1"] + spread["x"], size), "⟨w1, dw1⟩ − ⟨x, dx⟩")
    second = (constant(a["w2"]), outcome.gradient("w2"), constant(g), outcome.result)
    biased = np.abs(array(g)) * (np.abs(result.exact) + np.abs(array(a["b2"])))
    level = -float((array(g) * array(a["b2"])).sum())
    slack = spread["w2"] + float(scaled(result.bound, np.abs(array(g))).sum())
    trial.judge(trial.observe(inner, *second), _level(level, slack, float(biased.sum())), "⟨w2, dw2⟩ − ⟨g, y⟩")


def _level(exact: float, slack: float, size: float) -> Reference:
    """A sum of products of this size in all, within the slack and what adding them up in float64 costs."""
    bound = slack * (1 + 2.0**-40) + 2.0**-46 * size
    return Reference(np.asarray(exact), np.asarray(bound), scale=size, constant=True)


def _range(operation: Operation, trial: Trial) -> None:
    """Hidden values of 1e5 and more, all positive, and a result that fp16 holds, if only with its last bias."""
    rng = trial.draw(values()).rng
    d, f, o = trial.draw(sizes(1, 3)), trial.draw(sizes(1, 3)), trial.draw(sizes(1, 3))
    signs = rng.choice([-1.0, 1.0], d)
    x, down = signs * rng.integers(200, 256, (2, d)), rng.choice([-1.0, 1.0], o) * rng.uniform(0.5, 1.0, (f, o)) / 256
    weights: dict[str, Any]
    if operation is SWIGLU:
        gate, up = (signs[:, None] * rng.uniform(1.5, 2, (d, f)) for _ in range(2))
        weights = {"w_gate": gate, "w_up": up, "w_down": down}
    else:
        w1 = signs[:, None] * rng.integers(300, 400, (d, f))
        weights = {"w1": w1, "b1": np.zeros(f), "w2": down, "b2": np.ones(o)}
        if trial.draw(choice(False, True)):
            weights |= _brought_back(np.abs(x), np.abs(w1), np.sign(down))
    arguments = {name: trial.tensor(value) for name, value in {"x": x, **weights}.items()}
    activation = {} if operation is SWIGLU else trial.option("activation", None, "relu", "gelu")
    _judged(trial, operation, {**arguments, **activation})


def _brought_back(x: np.ndarray, w1: np.ndarray, signs: np.ndarray) -> dict[str, Any]:
    """Last weights for products of 7e4 to 1e5, of these signs, and biases of the other sign that leave a part of it."""
    hidden = (x @ w1).sum(-1).max()
    return {"w2": 9e4 / hidden * signs, "b2": -5e4 * signs[0]}


def _limits(operation: Operation, trial: Trial) -> None:
    """Hidden values far from zero on either side, before the activation."""
    size = trial.draw(choice(100.0, 40.0, *(() if trial.dtype_name == "fp16" else (1000.0,))))
    n, f, o = trial.draw(sizes(1, 4)), trial.draw(sizes(1, 4)), trial.draw(sizes(1, 3))
    rng = trial.draw(values()).rng
    x, down = rng.uniform(1.0, 2.0, (n, 1)), rng.uniform(-1, 1, (f, o))
    large = size * rng.choice([-1.0, 1.0], (1, f))
    if operation is SWIGLU:
        weights = {"w_gate": large, "w_up": rng.uniform(0.5, 1.0, (1, f)), "w_down": down}
    else:
        weights = {"w1": large, "b1": rng.standard_normal(f), "w2": down, "b2": rng.standard_normal(o)}
    a: dict[str, Any] = {name: trial.tensor(value) for name, value in {"x": x, **weights}.items()}
    if operation is not SWIGLU:
        a |= trial.option("activation", "sigmoid", None, "tanh", "sigmoid", "gelu")
    cotangent = draw_cotangent(trial, (n, o))
    outcome = trial.call(a, wrt=("x", *weights), cotangent=cotangent)
    references = operation.exact(trial, a, sharp=False)
    agrees(trial, operation, a, outcome, references)
    gradients = operation.exact_gradients(trial, a, cotangent, sharp=False)
    gradients_agree(trial, outcome, gradients)
    stays_finite(trial, outcome.result, references[0], "the result far from zero")
    for name in outcome.gradients:
        stays_finite(trial, outcome.gradient(name), gradients[name], f"the gradient of {name} far from zero")


def sums(a: torch.Tensor, b: torch.Tensor, both: torch.Tensor) -> torch.Tensor:
    """a + b − both in float64."""
    return a.double() + b.double() - both.double()


def _value_linear(trial: Trial) -> None:
    d, f, o = trial.draw(sizes(1, 4)), trial.draw(sizes(1, 5)), trial.draw(sizes(1, 4))
    a: dict[str, Any] = gated(trial, (trial.draw(sizes(1, 3)),), d, f, o)
    rng = trial.draw(values()).rng
    ups = [trial.tensor(rng.integers(-6, 7, (d, f)) / 4) for _ in range(2)]
    found = [_judged(trial, SWIGLU, {**a, "w_up": up}) for up in (*ups, ups[0] + ups[1])]
    bound = sum(reference.bound for _, reference in found) * (1 + 2.0**-50)
    size = max(float(np.abs(reference.exact).max()) for _, reference in found)
    law = Reference(np.zeros(np.shape(bound)), np.asarray(bound + 2.0**-50 * size), scale=size, constant=True)
    trial.judge(trial.observe(sums, *(y for y, _ in found)), law, "results for two values less that for their sum")


def _dropout(trial: Trial) -> None:
    """One call shows the mask through a diagonal output layer; another, of equal shapes and state, is judged by it."""
    p = trial.draw(choice(0.4, 1.0, 0.25, 0.7))
    lead, d, f = trial.draw(choice((50,), (2, 25), (3, 2, 9))), 3, trial.draw(choice(8, 12))
    a: dict[str, Any] = network(trial, lead, d, f, f)
    a |= {"b1": a["b1"] + 8.0, "x": a["x"] / 8.0}
    options = {"dropout_p": p, "training": True, "generator": Seed(trial.draw(seeds()))}
    options |= trial.option("activation", None, "sigmoid", "tanh")
    diagonal = {"w2": torch.eye(f, dtype=trial.dtype), "b2": torch.zeros_like(a["b2"])}
    shown = trial.call({**a, **diagonal, **options}).result
    keep = array(shown.value) != 0
    trial.require(p < 1 or not keep.any(), "p = 1 keeps a hidden value", f"not bool(({shown.expression} != 0).any())")
    if p < 1:
        trial.judge(trial.observe(kept_share, shown), share(keep.size, 1.0 - p), f"hidden values kept with p = {p}")
        for axis, size in enumerate(keep.shape):
            alike = trial.observe(agreement, shown, constant(torch.tensor([axis, 1])))
            law = share(size // 2 * (keep.size // size), p * p + (1 - p) * (1 - p))
            trial.judge(alike, law, f"share of neighbours along axis {axis} that fare alike with p = {p}")
    known = {**a, **options, "keep": keep}
    cotangent = draw_cotangent(trial, (*lead, f))
    outcome = trial.call({**a, **options}, wrt=("x", *WEIGHTS), cotangent=cotangent)
    agrees(trial, FEED_FORWARD, known, outcome, FEED_FORWARD.exact(trial, known, sharp=False))
    gradients_agree(trial, outcome, FEED_FORWARD.exact_gradients(trial, known, cotangent, sharp=False))


def _on(operation: Operation, body: Any) -> Any:
    return lambda trial: body(operation, trial)


_ALGEBRA = ("fp64", "fp32")

CHECKS = (
    *(check(f"{o.name}.hidden_order", _on(o, _hidden_order), dtypes=_ALGEBRA) for o in (MLP, FEED_FORWARD, SWIGLU)),
    *(check(f"{o.name}.range", _on(o, _range), dtypes=("fp16",)) for o in (MLP, FEED_FORWARD, SWIGLU)),
    *(check(f"{o.name}.limits", _on(o, _limits)) for o in (MLP, FEED_FORWARD, SWIGLU)),
    check("mlp.homogeneous", _homogeneous, dtypes=_ALGEBRA),
    check("mlp.balance", _balance, dtypes=_ALGEBRA),
    check("swiglu.value_linear", _value_linear, dtypes=_ALGEBRA),
    check("feed_forward.dropout", _dropout, dtypes=("fp64", "fp32", "bf16"), effort=0.5),
)

"""Laws of the mixture of experts."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from veriformer.spec.layers.mixture_of_experts import route
from veriformer.verify.judging.arguments import array
from veriformer.verify.judging.arithmetic import over_float64
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import agrees
from veriformer.verify.laws.equality import equal
from veriformer.verify.laws.family import check, settles_ties
from veriformer.verify.laws.gradients import judge_with_gradients
from veriformer.verify.operations.layers.feed_forward import FEED_FORWARD
from veriformer.verify.operations.layers.mixture_of_experts.record import (
    MIXTURE_OF_EXPERTS,
    experts,
    gated,
    halves,
    mixture,
    separated,
)
from veriformer.verify.operations.layers.swiglu import SWIGLU
from veriformer.verify.scripts.script import literal
from veriformer.verify.strategies import choice, sizes, values
from veriformer.verify.targets.target import Target


def _given(a: Arguments) -> list[str]:
    """Return names of the weights that the experts have."""
    return [name for name in ("w1", "b1", "w2", "b2") if a[name] is not None]


def _judged(trial: Trial, arguments: Arguments) -> tuple[Any, Any]:
    reference = MIXTURE_OF_EXPERTS.exact(trial, arguments, use_exact_oracle=False)[0]
    outcome = trial.call(arguments)
    agrees(trial, MIXTURE_OF_EXPERTS, arguments, outcome, [reference])
    return outcome.result, reference


def _identical(trial: Trial) -> None:
    d, h, o = trial.draw(sizes(1, 4)), trial.draw(sizes(1, 3)), trial.draw(sizes(1, 3))
    number = trial.draw(sizes(2, 4))
    one = experts(trial, 1, d, h, o)
    x, router = halves(trial, trial.draw(sizes(1, 4)), d), halves(trial, d, number)
    copied = {name: None if w is None else w.expand(number, *w.shape[1:]).contiguous() for name, w in one.items()}
    arguments = {"x": x, "router": router, **copied, "top_k": trial.draw(choice(1, 2, number))}
    if trial.claims.deviates("mixture_of_experts.gates"):  # the gates of some do not sum to 1
        arguments["top_k"] = number
    result, reference = _judged(trial, arguments)
    answer = _alone(trial, x, one)
    answer.bound[...] += reference.bound
    trial.assert_within_bound(result, answer, "the answer of experts that are all the same")


def _alone(trial: Trial, x: torch.Tensor, one: dict[str, Any]) -> Any:
    """Return the output of one expert alone."""
    if not gated(trial):
        given = {"x": x, **{name: w[0] for name, w in one.items()}}
        return FEED_FORWARD.exact(trial, given, use_exact_oracle=False)[0]
    gate, up = one["w1"][0].chunk(2, -1)
    given = {"x": x, "w_gate": gate.contiguous(), "w_up": up.contiguous(), "w_down": one["w2"][0]}
    return SWIGLU.exact(trial, given, use_exact_oracle=False)[0]


def _permutation(trial: Trial) -> None:
    number = trial.draw(choice(4, 3, 5))
    a: dict[str, Any] = {**mixture(trial, (2,), number), "top_k": trial.draw(choice(2, 1, number))}
    a["x"], a["router"] = halves(trial, 2, 4), halves(trial, 4, number)
    a |= experts(trial, number, 4, 2, 3)
    trial.assume(separated(a))
    order = torch.as_tensor(trial.draw(values()).rng.permutation(number))
    moved = {"router": a["router"][:, order], **{name: a[name][order] for name in _given(a)}}
    first, of_first = _judged(trial, a)
    second, of_second = _judged(trial, {**a, **moved})
    equal(trial, first, second, of_first, of_second, "experts in another order")


def _ties(trial: Trial) -> None:
    """Check equal scores of all or several experts, also of so many that an unstable sort reorders them."""
    number = trial.draw(choice(3, 2, 5, 20, 40))
    a: dict[str, Any] = mixture(trial, (trial.draw(sizes(1, 3)),), number)
    rng = trial.draw(values()).rng
    columns = trial.draw(choice(1, 2))
    a["router"] = a["router"][:, torch.as_tensor(rng.integers(0, columns, number))]
    judge_with_gradients(trial, MIXTURE_OF_EXPERTS, {**a, "top_k": trial.draw(choice(1, 2, number - 1, number))})


def _unchosen(trial: Trial) -> None:
    number = trial.draw(choice(4, 5))
    a: dict[str, Any] = {**mixture(trial, (2,), number), "top_k": trial.draw(choice(1, 2))}
    xp = over_float64(trial.dtype_name)
    chosen, _ = route(xp, xp.asarray(array(a["x"])), xp.asarray(array(a["router"])), a["top_k"])
    idle = torch.as_tensor(~chosen.any(0))
    trial.assume(bool(idle.any()))
    loud = {name: torch.where(idle[(..., *[None] * (a[name].ndim - 1))], a[name] + 3.0, a[name]) for name in _given(a)}
    reference = MIXTURE_OF_EXPERTS.exact(trial, a, use_exact_oracle=False)
    cotangent = trial.tensor(trial.draw(values(("gaussian",))).array(*reference[0].exact.shape))
    first = trial.call(a, wrt=("x", "router", *_given(a)), cotangent=cotangent)
    agrees(trial, MIXTURE_OF_EXPERTS, a, first, reference)
    equal(trial, first.result, trial.call({**a, **loud}).result, reference[0], reference[0], "other unchosen experts")
    for name in _given(a):
        g = first.gradient(name)
        quiet = not bool(g.value[idle].any())
        said = f"not bool({g.expression}[{literal(idle)}].any())"
        trial.assert_true(quiet, f"an expert that no token chose has a gradient of {name}", said)


def _choice(trial: Trial) -> None:
    number = trial.draw(choice(3, 4, 6))
    d, lead = trial.draw(sizes(2, 5)), trial.draw(sizes(1, 3))
    kind = trial.draw(values(("gaussian", "one-signed", "offset", "peaked")))
    x, router = kind.array(lead, d), kind.rng.standard_normal((d, number)) / 2
    a: dict[str, Any] = {"x": trial.tensor(x), "router": trial.tensor(router), **experts(trial, number, d, 2, 3)}
    a["top_k"] = trial.draw(choice(2, 1, number - 1))
    xp = over_float64(trial.dtype_name)
    _, spared = route(xp, xp.asarray(array(a["x"])), xp.asarray(array(a["router"])), a["top_k"])
    trial.assume(bool(np.all(spared)))
    judge_with_gradients(trial, MIXTURE_OF_EXPERTS, a)


def _range(trial: Trial) -> None:
    """Check positive hidden values of 1e5 and more, and a result in fp16's range; a third expert is not chosen."""
    rng = trial.draw(values()).rng
    d, h, o = trial.draw(sizes(1, 3)), trial.draw(sizes(1, 3)), trial.draw(sizes(1, 3))
    signs = rng.choice([-1.0, 1.0], (d, 1))
    router = np.concatenate((rng.integers(-2, 3, (d, 2)) / 256, -signs / 16), 1)
    down = rng.choice([-1.0, 1.0], o) * rng.uniform(0.5, 1.0, (3, h, o)) / 256
    a = {
        "x": signs.T * rng.integers(200, 256, (2, d)),
        "router": router,
        "w1": signs * rng.integers(300, 400, (3, d, h)),
    }
    a |= {"b1": np.zeros((3, h)), "w2": down, "b2": np.ones((3, o))}
    _judged(trial, {name: trial.tensor(value) for name, value in a.items()} | {"top_k": 2})


def _of_two_layers(target: Target, operation: str, dtype: str) -> str | None:
    """Return why a law of large hidden values does not apply: those of gated experts are products."""
    gate = target.claims.deviates("mixture_of_experts.experts")
    return "its experts are gated, as claimed" if gate else None


_ALGEBRA = ("fp64", "fp32")


_LAWS: dict[str, Any] = {
    "identical_experts": _identical,
    "permutation": _permutation,
    "unchosen": _unchosen,
    "choice": _choice,
}


CHECKS = (
    *(check(f"mixture_of_experts.{name}", body, dtypes=_ALGEBRA) for name, body in _LAWS.items()),
    check("mixture_of_experts.range", _range, dtypes=("fp16",), applies=_of_two_layers),
    check("mixture_of_experts.ties", _ties, dtypes=("fp64", "fp32", "bf16"), applies=settles_ties),
)

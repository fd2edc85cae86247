"""Laws of dropout in training: scale, rate, independence, and where the mask comes from."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from veriformer.verify.checks.agreement import agrees, gradients_agree
from veriformer.verify.checks.attention_dropout import agreement, kept_share
from veriformer.verify.checks.chance import share
from veriformer.verify.checks.equation import draw_cotangent
from veriformer.verify.checks.family import check
from veriformer.verify.checks.laws import constant
from veriformer.verify.operations import DROPOUT
from veriformer.verify.script import Seed, literal
from veriformer.verify.strategies import choice, seeds, values
from veriformer.verify.trial import Arguments, Observation, Trial, array

_CALLS = 200


def _training(trial: Trial, shape: tuple[int, ...], p: float) -> dict[str, Any]:
    """A call in training, on entries of which none is zero."""
    drawn = trial.draw(values(("one-signed", "gaussian", "offset"))).array(*shape)
    x = trial.tensor(np.where(np.abs(drawn) < 1e-2, 1.0, drawn))
    return {"x": x, "p": p, **trial.option("training", None, True), "generator": Seed(trial.draw(seeds()))}


def _scale(trial: Trial) -> None:
    """Entries are dropped or grown, in result and gradient alike; some of so many are kept, and some are not."""
    p = trial.draw(choice(0.25, 0.4, 0.5, 0.6))
    arguments = _training(trial, trial.draw(choice((7, 13), (3, 5, 7), (91,))), p)
    cotangent = draw_cotangent(trial, tuple(arguments["x"].shape))
    outcome = trial.call(arguments, wrt=("x",), cotangent=cotangent)
    keep, e = array(outcome.result.value) != 0, outcome.name
    trial.require(bool(keep.any()), "every entry is dropped", f"bool(({e} != 0).any())")
    trial.require(not keep.all(), "no entry is dropped", f"not bool(({e} != 0).all())")
    known = {**arguments, "keep": keep}
    agrees(trial, DROPOUT, known, outcome, DROPOUT.exact(trial, known, sharp=False))
    gradients_agree(trial, outcome, DROPOUT.exact_gradients(trial, known, cotangent, sharp=False))


def _large(trial: Trial, p: float) -> Arguments:
    return _training(trial, trial.draw(choice((64, 128), (4, 32, 64), (8192,), (2, 8, 16, 32))), p)


def _rate(trial: Trial) -> None:
    for p in (trial.draw(choice(0.25, 0.1, 0.7, 0.9)), 0.0039):  # less than 1/256: no byte decides
        result = trial.call(_large(trial, p)).result
        trial.judge(trial.observe(kept_share, result), share(result.value.numel(), 1.0 - p), f"share kept with p = {p}")
    many = trial.tensor(np.ones(1)).expand(2**18)
    for p in (0.0002, 0.9998):  # on its wrong side is too often what is drawn in steps of 1/256 or 1/2048
        result = trial.call({"x": many, "p": p, "generator": Seed(trial.draw(seeds()))}).result
        trial.judge(trial.observe(kept_share, result), share(result.value.numel(), 1.0 - p), f"share kept with p = {p}")


def _independence(trial: Trial) -> None:
    """Neighbours along any axis fare alike as often as chance has it."""
    p = trial.draw(choice(0.3, 0.5, 0.7))
    result = trial.call(_large(trial, p)).result
    shape = tuple(result.value.shape)
    for axis in range(len(shape)):
        for lag in (lag for lag in (1, 2, 4, 16, 32, 64) if 2 * lag <= shape[axis]):
            pairs = shape[axis] // (2 * lag) * lag * (result.value.numel() // shape[axis])
            observed = trial.observe(agreement, result, constant(torch.tensor([axis, lag])))
            what = f"share of entries {lag} apart along axis {axis} that fare alike"
            trial.judge(observed, share(pairs, p * p + (1 - p) * (1 - p)), what)
    _pairs(trial)


def _pairs(trial: Trial) -> None:
    """Two entries alone: of so few, too, both may be kept or dropped."""
    call, seed = trial.target.operation("dropout"), trial.draw(seeds())
    assert call is not None
    x, generator = trial.tensor(np.ones(2)), torch.Generator().manual_seed(seed)
    found = torch.stack([call(x, 0.5, generator=generator) for _ in range(_CALLS)])
    made = f"[target.dropout({literal(x)}, 0.5, generator=g) for g in [torch.Generator().manual_seed({seed})]"
    result = Observation(found, f"torch.stack({made} for _ in range({_CALLS})])")
    alike = trial.observe(agreement, result, constant(torch.tensor([1, 1])))
    trial.judge(alike, share(_CALLS, 0.5), "share of calls on two entries that fare alike")


def _generator(trial: Trial) -> None:
    p = trial.draw(choice(0.4, 0.25, 0.6))
    arguments = _training(trial, trial.draw(choice((16, 16), (3, 8, 9))), p)
    one, two = trial.call(arguments).result, trial.call(arguments).result
    grown = trial.call(arguments, wrt=("x",), cotangent=torch.ones_like(one.value)).result
    other = trial.call({**arguments, "generator": Seed(arguments["generator"].value + 1)}).result
    trial.require(*_same(one, two, True), f"torch.equal({one.expression}, {two.expression})")
    trial.require(*_same(one, grown, True), f"torch.equal({one.expression}, {grown.expression})")
    trial.require(*_same(one, other, False), f"not torch.equal({one.expression}, {other.expression})")
    free = {key: value for key, value in arguments.items() if key != "generator"}
    _states(trial, free, arguments["generator"].value)


def _same(one: Any, two: Any, wanted: bool) -> tuple[bool, str]:
    same = torch.equal(one.value.detach(), two.value.detach())
    return same is wanted, "equal generator states drop others" if wanted else "another state drops the same"


def _states(trial: Trial, free: Arguments, seed: int) -> None:
    """A generator moves on from call to call; so does PyTorch's own, which its seed sets back."""
    call = trial.target.operation("dropout")
    assert call is not None
    options = {key: value for key, value in free.items() if key not in ("x", "p")}
    generator = torch.Generator().manual_seed(seed)
    first, second = (call(free["x"], free["p"], generator=generator, **options) for _ in range(2))
    made = f"target.dropout({literal(free['x'])}, {free['p']}"
    twice = f"[{made}, generator=g) for g in [torch.Generator().manual_seed({seed})] * 2]"
    trial.require(not torch.equal(first, second), "a generator does not move on", f"not torch.equal(*{twice})")
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        first, second = (call(free["x"], free["p"], **options) for _ in range(2))
        torch.manual_seed(seed)
        again = call(free["x"], free["p"], **options)
    moves = f"not torch.equal({made}), {made}))"
    trial.require(not torch.equal(first, second), "two calls without a generator drop the same", moves)
    seeded = f"torch.equal(*[(torch.manual_seed({seed}), {made}))[1] for _ in range(2)])"
    trial.require(torch.equal(first, again), "PyTorch's own generator does not decide", seeded)


CHECKS = (
    check("dropout.scale", _scale),
    check("dropout.rate", _rate, effort=0.5, dtypes=("fp32", "bf16")),
    check("dropout.independence", _independence, effort=0.5, dtypes=("fp32", "bf16")),
    check("dropout.generator", _generator, effort=0.5, dtypes=("fp64", "fp32", "bf16")),
)

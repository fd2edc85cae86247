"""Dropout: its record and its laws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from veriformer.spec.layers.dropout import dropout, dropout_vjp
from veriformer.verify.judging.arguments import array
from veriformer.verify.judging.op_info import InvalidCall
from veriformer.verify.judging.outcome import Observation
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import agrees, gradients_agree
from veriformer.verify.laws.chance import agreement, kept_share, share, under_its_rate
from veriformer.verify.laws.equality import constant
from veriformer.verify.laws.family import check
from veriformer.verify.laws.gradients import draw_cotangent
from veriformer.verify.operations.derived import operation
from veriformer.verify.scripts.script import Seed, literal
from veriformer.verify.strategies import choice, extent, seeds, shapes, sizes, values


def _keep(a: Mapping[str, Any], shape: tuple[int, ...]) -> Any:
    """Return the mask: known to the check, or without doubt."""
    if "keep" in a:
        return a["keep"]
    return np.zeros(shape, dtype=bool) if a.get("training", True) and a["p"] == 1 else None


def _dropout(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [dropout(xp, a["x"], a["p"], keep=_keep(a, a["x"].shape))]


def _by_factor(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """Return x · (1 / (1 − p)) on what is kept."""
    keep = _keep(a, a["x"].shape)
    return [
        a["x"] if keep is None else xp.where(keep, a["x"], 0) * (1 if a["p"] == 1 else 1 / (1 - xp.asarray(a["p"])))
    ]


def _dropout_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    return {"x": dropout_vjp(xp, a["x"], a["p"], g, keep=_keep(a, a["x"].shape))}


def _by_factor_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    return {"x": _by_factor(xp, {**a, "x": g})[0]}


def draw_dropout(trial: Trial) -> Arguments:
    """Draw deterministic calls: not in training, or with p = 0 or 1."""
    large = trial.rows()
    x = trial.tensor(trial.draw(values()).array(*(trial.draw(shapes(1, 4, 4)) if large is None else large)))
    cases = ((False, 0.4), (None, 0.0), (True, 0.0), (False, 1.0), (None, 1.0), (True, 1.0), (False, 0.9))
    training, p = trial.draw(choice(*cases))
    given = {"generator": Seed(trial.draw(seeds()))} if trial.draw(choice(False, True)) else {}
    return {"x": x, "p": p, **({} if training is None else {"training": training}), **given}


def _ordinary(trial: Trial) -> Arguments:
    x = trial.draw(values(("gaussian",))).array(trial.draw(sizes(1, 3)), trial.draw(sizes(2)))
    return {"x": trial.tensor(x), "p": 0.4, **trial.option("training", False)}


_NO_RATES = (float("nan"), None)

DROPOUT = operation(
    "dropout",
    sample=draw_dropout,
    sample_basic=_ordinary,
    formulas=(_dropout, _by_factor),
    vjps=(_dropout_vjp, _by_factor_vjp),
    refuses=lambda trial, good: [InvalidCall(f"a probability of {p}", {**good, "p": p}, ("p",)) for p in _NO_RATES],
    structural_dtypes=("fp32", "bf16"),
)


_CALLS = 200


def _training(trial: Trial, shape: tuple[int, ...], p: float) -> dict[str, Any]:
    """Draw a call in training, on entries of which none is zero."""
    drawn = trial.draw(values(("one-signed", "gaussian", "offset"))).array(*shape)
    x = trial.tensor(np.where(np.abs(drawn) < 1e-2, 1.0, drawn))
    return {"x": x, "p": p, **trial.option("training", None, True), "generator": Seed(trial.draw(seeds()))}


def _scale(trial: Trial) -> None:
    """Entries are dropped, or scaled by 1 / (1 − p), in result and gradient alike; some are kept, some dropped."""
    p = trial.draw(choice(0.25, 0.4, 0.5, 0.6))
    arguments = _training(trial, trial.rows((64, 2**14), (1, 300)) or trial.draw(choice((7, 13), (3, 5, 7), (91,))), p)
    cotangent = draw_cotangent(trial, tuple(arguments["x"].shape))
    outcome = trial.call(arguments, wrt=("x",), cotangent=cotangent)
    keep, e = array(outcome.result.value) != 0, outcome.name
    trial.assert_true(bool(keep.any()), "every entry is dropped", f"bool(({e} != 0).any())")
    trial.assert_true(not keep.all(), "no entry is dropped", f"not bool(({e} != 0).all())")

    def judge(rate: float) -> None:
        known = {**arguments, "keep": keep, "p": rate}
        agrees(trial, DROPOUT, known, outcome, DROPOUT.exact(trial, known, use_exact_oracle=False))
        gradients_agree(trial, outcome, DROPOUT.exact_gradients(trial, known, cotangent, use_exact_oracle=False))

    under_its_rate(trial, p, judge)


def _large(trial: Trial, p: float) -> Arguments:
    trial.only_large()
    shape = trial.rows((64, 2**16), (1, 1000))
    assert shape is not None
    return _training(trial, shape, p)


def _rate(trial: Trial) -> None:
    """Check any rate, and rates near 0 and 1, which coarse random numbers round to the wrong side."""
    _judge_rate(trial, _large(trial, trial.draw(choice(0.25, 0.1, 0.7, 0.9))))
    many = trial.tensor(np.ones(1)).expand(2**18)
    for rate in (trial.draw(extent(1, 256)), 2**16 - trial.draw(extent(1, 256))):
        _judge_rate(trial, {"x": many, "p": rate / 2**16, "generator": Seed(trial.draw(seeds()))})


def _judge_rate(trial: Trial, arguments: Arguments) -> None:
    p, outcome = arguments["p"], trial.call(arguments)
    kept = trial.observe(kept_share, outcome.result)

    def judge(rate: float) -> None:
        trial.assert_within_bound(kept, share(outcome.result.value.numel(), 1.0 - rate), f"share kept with p = {rate}")
        if rate != p:  # then the scale must be that of the other rate, too
            known = {**arguments, "keep": array(outcome.result.value) != 0, "p": rate}
            agrees(trial, DROPOUT, known, outcome, DROPOUT.exact(trial, known, use_exact_oracle=False))

    under_its_rate(trial, p, judge)


def _independence(trial: Trial) -> None:
    """Neighbours along any axis agree as often as by chance."""
    p = trial.draw(choice(0.3, 0.5, 0.7))
    result = trial.call(_large(trial, p)).result
    shape = tuple(result.value.shape)
    for axis in range(len(shape)):
        for lag in (lag for lag in (1, 2, 4, 16, 32, 64) if 2 * lag <= shape[axis]):
            pairs = shape[axis] // (2 * lag) * lag * (result.value.numel() // shape[axis])
            observed = trial.observe(agreement, result, constant(torch.tensor([axis, lag])))
            what = f"share of entries {lag} apart along axis {axis} that fare alike"
            trial.assert_within_bound(observed, share(pairs, p * p + (1 - p) * (1 - p)), what)
    _pairs(trial)


def _pairs(trial: Trial) -> None:
    """Check two entries alone: of so few, too, both may be kept or dropped."""
    call, seed = trial.target.operation("dropout"), trial.draw(seeds())
    assert call is not None
    x, generator = trial.tensor(np.ones(2)), torch.Generator().manual_seed(seed)
    found = torch.stack([call(x, 0.5, generator=generator) for _ in range(_CALLS)])
    made = f"[target.dropout({literal(x)}, 0.5, generator=g) for g in [torch.Generator().manual_seed({seed})]"
    result = Observation(found, f"torch.stack({made} for _ in range({_CALLS})])")
    alike = trial.observe(agreement, result, constant(torch.tensor([1, 1])))
    trial.assert_within_bound(alike, share(_CALLS, 0.5), "share of calls on two entries that fare alike")


def _generator(trial: Trial) -> None:
    p = trial.draw(choice(0.4, 0.25, 0.6))
    arguments = _training(trial, trial.draw(choice((16, 16), (3, 8, 9))), p)
    one, two = trial.call(arguments).result, trial.call(arguments).result
    grown = trial.call(arguments, wrt=("x",), cotangent=torch.ones_like(one.value)).result
    other = trial.call({**arguments, "generator": Seed(arguments["generator"].value + 1)}).result
    trial.assert_true(*_same(one, two, True), f"torch.equal({one.expression}, {two.expression})")
    trial.assert_true(*_same(one, grown, True), f"torch.equal({one.expression}, {grown.expression})")
    trial.assert_true(*_same(one, other, False), f"not torch.equal({one.expression}, {other.expression})")
    free = {key: value for key, value in arguments.items() if key != "generator"}
    _states(trial, free, arguments["generator"].value)


def _same(one: Any, two: Any, wanted: bool) -> tuple[bool, str]:
    same = torch.equal(one.value.detach(), two.value.detach())
    return same is wanted, "equal generator states drop others" if wanted else "another state drops the same"


def _states(trial: Trial, free: Arguments, seed: int) -> None:
    """A generator advances from call to call; so does PyTorch's global one, which its seed resets."""
    call = trial.target.operation("dropout")
    assert call is not None
    options = {key: value for key, value in free.items() if key not in ("x", "p")}
    generator = torch.Generator().manual_seed(seed)
    first, second = (call(free["x"], free["p"], generator=generator, **options) for _ in range(2))
    made = f"target.dropout({literal(free['x'])}, {free['p']}"
    twice = f"[{made}, generator=g) for g in [torch.Generator().manual_seed({seed})] * 2]"
    trial.assert_true(not torch.equal(first, second), "a generator does not move on", f"not torch.equal(*{twice})")
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        first, second = (call(free["x"], free["p"], **options) for _ in range(2))
        torch.manual_seed(seed)
        again = call(free["x"], free["p"], **options)
    moves = f"not torch.equal({made}), {made}))"
    trial.assert_true(not torch.equal(first, second), "two calls without a generator drop the same", moves)
    seeded = f"torch.equal(*[(torch.manual_seed({seed}), {made}))[1] for _ in range(2)])"
    trial.assert_true(torch.equal(first, again), "PyTorch's own generator does not decide", seeded)


CHECKS = (
    check("dropout.scale", _scale),
    check("dropout.rate", _rate, effort=0.5, dtypes=("fp32", "bf16")),
    check("dropout.independence", _independence, effort=0.5, dtypes=("fp32", "bf16")),
    check("dropout.generator", _generator, effort=0.5, dtypes=("fp64", "fp32", "bf16")),
)

"""Laws of the Transformer block."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.spec.layers.layer_norm import layer_norm, layer_norm_vjp
from veriformer.verify.judging.arithmetic import over_float64
from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.outcome import Observation
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import agrees
from veriformer.verify.laws.equality import constant, difference, equal, finite
from veriformer.verify.laws.family import check
from veriformer.verify.laws.gradients import draw_cotangent
from veriformer.verify.laws.pairs import differ_only_where, exact, moves_along, only
from veriformer.verify.laws.untouched import assert_pure
from veriformer.verify.operations.layers.transformer_block.record import SMOOTH, draw_block
from veriformer.verify.operations.layers.transformer_block.record import TRANSFORMER_BLOCK as BLOCK
from veriformer.verify.strategies import choice, sizes, values


def _silent(a: Arguments, *names: str) -> dict[str, Any]:
    """Return the call with these parameters set to zero."""
    return {**a, **{name: torch.zeros_like(a[name]) for name in names}}


def _identity_path(trial: Trial) -> None:
    """With zero output weights in both branches, only the residual connections and the norms upon them remain."""
    a = _silent(draw_block(trial), "w_o", "w2", "b2")
    xp = over_float64(trial.dtype_name)
    lifted = trial.lift(a, xp)
    eps = a.get("eps", trial.constants.get("eps", 1e-5))
    g = draw_cotangent(trial, tuple(a["x"].shape))
    h, dh = lifted["x"], xp.asarray(trial.lift({"g": g}, xp)["g"])
    if a.get("norm") == "post":
        places = [(lifted[f"{place}_weight"], lifted[f"{place}_bias"]) for place in ("norm1", "norm2")]
        inner = layer_norm(xp, h, *places[0], eps=eps)
        dh = layer_norm_vjp(xp, inner, *places[1], dh, eps=eps)[0]
        dh = layer_norm_vjp(xp, h, *places[0], dh, eps=eps)[0]
        h = layer_norm(xp, inner, *places[1], eps=eps)
    outcome = trial.call(a, wrt=("x",), cotangent=g)
    trial.assert_within_bound(outcome.result, Reference(*xp.judgeable(h + 0 * h)), "the stream past silent branches")
    trial.assert_within_bound(outcome.gradient("x"), Reference(*xp.judgeable(dh + 0 * dh)), "its gradient")


def _stream_shift(trial: Trial) -> None:
    """A pre-norm block maps x + c to y + c; a post-norm block without attention is invariant under c."""
    a = draw_block(trial, kinds=("gaussian", "one-signed"), activations=SMOOTH)
    a = _silent(a, "w_o") if a.get("norm") == "post" else a
    x = trial.tensor(np.round(a["x"].double().numpy() * 16) / 16)
    c = trial.tensor(0.25 * trial.draw(values()).rng.integers(-6, 7, (*x.shape[:2], 1)))
    one, two = {**a, "x": x}, {**a, "x": x + c}
    trial.assume(bool(((x + c).double() == x.double() + c.double()).all()))
    of_one, of_two = exact(trial, BLOCK, one), exact(trial, BLOCK, two)
    r, s = trial.call(one).result, trial.call(two).result
    trial.assert_within_bound(r, of_one, "result")
    if a.get("norm") == "post":
        equal(trial, s, r, of_two, of_one, "a post-norm block, and the same on a shifted stream")
        return
    moved = trial.observe(difference, s, constant(c))
    bound = of_two.bound + 2.0**-50 * np.abs(of_two.exact)
    equal(trial, r, moved, of_one, Reference(of_one.exact, bound), "a pre-norm block, and the same on a shifted stream")


def _one_branch(trial: Trial) -> None:
    """Without W_O tokens do not interact: each can be computed alone."""
    a = _silent(draw_block(trial, least=2), "w_o")
    reference = exact(trial, BLOCK, a)
    i = trial.draw(sizes(0, a["x"].shape[1] - 1))
    whole, alone = trial.call(a).result, trial.call({**a, "x": a["x"][:, i : i + 1]}).result
    trial.assert_within_bound(whole, reference, "result")
    row = Reference(reference.exact[:, i : i + 1], reference.bound[:, i : i + 1])
    part = Observation(whole.value[:, i : i + 1], f"{whole.expression}[:, {i}:{i + 1}]")
    equal(trial, part, alone, row, row, "a token among others that attention does not write of, and alone")


def _tokens_permuted(trial: Trial) -> None:
    a = draw_block(trial, least=2)
    order = trial.draw(values()).rng.permutation(a["x"].shape[1])
    moves_along(trial, BLOCK, a, {**a, "x": a["x"][:, order]}, order, "tokens in another order")


def _causality(trial: Trial) -> None:
    one = draw_block(trial, kinds=("gaussian", "one-signed"), least=2, activations=SMOOTH) | {"is_causal": True}
    b, n, d = one["x"].shape
    t = trial.draw(sizes(0, n - 1))
    x = one["x"].clone()
    x[:, t:] = trial.tensor(trial.draw(values(("gaussian",))).array(b, n - t, d))
    blind = np.broadcast_to((np.arange(n) < t)[:, None], (b, n, d))
    differ_only_where(trial, BLOCK, one, {**one, "x": x}, blind, "a result, after later tokens have changed")


def _padding(trial: Trial) -> None:
    """Check texts of different lengths, padded on one side, with anything in the padding, and scores of any size."""
    a = draw_block(trial, kinds=("gaussian", "one-signed"), least=2, activations=SMOOTH)
    scale = trial.draw(choice(2.0**7, 1.0))
    a |= {name: scale * a[name] for name in ("w_q", "w_k")}
    a |= {"is_causal": True} if trial.draw(st.booleans()) else {}
    b, n, d = a["x"].shape
    rng = trial.draw(values()).rng
    lengths = rng.integers(1, n + 1, (b, 1))
    lengths[0] = rng.integers(1, n)
    j = np.arange(n)
    real = j < lengths if trial.draw(st.booleans()) else j >= n - lengths
    loud = trial.tensor(trial.draw(choice(1.0, 50.0)) * rng.standard_normal((b, n, d)))
    x = torch.where(torch.as_tensor(real)[..., None], a["x"], loud)
    mask = torch.as_tensor(real).to(trial.draw(choice(torch.bool, torch.int64)))
    padded = {**a, "x": x, "attention_mask": mask}
    judged = np.broadcast_to(real[..., None], (b, n, d))
    outcome = trial.call(padded)
    trial.assert_within_bound(outcome.result, only(exact(trial, BLOCK, padded), judged), "result at real tokens")
    finite(trial, outcome.result, "the result with padding")
    short = {**a, "x": a["x"][:1, torch.as_tensor(real[0])]}
    of_short = exact(trial, BLOCK, short)
    rows = Observation(
        outcome.result.value[:1, torch.as_tensor(real[0])], f"{outcome.name}[:1, torch.tensor({real[0].tolist()})]"
    )
    equal(trial, trial.call(short).result, rows, of_short, of_short, "a text without padding, and with it")
    assert_pure(trial, padded)
    _other_padding(trial, padded, real)


def _other_padding(trial: Trial, padded: Arguments, real: np.ndarray) -> None:
    """Raise Violation if a padded token's result depends on the rest of the padding."""
    rng = trial.draw(values()).rng
    place = int(rng.choice(np.flatnonzero(~real[0])))
    others = np.broadcast_to(~real[..., None], padded["x"].shape).copy()
    others[0, place] = False
    x = torch.where(torch.as_tensor(others), trial.tensor(rng.standard_normal(others.shape)), padded["x"])
    here = np.zeros(others.shape, dtype=bool)
    here[0, place] = True
    what = "a padded token's result, after the rest of the padding has changed"
    settled = np.broadcast_to(real[..., None], here.shape)
    differ_only_where(trial, BLOCK, padded, {**padded, "x": x}, here, what, settled=settled)


def _range(trial: Trial) -> None:
    """Check numbers beyond fp16 that do not reach the result: hidden values, or the stream between two branches."""
    a = trial.draw(choice(_of_large_hidden, _of_large_stream))(trial)
    outcome = trial.call(a)
    agrees(trial, BLOCK, a, outcome, BLOCK.exact(trial, a, use_exact_oracle=False))
    finite(trial, outcome.result, "a block whose result is finite")


def _of_large_stream(trial: Trial) -> dict[str, Any]:
    """Draw tokens of 4e4 in one direction, to which attention adds as much; a norm or the other branch removes it."""
    a = draw_block(trial, kinds=("gaussian",))
    rng = trial.draw(values()).rng
    d, signs = a["x"].shape[2], rng.choice([-1.0, 1.0], a["x"].shape[2])
    a["x"] = trial.tensor(rng.uniform(3.6e4, 4e4, (*a["x"].shape[:2], 1)) * signs)
    a["w_q"] = torch.zeros_like(a["w_q"])
    a["w_v"] = trial.tensor(np.broadcast_to(signs[:, None] / (8 * d), a["w_v"].shape))
    a["w_o"] = trial.tensor(np.broadcast_to(8 * signs / a["w_o"].shape[0], a["w_o"].shape))
    a["w2"] = torch.zeros_like(a["w2"])
    a["b2"] = trial.tensor(-3e4 * signs if a.get("norm") != "post" else 0.0 * signs)
    return a


def _of_large_hidden(trial: Trial) -> dict[str, Any]:
    a = draw_block(trial, kinds=("gaussian",), activations=("relu",)) | {"activation": "relu", "norm": "pre"}
    rng = trial.draw(values()).rng
    d, f = a["w1"].shape
    a["norm2_weight"] = torch.zeros(d, dtype=trial.dtype)
    a["norm2_bias"] = trial.tensor(rng.uniform(200.0, 300.0, d))
    a["w1"] = trial.tensor(rng.uniform(150.0, 250.0, (d, f)))
    a["w2"] = trial.tensor(2.0**-10 * rng.standard_normal((f, d)) / f)
    return a


_LAWS: dict[str, Any] = {
    "identity_path": _identity_path,
    "stream_shift": _stream_shift,
    "one_branch": _one_branch,
    "tokens_permuted": _tokens_permuted,
    "causality": _causality,
    "padding": _padding,
}


CHECKS = (
    *(check(f"transformer_block.{name}", body, dtypes=("fp64", "fp32")) for name, body in _LAWS.items()),
    check("transformer_block.range", _range, dtypes=("fp16", "fp32"), effort=0.5),
)

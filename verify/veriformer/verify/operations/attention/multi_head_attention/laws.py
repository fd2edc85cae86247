"""Laws of multi-head attention."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import agrees, gradients_agree
from veriformer.verify.laws.equality import finite
from veriformer.verify.laws.family import check
from veriformer.verify.laws.gradients import draw_cotangent, judge_with_gradients
from veriformer.verify.laws.pairs import adds_up, differ_only_where, exact, moves_along, only, same
from veriformer.verify.laws.untouched import assert_pure
from veriformer.verify.operations.attention.multi_head_attention.record import MULTI_HEAD_ATTENTION as MHA
from veriformer.verify.operations.attention.multi_head_attention.record import (
    WEIGHTS,
    Shape,
    counts,
    draw_mask,
    draw_shape,
    draw_tensors,
)
from veriformer.verify.scripts.script import literal
from veriformer.verify.strategies import choice, sizes, values


def _columns(w: torch.Tensor, head: int, heads: int) -> torch.Tensor:
    width = w.shape[1] // heads
    return w[:, head * width : (head + 1) * width].contiguous()


def _sum_of_heads(trial: Trial) -> None:
    """Concat(heads) W_O = Σ_h head_h W_O^h."""
    shape = draw_shape(trial, groups=(1, 3), repeats=(1, 3))
    tensors = draw_tensors(trial, shape)
    causal = {"is_causal": True} if shape.m is None and trial.draw(st.booleans()) else {}
    whole: Arguments = {**tensors, **counts(trial, shape), **causal}
    alone = []
    for h in range(shape.heads):
        g = h // (shape.heads // shape.groups)
        head = {"w_q": _columns(tensors["w_q"], h, shape.heads), "w_o": _columns(tensors["w_o"].T, h, shape.heads).T}
        head |= {name: _columns(tensors[name], g, shape.groups) for name in ("w_k", "w_v")}
        alone.append({**tensors, **head, "num_heads": 1, **causal})
    of_parts = [exact(trial, MHA, one) for one in alone]
    a = trial.call(whole).result
    parts = [trial.call(one).result for one in alone]
    adds_up(trial, a, parts, exact(trial, MHA, whole), of_parts, "the output, and the sum over heads alone")


def _heads_permuted(trial: Trial) -> None:
    """Check permuted groups, and permuted heads within each."""
    shape = draw_shape(trial)
    tensors = draw_tensors(trial, shape)
    rng = trial.draw(values()).rng
    repeats = shape.heads // shape.groups
    groups = rng.permutation(shape.groups)
    heads = np.concatenate([g * repeats + rng.permutation(repeats) for g in groups])

    def columns(w: torch.Tensor, order: Any) -> torch.Tensor:
        return w.reshape(w.shape[0], len(order), -1)[:, torch.as_tensor(order)].reshape(w.shape)

    moved = {name: columns(tensors[name], groups) for name in ("w_k", "w_v")}
    moved |= {"w_q": columns(tensors["w_q"], heads), "w_o": columns(tensors["w_o"].T, heads).T.contiguous()}
    options = counts(trial, shape)
    same(trial, MHA, {**tensors, **options}, {**tensors, **moved, **options}, "heads in another order", ("x",))


def _grouped_is_copied(trial: Trial) -> None:
    groups, repeats = trial.draw(sizes(2, 3)), trial.draw(sizes(2, 3))
    shape = draw_shape(trial, groups=(groups, groups), repeats=(repeats, repeats))
    shape = shape._replace(groups=groups, heads=groups * repeats)
    tensors = draw_tensors(trial, shape)
    copied = {}
    for name in ("w_k", "w_v"):
        w = tensors[name].reshape(tensors[name].shape[0], groups, -1)
        copied[name] = w.repeat_interleave(repeats, 1).flatten(1)
    one = {**tensors, "num_heads": shape.heads, "num_kv_heads": groups}
    same(
        trial, MHA, one, {**tensors, **copied, "num_heads": shape.heads}, "grouped heads and copied heads", ("x", "w_o")
    )


def _tokens_permuted(trial: Trial) -> None:
    shape = draw_shape(trial, least=2)
    one = {**draw_tensors(trial, shape), **counts(trial, shape)}
    rng = trial.draw(values()).rng
    order = rng.permutation(shape.n)
    two = {**one, "x": one["x"][:, order]}
    if shape.m is not None:
        keys = rng.permutation(shape.m)
        one["attention_mask"] = draw_mask(trial, shape.b, shape.m)
        two |= {"context": one["context"][:, keys], "attention_mask": one["attention_mask"][:, keys]}
    moves_along(trial, MHA, one, two, order, "tokens in another order")


def _own_context(trial: Trial) -> None:
    shape = draw_shape(trial, context=False)
    alone = {**draw_tensors(trial, shape), **counts(trial, shape)}
    if trial.draw(st.booleans()):
        alone["is_causal"] = True
    both = {**alone, "context": alone["x"].clone()}
    of_alone, of_both = exact(trial, MHA, alone), exact(trial, MHA, both)
    cotangent = draw_cotangent(trial, of_alone.exact.shape)
    a = trial.call(alone, wrt=("x", "w_k"), cotangent=cotangent)
    b = trial.call(both, wrt=("x", "context", "w_k"), cotangent=cotangent)
    adds_up(trial, a.result, [b.result], of_alone, [of_both], "self-attention, and attention to itself as context")
    one, two = (MHA.exact_gradients(trial, x, cotangent, use_exact_oracle=False) for x in (alone, both))
    parts = [b.gradient("x"), b.gradient("context")]
    adds_up(trial, a.gradient("x"), parts, one["x"], [two["x"], two["context"]], "the gradient of x and its two parts")


def _causality(trial: Trial) -> None:
    """Check causality: a change of later tokens changes no earlier output, and later tokens get no gradient from it."""
    shape = draw_shape(trial, context=False, least=2)
    one: dict[str, Any] = {**draw_tensors(trial, shape), **counts(trial, shape), "is_causal": True}
    t = trial.draw(sizes(0, shape.n - 1))
    x = one["x"].clone()
    x[:, t:] = 1.5 - 2.0 * x[:, t:]
    blind = np.broadcast_to((np.arange(shape.n) < t)[:, None], (shape.b, shape.n, shape.d_out))
    differ_only_where(trial, MHA, one, {**one, "x": x}, blind, "an output, after later tokens have changed")
    cotangent = torch.zeros(shape.b, shape.n, shape.d_out, dtype=trial.dtype)
    cotangent[:, t] = trial.tensor(trial.draw(values(("gaussian",))).array(shape.b, shape.d_out))
    outcome = trial.call(one, wrt=("x",), cotangent=cotangent)
    gradient = MHA.exact_gradients(trial, one, cotangent, use_exact_oracle=False)
    trial.assert_within_bound(outcome.gradient("x"), gradient["x"], "gradient of x from one position")


_POISON = choice(torch.nan, torch.inf, -torch.inf)


def _padded(trial: Trial) -> tuple[Shape, dict[str, Any], np.ndarray]:
    """Draw self-attention of texts of different lengths, padded on the left or on the right."""
    shape = draw_shape(trial, context=False, least=2, batch=(1, 4))
    shape = shape._replace(b=trial.draw(choice(2, 3, 1)) if shape.b == 1 else shape.b)
    a: dict[str, Any] = {**draw_tensors(trial, shape), **counts(trial, shape)}
    rng = trial.draw(values()).rng
    lengths = rng.integers(1, shape.n + 1, (shape.b, 1))
    lengths[0] = shape.n if trial.draw(choice(False, True)) else lengths[0]
    lengths[-1] = rng.integers(1, shape.n)
    j = np.arange(shape.n)
    real = j < lengths if trial.draw(st.booleans()) else j >= shape.n - lengths
    a["attention_mask"] = torch.as_tensor(real).to(trial.draw(choice(torch.bool, torch.int64)))
    if trial.draw(st.booleans()):
        a["is_causal"] = True
    return shape, a, real


def _without_padding(trial: Trial, a: Arguments, real: np.ndarray, cotangent: torch.Tensor) -> tuple[Reference, Any]:
    """Return the references of result and gradients, from the formula with padding set to 0 in x."""
    clean = {**a, "x": torch.where(torch.as_tensor(real)[..., None], a["x"], 0)}
    return exact(trial, MHA, clean), MHA.exact_gradients(trial, clean, cotangent, use_exact_oracle=False)


def _cotangent(trial: Trial, shape: Shape, real: np.ndarray) -> torch.Tensor:
    g = trial.tensor(trial.draw(values()).array(shape.b, shape.n, shape.d_out))
    return torch.where(torch.as_tensor(real)[..., None], g, 0)


def _padding(trial: Trial) -> None:
    shape, a, real = _padded(trial)
    cotangent = _cotangent(trial, shape, real)
    reference, gradients = _without_padding(trial, a, real, cotangent)
    loud = trial.tensor(trial.draw(choice(0.0, 8.0, 100.0)) * trial.draw(values()).array(*a["x"].shape))
    there = torch.as_tensor(real)[..., None]
    dirty = {**a, "x": torch.where(there, a["x"], loud)}
    outcome = trial.call(dirty, wrt=("x", *WEIGHTS), cotangent=cotangent)
    judged = np.broadcast_to(real[..., None], reference.exact.shape)
    trial.assert_within_bound(outcome.result, only(reference, judged), "result at real tokens")
    finite(trial, outcome.result, "the result with padding")
    trial.assert_within_bound(outcome.gradient("x"), gradients["x"], "gradient of x")
    for name in WEIGHTS:
        trial.assert_within_bound(outcome.gradient(name), gradients[name], f"gradient of {name}")
    i = shape.b - 1  # the last element has padding
    rows = {"x": a["x"][i : i + 1, torch.as_tensor(real[i])]}
    short = trial.call({**{k: v for k, v in a.items() if k != "attention_mask"}, **rows})
    alone = Reference(reference.exact[i : i + 1, real[i]], reference.bound[i : i + 1, real[i]])
    trial.assert_within_bound(short.result, alone, "result without the padding")
    assert_pure(trial, dirty)


def _padding_poison(trial: Trial) -> None:
    (_poisoned_context if trial.offers("context") and trial.draw(st.booleans()) else _poisoned_text)(trial)


def _poisoned_text(trial: Trial) -> None:
    """Check NaN and infinities in padded tokens of self-attention."""
    shape, a, real = _padded(trial)
    cotangent = _cotangent(trial, shape, real)
    reference, _ = _without_padding(trial, a, real, cotangent)
    dirty = {**a, "x": torch.where(torch.as_tensor(real)[..., None], a["x"], trial.draw(_POISON))}
    outcome = trial.call(dirty)  # its gradients are unjudged: padding asks as well, and has no answer
    judged = np.broadcast_to(real[..., None], reference.exact.shape)
    trial.assert_within_bound(outcome.result, only(reference, judged), "result at real tokens")


def _poisoned_context(trial: Trial) -> None:
    """Check NaN and infinities in padded keys: they reach no result and no gradient."""
    shape = draw_shape(trial, context=True)._replace(m=trial.draw(sizes(2, 5)))
    a: dict[str, Any] = {**draw_tensors(trial, shape), **counts(trial, shape)}
    a["attention_mask"] = real = draw_mask(trial, shape.b, shape.keys)
    real[-1, 0], real[-1, 1:] = False, True
    clean, dirty = (
        {**a, "context": torch.where(real[..., None], a["context"], hidden)} for hidden in (0.0, trial.draw(_POISON))
    )
    cotangent = draw_cotangent(trial, (shape.b, shape.n, shape.d_out))
    gradients = MHA.exact_gradients(trial, clean, cotangent, use_exact_oracle=False)
    outcome = trial.call(dirty, wrt=("x", "context"), cotangent=cotangent)
    trial.assert_within_bound(outcome.result, exact(trial, MHA, clean), "result")
    trial.assert_within_bound(outcome.gradient("x"), gradients["x"], "gradient of x")
    judged = np.broadcast_to(real[..., None].numpy(), gradients["context"].exact.shape)
    trial.assert_within_bound(
        outcome.gradient("context"), only(gradients["context"], judged), "gradient at real tokens"
    )


def _mask_forms(trial: Trial) -> None:
    shape = draw_shape(trial)
    a = {**draw_tensors(trial, shape), **counts(trial, shape)}
    if trial.draw(st.booleans()) or shape.m is None:
        dtype = trial.draw(choice(torch.bool, torch.int64, torch.float32, torch.uint8))
        same(trial, MHA, a, {**a, "attention_mask": torch.ones(shape.b, shape.keys, dtype=dtype)}, "a mask of ones")
        return
    mask = draw_mask(trial, shape.b, shape.keys)
    other = mask.to(trial.draw(choice(torch.int64, torch.int32, torch.float32, torch.uint8, trial.dtype)))
    same(trial, MHA, {**a, "attention_mask": mask}, {**a, "attention_mask": other}, "a mask in another dtype")


def _no_key(trial: Trial) -> None:
    """Check an element that is all padding, or more queries than keys under causality."""
    shape = draw_shape(trial, context=True)
    why = trial.draw(choice("padding", "causality"))
    bottom_right = trial.claims.convention("causal.alignment") == "bottom-right"
    if why == "causality" and bottom_right:
        shape = shape._replace(n=max(shape.n, shape.keys) + trial.draw(sizes(1, 2)), m=min(shape.n, shape.keys))
        a: dict[str, Any] = {**draw_tensors(trial, shape), **counts(trial, shape), "is_causal": True}
        empty = np.broadcast_to(np.arange(shape.n) < shape.n - shape.keys, (shape.b, shape.n))
    else:
        a = {**draw_tensors(trial, shape), **counts(trial, shape)}
        mask = draw_mask(trial, shape.b, shape.keys)
        mask[0] = False
        a["attention_mask"] = mask
        empty = np.broadcast_to((np.arange(shape.b) == 0)[:, None], (shape.b, shape.n))
    convention = trial.claims.convention("attention.empty_row")
    if convention != "zero":
        blind = np.broadcast_to(empty[..., None], (shape.b, shape.n, shape.d_out))
        result = trial.call(a).result
        trial.assert_within_bound(result, only(exact(trial, MHA, a), ~blind), "result of queries that see a key")
        if convention == "nan":
            rows = torch.as_tensor(blind.copy())
            expression = f"bool({result.expression}[{literal(rows)}].isnan().all())"
            all_nan = bool(result.value[rows].isnan().all())
            trial.assert_true(all_nan, "what a query gets that sees no key is not NaN, as claimed", expression)
            return
        unhidden = {name: x for name, x in a.items() if name not in ("attention_mask", "is_causal")}
        mean = exact(trial, MHA, {**unhidden, "w_q": 0.0 * a["w_q"]})  # equal scores
        trial.assert_within_bound(
            result, only(mean, blind), "result of queries that see no key, the mean of all values"
        )
        return
    judge_with_gradients(trial, MHA, a)
    trial.effective.append(True)


def _range(trial: Trial) -> None:
    """Check values beyond fp16 between two projections that bring them back."""
    shape = draw_shape(trial, context=False)
    tensors = draw_tensors(trial, shape, ("gaussian",))
    rng = trial.draw(values()).rng
    signs = rng.choice([-1.0, 1.0], (shape.b, 1, 1))
    tensors["x"] = trial.tensor(signs * rng.uniform(200.0, 300.0, tuple(tensors["x"].shape)))
    tensors["w_v"] = trial.tensor(rng.uniform(400.0, 500.0, tuple(tensors["w_v"].shape)))
    tensors["w_o"] = trial.tensor(2.0**-8 * rng.standard_normal(tuple(tensors["w_o"].shape)) / shape.heads)
    for name in ("w_q", "w_k"):
        tensors[name] = trial.tensor(2.0**-9 * rng.standard_normal(tuple(tensors[name].shape)))
    a = {**tensors, **counts(trial, shape)}
    references = MHA.exact(trial, a, use_exact_oracle=False)
    cotangent = draw_cotangent(trial, references[0].exact.shape)
    outcome = trial.call(a, wrt=("x",), cotangent=cotangent)
    agrees(trial, MHA, a, outcome, references)
    gradients_agree(trial, outcome, MHA.exact_gradients(trial, a, cotangent, use_exact_oracle=False))


_LAWS: dict[str, Any] = {
    "sum_of_heads": _sum_of_heads,
    "heads_permuted": _heads_permuted,
    "grouped_is_copied": _grouped_is_copied,
    "tokens_permuted": _tokens_permuted,
    "own_context": _own_context,
    "causality": _causality,
    "padding": _padding,
    "padding_poison": _padding_poison,
    "mask_forms": _mask_forms,
}


CHECKS = (
    *(check(f"multi_head_attention.{name}", body, dtypes=("fp64", "fp32")) for name, body in _LAWS.items()),
    check("multi_head_attention.no_key", _no_key, dtypes=("fp64", "fp32"), convention="attention.empty_row"),
    check("multi_head_attention.range", _range, dtypes=("fp16", "fp32"), effort=0.5),
)

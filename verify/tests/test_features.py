"""Features of calls: what they say of calls made for the purpose, and of those that are drawn."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from veriformer.spec.requirement import Weight
from veriformer.verify.contract.features import GRADIENTS, feature, features, present, weight_of
from veriformer.verify.contract.signatures import POSITIONAL

NAN = float("nan")


def qkv(heads: int = 4, groups: int = 4, n_q: int = 3, n_k: int = 3, d_v: int = 5) -> dict[str, Any]:
    """A call of attention of these sizes."""
    return {
        "q": torch.randn(2, heads, n_q, 5),
        "k": torch.randn(2, groups, n_k, 5),
        "v": torch.randn(2, groups, n_k, d_v),
    }


def poisoned(hidden: bool) -> dict[str, Any]:
    """A call whose last value is NaN, hidden by its mask or not."""
    call = qkv()
    call["v"][..., -1, 0] = NAN
    return {**call, "mask": torch.tensor([[True, True, not hidden]]).expand(3, 3)}


X = torch.randn(2, 3, 4)
CALLS: list[tuple[str, dict[str, Any], set[str], set[str]]] = [
    ("attention", qkv(), {"d_k = 1"}, {"several heads", "several batch elements"}),
    ("attention", qkv(4, 2), {"one key head for several"}, {"grouped heads"}),
    ("attention", qkv(4, 1, d_v=3), {"grouped heads"}, {"one key head for several", "d_v ≠ d_k", "d_v < d_k"}),
    ("attention", qkv(n_q=1), {"n_q > n_k"}, {"n_q ≠ n_k", "one query"}),
    ("attention", {**qkv(), "scale": 0.0}, {"a negative scale"}, {"a scale", "a scale of 0"}),
    ("attention", {**qkv(), "scale": None}, {"a scale"}, {"scale=None"}),
    ("attention", poisoned(True), set(), {"NaN in a hidden value", "a mask of rank 2", "an expanded mask", "NaN in v"}),
    ("attention", poisoned(False), {"NaN in a hidden value", "NaN in a hidden key"}, {"NaN in v"}),
    ("attention", {**qkv(n_q=4), "is_causal": True}, set(), {"a query that sees no key", "causality and n_q > n_k"}),
    ("softmax", {"z": X, "dim": 2}, {"another axis than the last"}, {"a dim counted from the front", "z of rank 3"}),
    ("softmax", {"z": X.mT}, {"an expanded z"}, {"a strided z", "leading axes", "several leading axes"}),
    ("layer_norm", {"x": X, "bias": torch.ones(4)}, {"a weight"}, {"a bias", "a bias without weight"}),
    ("layer_norm", {"x": X}, set(), {f"more than one {what} x" for what in ("row of", "token in", "batch element in")}),
    ("layer_norm", {"x": X[:1]}, {"more than one batch element in x"}, {"more than one row of x"}),
    ("layer_norm", {"x": X[:, :1]}, {"more than one token in x"}, {"more than one row of x"}),
    ("mixture_of_experts", {"x": X, "top_k": 1}, set(), {"a top_k of 1"}),
    ("attention", {**qkv(), "scale": 1}, set(), {"an integer as scale"}),
    ("cross_entropy", {"logits": X[0], "target": X[0].softmax(-1)}, {"class targets"}, {"probability targets"}),
    ("cross_entropy", {"logits": X[0], "target": torch.tensor([-100, 1, 2])}, set(), {"ignored targets"}),
    ("rope", {"x": X, "positions": torch.arange(6).view(2, 3)}, {"negative positions"}, {"batched positions"}),
    ("top_p_filter", {"logits": X, "p": 1e-30}, {"a p of 0"}, {"a p within rounding of 0 or 1"}),
    ("top_p_filter", {"logits": X, "p": 0.99}, {"a p within rounding of 0 or 1"}, set()),
    ("top_p_filter", {"logits": X.bfloat16(), "p": 0.995}, set(), {"a p within rounding of 0 or 1"}),
    ("clip_grad_norm", {"grads": [X, X[0]], "max_norm": 0}, set(), {"several grads", "a max_norm of 0"}),
]  # fmt: skip


def test_that_a_whole_number_is_an_integer_is_no_feature() -> None:
    assert feature("mixture_of_experts", "an integer as top_k") is None


@pytest.mark.parametrize(
    ("operation", "arguments", "absent", "there"), CALLS, ids=lambda x: x if isinstance(x, str) else ""
)
def test_a_call_has_its_features_and_no_others(
    operation: str, arguments: dict[str, Any], absent: set[str], there: set[str]
) -> None:
    names = {one.name for one in features(operation)}
    assert absent | there <= names
    assert present(operation, arguments) & (absent | there) == there


@pytest.mark.parametrize("operation", POSITIONAL)
def test_features_have_names_of_their_own_and_ask_nothing_of_a_call(operation: str) -> None:
    names = [one.name for one in features(operation)]
    assert names
    assert len(names) == len(set(names))
    for garbage in (None, "x", 3, [], torch.zeros(()), torch.zeros(0, 3), object()):
        present(operation, dict.fromkeys((*POSITIONAL[operation], "mask", "bias", "window", "scale"), garbage))


def test_the_dtype_and_gradients_are_features_too() -> None:
    assert {"fp16", GRADIENTS} <= present("silu", {"x": X}, dtype="fp16", gradients=True)
    assert feature("silu", "fp16") is None


def test_the_weight_is_that_of_the_least_ordinary_feature() -> None:
    assert weight_of("attention", frozenset({"grouped heads"})) is Weight.WRONG
    assert weight_of("attention", frozenset({"grouped heads", "a scale of 0"})) is Weight.FRAGILE
    assert weight_of("attention", frozenset({"NaN in a hidden value", "a scale of 0"})) is Weight.LEAK

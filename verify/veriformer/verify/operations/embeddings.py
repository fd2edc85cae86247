"""Token embeddings and the head of a language model as records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.spec.language.lm_head import lm_head, lm_head_vjp
from veriformer.spec.language.token_embedding import token_embedding, token_embedding_vjp
from veriformer.verify.operation import Index, Operation, Refusal
from veriformer.verify.operations.changes import nudged
from veriformer.verify.strategies import choice, leading_shapes, sizes, values, widths
from veriformer.verify.trial import Arguments, Trial

_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.uint8)


def _token_embedding(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [token_embedding(xp, a["ids"], a["weight"])]


def _token_embedding_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    return {"weight": token_embedding_vjp(xp, a["ids"], a["weight"], g)}


def _lm_head(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [lm_head(xp, a["h"], a["weight"])]


def _lm_head_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    return dict(zip(("h", "weight"), lm_head_vjp(xp, a["h"], a["weight"], g), strict=True))


def table(trial: Trial) -> torch.Tensor:
    """A table [V, d]; V and d are seldom equal."""
    return trial.tensor(trial.draw(values()).array(trial.draw(sizes(1, 7)), trial.draw(widths(5))))


def draw_ids(trial: Trial, shape: tuple[int, ...], size: int) -> torch.Tensor:
    """Ids of any integer dtype, some of them often."""
    rng = trial.draw(values()).rng
    few = rng.integers(0, size, max(1, size // 2))
    ids = rng.choice(few, shape) if trial.draw(st.booleans()) else rng.integers(0, size, shape)
    return torch.as_tensor(np.asarray(ids)).to(trial.draw(choice(*_INTEGERS, torch.uint8)))


def draw_token_embedding(trial: Trial) -> Arguments:
    """Ids of any shape, also one alone or none at all, or as many as rows, which bytes must not make a mask of them."""
    weight = table(trial) * trial.draw(choice(1.0, 1.0, 1024.0))  # rows are copied, however long they are
    shape = trial.draw(choice(None, None, None, weight.shape[:1], weight.shape[:1]))
    shape = trial.draw(leading_shapes()) if shape is None else tuple(shape)
    return {"ids": draw_ids(trial, shape, weight.shape[0]), "weight": weight}


def draw_lm_head(trial: Trial) -> Arguments:
    """Features of any leading shape."""
    weight = table(trial)
    h = trial.draw(values()).array(*trial.draw(leading_shapes()), weight.shape[1])
    return {"h": trial.tensor(h), "weight": weight}


def _ordinary_ids(trial: Trial) -> Arguments:
    kind = trial.draw(values(("gaussian",)))
    ids = torch.as_tensor(kind.rng.integers(0, 5, (2, trial.draw(sizes(1, 4)))))
    return {"ids": ids, "weight": trial.tensor(kind.array(5, 3))}


def _ordinary_features(trial: Trial) -> Arguments:
    kind = trial.draw(values(("gaussian",)))
    h = kind.rng.standard_normal((2, trial.draw(sizes(1, 4)), 3))
    return {"h": trial.tensor(h), "weight": trial.tensor(kind.array(5, 3))}


def _part_of_ids(trial: Trial) -> tuple[Arguments, Arguments, dict[str, Index]]:
    a = _ordinary_ids(trial)
    index = (slice(1, 2),)
    return a, {**a, "ids": a["ids"][index]}, {"result": index}


def _part_of_features(trial: Trial) -> tuple[Arguments, Arguments, dict[str, Index]]:
    a = dict(draw_lm_head(trial))
    a["h"] = a["h"][None] if a["h"].ndim == 1 else a["h"]
    i = trial.draw(st.integers(0, a["h"].shape[0] - 1))
    index = (slice(i, i + 1),)
    return a, {**a, "h": a["h"][index]}, {"result": index, "h": index}


def _changed_ids(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    a = _ordinary_ids(trial)
    ids = torch.zeros_like(a["ids"])
    b = {**a, "ids": ids}
    other = a["weight"].clone()
    other[0] += 1.5
    return b, {"ids": {**b, "ids": ids + 1}, "weight": {**b, "weight": other}}


def _changed_features(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    a = _ordinary_features(trial)
    rng = trial.draw(values()).rng
    return a, {name: {**a, name: nudged(trial, a[name], rng)} for name in a}


def _bulk(trial: Trial) -> Arguments:
    kind, other = (trial.draw(values(("gaussian", "one-signed", "spread"))) for _ in range(2))
    return {"h": trial.tensor(kind.array(30, 20)), "weight": trial.tensor(other.array(25, 20))}


def _long_ids(trial: Trial) -> Arguments:
    n, size, d = trial.draw(choice((1030, 5, 3), (300, 1030, 2), (3, 4999, 2), (70, 3, 1030), (3, 70001, 1)))
    kind = trial.draw(values(("gaussian", "one-signed")))
    ids = torch.as_tensor(kind.rng.integers(0, size, n))
    return {"ids": ids, "weight": trial.tensor(kind.array(size, d))}


def _long_features(trial: Trial) -> Arguments:
    n, d, size = trial.draw(choice((300, 3, 5), (2, 1030, 3), (2, 3, 4999), (130, 70, 65)))
    kind, other = (trial.draw(values(("gaussian", "one-signed", "integers"))) for _ in range(2))
    return {"h": trial.tensor(kind.array(n, d)), "weight": trial.tensor(other.array(size, d))}


def _bad_tables(a: Arguments, first: str) -> Iterator[Refusal]:
    yield Refusal(f"no {first}", {**a, first: None}, (first,))
    yield Refusal("no table", {**a, "weight": None}, ("weight",))
    yield Refusal("a vector for a table", {**a, "weight": a["weight"][0]}, ("weight",))
    yield Refusal("a table of rank 3", {**a, "weight": a["weight"][None]}, ("weight",))


def _bad_ids(trial: Trial) -> Iterator[Refusal]:
    a = _ordinary_ids(trial)
    yield from _bad_tables(a, "ids")
    yield Refusal("floating-point ids", {**a, "ids": a["ids"].double()}, ("ids",))
    yield Refusal("bools for ids", {**a, "ids": a["ids"] > 1}, ("ids",))
    for bad in (-1, 5, -5, -100):
        ids = a["ids"].clone()
        ids[-1, -1] = bad
        yield Refusal(f"id {bad} of 5", {**a, "ids": ids}, ("ids",))


def _bad_features(trial: Trial) -> Iterator[Refusal]:
    a = _ordinary_features(trial)
    other = torch.float32 if trial.dtype is torch.float64 else torch.float64
    yield from _bad_tables(a, "h")
    yield Refusal("features too narrow", {**a, "h": a["h"][..., :-1]}, ("h", "weight"))
    yield Refusal("a table on its side", {**a, "weight": a["weight"].mT}, ("h", "weight"))
    yield Refusal("a table of another dtype", {**a, "weight": a["weight"].to(other)}, ("h", "weight"))


TOKEN_EMBEDDING = Operation(
    name="token_embedding",
    draw=draw_token_embedding,
    ordinary=_ordinary_ids,
    formulas=(_token_embedding,),
    vjps=(_token_embedding_vjp,),
    inputs=("weight",),
    refusals=_bad_ids,
    part=_part_of_ids,
    changes=_changed_ids,
    long=_long_ids,
    sharp=False,
    forms=("fp32", "bf16"),
)

LM_HEAD = Operation(
    name="lm_head",
    draw=draw_lm_head,
    ordinary=_ordinary_features,
    formulas=(_lm_head,),
    vjps=(_lm_head_vjp,),
    inputs=("h", "weight"),
    refusals=_bad_features,
    part=_part_of_features,
    changes=_changed_features,
    long=_long_features,
    bulk=_bulk,
    forms=("fp32", "bf16"),
)

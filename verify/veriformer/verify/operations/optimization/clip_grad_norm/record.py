"""Clipping by the global norm as a record."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.spec.optimization.clip_grad_norm import clip_grad_norm, global_norm
from veriformer.verify.judging.op_info import InvalidCall, OpInfo
from veriformer.verify.judging.outcome import Observation, Outcome
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.operations.changes import perturbed
from veriformer.verify.operations.optimization.tensor_lists import OWN, shapes_of
from veriformer.verify.strategies import KINDS, Values, choice, leading_shapes, values
from veriformer.verify.targets.claims import Claims

EPSILON = 1e-6
"""Addend of the claimed denominator ``norm+1e-6``."""


BEYOND = "norm+1e-6 beyond max_norm"
"""The claim of code that leaves gradients as they are up to the maximum, and divides by the larger norm beyond it."""


def denominator(claims: Claims) -> dict[str, Any]:
    """Return the target's addend to the norm in the divisor (0 unless claimed), and whether only beyond the maximum."""
    claimed = claims.convention("clip_grad_norm.denominator")
    return {"added": 0.0 if claimed == "norm" else EPSILON, "beyond": claimed == BEYOND}


def _clip_grad_norm(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    if a.get("added") and math.isfinite(a["max_norm"]):
        norm = global_norm(xp, a["grads"])
        factor = a["max_norm"] / (norm + a["added"])
        inside = np.asarray(np.less_equal(getattr(norm, "value", norm), a["max_norm"], dtype=object), dtype=bool)
        factor = xp.where(inside, 1, factor) if a.get("beyond") else xp.minimum(1, factor)
        return [*[g * factor for g in a["grads"]], norm]
    clipped, norm = clip_grad_norm(xp, a["grads"], a["max_norm"])
    return [*clipped, norm]


def _parts(outcome: Outcome, arguments: Arguments) -> list[Observation]:
    return [*[outcome.item(0, i) for i in range(len(arguments["grads"]))], outcome.item(1)]


def _dtype(trial: Trial, arguments: Arguments, part: int) -> torch.dtype:
    if part < len(arguments["grads"]):
        return trial.dtype
    return torch.float64 if trial.dtype is torch.float64 else torch.float32


@cache
def _lists_of_shapes(least: int) -> st.SearchStrategy[list[tuple[int, ...]]]:
    return st.lists(leading_shapes(3, 5), min_size=least, max_size=4)


def draw_grads(trial: Trial, *, least: int = 1, kinds: Sequence[str] = KINDS) -> list[torch.Tensor]:
    """Draw a list of tensors of any ranks, also 0, with structured values."""
    large = trial.sizes(_RANGES, lambda s: s["entries"] + OWN * s["tensors"])
    kind = trial.draw(values(tuple(kinds)))
    drawn = trial.draw(_lists_of_shapes(least)) if large is None else shapes_of(kind.rng, **large)
    alike = [Values(kind.kind, (kind.seed + i // 4) % 2**32) for i in range(len(drawn))]
    made = (one.array(*(shape or (1,)))[() if shape else 0] for one, shape in zip(alike, drawn, strict=True))
    return [trial.tensor(x * 1.5 ** (i % 4)) for i, x in enumerate(made)]


_RANGES: dict[str, tuple[int, int]] = {"tensors": (1, 600), "entries": (1, 2**17)}
"""Smallest and largest number of tensors, and of entries of one of them."""


def norm_of(grads: list[torch.Tensor]) -> float:
    """Return the global norm in float64, for drawing a maximum around it."""
    return math.sqrt(sum(float(g.double().square().sum()) for g in grads))


def draw_share(trial: Trial, *others: float) -> float:
    """Draw a share of the norm, or one of others: near 1 only where both sides of the maximum are alike."""
    share: float = trial.draw(choice(0.5, 0.01, 0.9, 1.0, 2.0, *others))
    jumps = trial.claims.convention("clip_grad_norm.denominator") == BEYOND
    return 0.9 if share == 1.0 and jumps else share


def draw_clip(trial: Trial) -> Arguments:
    """Draw gradients and a maximum far below, well below, near, or above their norm, or 0, or infinite."""
    grads = draw_grads(trial)
    share = draw_share(trial, 1e-6, 0.0, math.inf)
    norm = norm_of(grads) or 1.0
    return {"grads": grads, "max_norm": share if share in (0.0, math.inf) else share * norm}


def _bulk(trial: Trial) -> Arguments:
    trial.only_large()
    grads = draw_grads(trial, kinds=("gaussian", "one-signed"))
    return {"grads": grads, "max_norm": trial.draw(choice(0.5, 0.01, 0.9)) * (norm_of(grads) or 1.0)}


def _ordinary(trial: Trial) -> Arguments:
    return {"grads": [trial.tensor([[3.0, -1.0]]), trial.tensor([0.5, 2.0, 1.0])], "max_norm": 1.0}


def _bad_lists(trial: Trial) -> Iterator[InvalidCall]:
    g = trial.tensor(trial.draw(values(("gaussian",))).array(3))
    yield InvalidCall("no list", {"grads": None, "max_norm": 1.0}, ("grads",))
    yield InvalidCall("a missing gradient", {"grads": [g, None], "max_norm": 1.0}, ("grads",))
    yield InvalidCall("a negative maximum", {"grads": [g], "max_norm": -1.0}, ("max_norm",))
    yield InvalidCall("a bool for a maximum", {"grads": [g], "max_norm": True}, ("max_norm",))
    yield InvalidCall("a maximum that is no number", {"grads": [g], "max_norm": None}, ("max_norm",))


def _changes(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    kind = trial.draw(values(("gaussian", "one-signed")))
    grads = [trial.tensor(kind.array(2, 3)), trial.tensor(3.0 + kind.array(4))]
    a: Arguments = {"grads": grads, "max_norm": 0.5 * norm_of(grads)}
    return a, {
        "the first gradient": {**a, "grads": [perturbed(trial, grads[0], kind.rng), grads[1]]},
        "the last gradient": {**a, "grads": [grads[0], perturbed(trial, grads[1], kind.rng)]},
        "max_norm": {**a, "max_norm": 0.25 * norm_of(grads)},
    }


CLIP_GRAD_NORM = OpInfo(
    name="clip_grad_norm",
    sample=draw_clip,
    sample_basic=_ordinary,
    formulas=(_clip_grad_norm,),
    invalid_calls=_bad_lists,
    convention_kwargs=denominator,
    argument_perturbations=_changes,
    parts=_parts,
    sample_accuracy=_bulk,
    result_dtype=_dtype,
    advised_dtype=lambda arguments, part: part == len(arguments["grads"]),
)

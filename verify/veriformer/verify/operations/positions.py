"""Sinusoidal encodings, ALiBi, and T5's buckets as records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import torch

from veriformer.spec.positions.alibi import alibi_bias, alibi_slopes, distances
from veriformer.spec.positions.sinusoidal_encoding import sinusoidal_encoding
from veriformer.spec.positions.t5_relative_position_bucket import edges, t5_relative_position_bucket
from veriformer.verify.operation import Operation, Refusal
from veriformer.verify.strategies import choice, leading_shapes, sizes, values
from veriformer.verify.trial import Arguments, Trial

HEADS = (3, 1, 2, 4, 5, 6, 7, 8, 12, 16, 20, 32, 71, 112)


def _sinusoidal(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    options = {"base": a["base"]} if "base" in a else {}
    return [sinusoidal_encoding(xp, int(a["num_positions"]), int(a["d_model"]), **options)]


def _slopes(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [alibi_slopes(xp, int(a["num_heads"]))]


def _slopes_by_ratio(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """Powers of the first slope, as the paper's authors compute them: its error grows with the exponent."""
    heads = int(a["num_heads"])
    below = 1 << (heads.bit_length() - 1)

    def powers(number: int, exponents: Any) -> Any:
        first = xp.exp(xp.log(xp.asarray(2)) * Fraction(-8, number))
        return xp.exp(xp.log(first) * exponents)

    own, between = powers(below, np.arange(1, below + 1)), powers(2 * below, np.arange(1, 2 * below, 2))
    return [xp.concat([own, between], axis=0)[:heads]]


def _bias_by_ratio(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    slopes = _slopes_by_ratio(xp, a)[0]
    return [xp.reshape(slopes, (*slopes.shape, 1, 1)) * -distances(int(a["n_q"]), int(a["n_k"]))]


def _bias(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [alibi_bias(xp, int(a["num_heads"]), int(a["n_q"]), int(a["n_k"]))]


def _buckets(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    options: dict[str, Any] = {name: value for name, value in a.items() if name != "relative_position"}
    return [t5_relative_position_bucket(a["relative_position"].astype(np.int64), **options)]


def draw_sinusoidal(trial: Trial) -> Arguments:
    """Any number of positions, also none, of an even width."""
    n, d = trial.draw(sizes(0, 9)), trial.draw(choice(4, 2, 6, 8, 10))
    return {"num_positions": n, "d_model": d, **trial.option("base", None, 100.0, 500.0, 1e6, 10000)}


def draw_bias(trial: Trial) -> Arguments:
    """Lengths from 0, either the longer."""
    return {
        "num_heads": trial.draw(choice(3, 12, 1, 2, 20, 4, 5, 6, 8)),
        "n_q": trial.draw(choice(2, 3, 1, 4, 5, 0)),
        "n_k": trial.draw(choice(4, 3, 2, 5, 1, 6, 0)),
    }


_LONG_BIASES = choice((3, 70, 300), (6, 513, 1), (1, 1, 4999), (112, 3, 2))


def draw_buckets(trial: Trial) -> Arguments:
    """Relative positions near zero, at the edges of buckets, and far beyond the last."""
    options = trial.option("bidirectional", None, False, True)
    odd = () if options.get("bidirectional", True) else (3, 5, 7, 9)
    options = {
        **options,
        **trial.option("num_buckets", None, 4, 6, 8, 64, 10, 18, *odd),
        **trial.option("max_distance", None, 20, 64, 100, 1000),
    }
    shape = trial.draw(leading_shapes(3, 5))
    rng = trial.draw(values()).rng
    buckets = options.get("num_buckets", 32) // (2 if options.get("bidirectional", True) else 1)
    if options.get("max_distance", 128) <= buckets // 2:
        del options["max_distance"]
    at_edges = np.asarray(edges(buckets, options.get("max_distance", 128)))
    r = rng.choice(at_edges, shape) + rng.integers(-1, 2, shape)
    r = np.where(rng.random(shape) < 0.3, rng.integers(-300, 3000, shape), r) * rng.choice([-1, 1], shape)
    return {"relative_position": torch.as_tensor(r).to(trial.draw(choice(torch.int64, torch.int32))), **options}


def _integers(trial: Trial, arguments: Mapping[str, int]) -> Iterator[Refusal]:
    """Each size negative, no integer, or missing."""
    for name in arguments:
        bad: dict[str, Any] = {"negative": -trial.draw(sizes()), "a bool": True, "a fraction": 2.5, "missing": None}
        for what, value in bad.items():
            yield Refusal(f"{name}: {what}", {**arguments, name: value}, (name,))


def _bad_sinusoidal(trial: Trial) -> Iterator[Refusal]:
    yield from _integers(trial, {"num_positions": 3, "d_model": 4})
    yield Refusal("a bool for a base", {"num_positions": 3, "d_model": 4, "base": True}, ("base",))


def _bad_buckets(trial: Trial) -> Iterator[Refusal]:
    r = torch.arange(-3, 4)
    a: dict[str, Any] = {"relative_position": r}
    yield Refusal("no tensor", {"relative_position": None}, ("relative_position",))
    yield Refusal("floating-point distances", {"relative_position": r.double()}, ("relative_position",))
    yield Refusal("bools", {"relative_position": r > 0}, ("relative_position",))
    for number, both in ((2, True), (3, True), (33, True), (1, False), (0, False), (-4, True), (True, False)):
        yield Refusal(f"{number} buckets", {**a, "num_buckets": number, "bidirectional": both}, ("num_buckets",))
    for distance, both in ((8, True), (16, False), (0, True), (-1, True)):
        clash = {**a, "max_distance": distance, "bidirectional": both}
        yield Refusal(f"all within {distance}", clash, ("max_distance", "num_buckets"))


def _changed_sinusoidal(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    a: Arguments = {"num_positions": trial.draw(sizes(3)), "d_model": 6, "base": 100.0}
    return a, {"base": {**a, "base": 30.0}}


def _changed_buckets(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    a: dict[str, Any] = {"relative_position": torch.arange(-40, 41)}
    return a, {
        "relative_position": {"relative_position": torch.arange(-41, 40)},
        "bidirectional": {**a, "bidirectional": False},
        "num_buckets": {**a, "num_buckets": trial.draw(choice(16, 64))},
        "max_distance": {**a, "max_distance": trial.draw(choice(50, 300))},
    }


SINUSOIDAL_ENCODING = Operation(
    name="sinusoidal_encoding",
    draw=draw_sinusoidal,
    ordinary=lambda trial: {"num_positions": trial.draw(sizes(2)), "d_model": trial.draw(choice(4, 6))},
    formulas=(_sinusoidal,),
    refusals=_bad_sinusoidal,
    changes=_changed_sinusoidal,
    long=lambda trial: dict(zip(("num_positions", "d_model"), trial.draw(choice((513, 6), (4999, 2))), strict=True)),
    forms=("fp32", "bf16"),
)

ALIBI_SLOPES = Operation(
    name="alibi_slopes",
    draw=lambda trial: {"num_heads": trial.draw(choice(*HEADS))},
    ordinary=lambda trial: {"num_heads": trial.draw(choice(4, 8, 2))},
    formulas=(_slopes, _slopes_by_ratio),
    refusals=lambda trial: _integers(trial, {"num_heads": 4}),
    forms=("fp32", "bf16"),
)

ALIBI_BIAS = Operation(
    name="alibi_bias",
    draw=draw_bias,
    ordinary=lambda trial: {"num_heads": 4, "n_q": trial.draw(sizes(2)), "n_k": trial.draw(sizes(2))},
    formulas=(_bias, _bias_by_ratio),
    refusals=lambda trial: _integers(trial, {"num_heads": 4, "n_q": 2, "n_k": 3}),
    long=lambda trial: dict(zip(("num_heads", "n_q", "n_k"), trial.draw(_LONG_BIASES), strict=True)),
    forms=("fp32", "bf16"),
)

T5_RELATIVE_POSITION_BUCKET = Operation(
    name="t5_relative_position_bucket",
    draw=draw_buckets,
    ordinary=lambda trial: {"relative_position": torch.arange(-trial.draw(sizes(1)), 40)},
    formulas=(_buckets,),
    refusals=_bad_buckets,
    changes=_changed_buckets,
    result_dtype=lambda trial, arguments, part: torch.int64,
    dtypes=("fp32",),
)

"""Calls of positions: n of them, H heads of width d."""

from __future__ import annotations

from typing import Any

import torch

from veriformer.bench.operations.family import Call, Costs, Family, Operation, Sizes, random, substituted
from veriformer.bench.operations.scores import named
from veriformer.spec import costs
from veriformer.spec.positions.costs_positions import position_costs


def _table(operation: Operation, s: Sizes) -> Call:
    return Call(lambda: operation(s["n"], s["d"]), gradients=False)


def _rope(operation: Operation, s: Sizes) -> Call:
    x, positions = random(s["H"], s["n"], s["d"]), torch.arange(s["n"])
    return Call(lambda: operation(x, positions), [x, positions])


def _slopes(operation: Operation, s: Sizes) -> Call:
    return Call(lambda: operation(s["H"]), gradients=False)


def _bias(operation: Operation, s: Sizes) -> Call:
    return Call(lambda: operation(s["H"], s["n_q"], s["n_k"]), gradients=False)


def _bucket(operation: Operation, s: Sizes) -> Call:
    relative = torch.arange(s["n_k"])[None, :] - torch.arange(s["n_q"])[:, None]
    return Call(lambda: operation(relative), [relative], gradients=False)


def _rows(known: dict[str, Any]) -> Costs:
    return named({name: substituted(cost, N=costs.symbol("H") * costs.symbol("n")) for name, cost in known.items()})


def _pairs() -> Any:
    return 16 * costs.symbol("n_q") * costs.symbol("n_k")


FAMILIES = (
    Family("sinusoidal_encoding", "n d", _table, named(position_costs("sinusoidal"))),
    Family("rope", "H n d", _rope, _rows(position_costs("rope"))),
    Family("alibi_slopes", "H", _slopes, Costs(moved=lambda: costs.symbol("w") * costs.symbol("H"))),
    Family("alibi_bias", "H n_q n_k", _bias, named(position_costs("alibi"))),
    Family("t5_relative_position_bucket", "n_q n_k", _bucket, Costs(moved=_pairs)),
)

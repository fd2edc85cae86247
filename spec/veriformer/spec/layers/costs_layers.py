"""Costs of layers: N rows of width d, hidden width f, output width o, E experts of which k are asked, w bytes each.

FLOPs count matrix products, a multiplication and an addition as two; the backward pass has two products for each.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import symbol

Costs = dict[str, Callable[[], Any]]


def _symbols(names: str) -> list[Any]:
    return [symbol(name) for name in names.split()]


def layer_parameters() -> Any:
    """d f + f."""
    d, f = _symbols("d f")
    return d * f + f


def layer_flops() -> Any:
    """Return the FLOPs of a product: 2 N d f."""
    n, d, f = _symbols("N d f")
    return 2 * n * d * f


def network_parameters() -> Any:
    """Weights and biases of two layers: d f + f + f o + o."""
    d, f, o = _symbols("d f o")
    return d * f + f + f * o + o


def network_flops() -> Any:
    """Two products: 2 N f (d + o)."""
    n, d, f, o = _symbols("N d f o")
    return 2 * n * f * (d + o)


def gated_parameters() -> Any:
    """Three matrices without biases: 2 d f + f o."""
    d, f, o = _symbols("d f o")
    return 2 * d * f + f * o


def gated_flops() -> Any:
    """Three products: 2 N f (2 d + o)."""
    return 2 * symbol("N") * gated_parameters()


def experts_parameters() -> Any:
    """The router and E networks."""
    return symbol("d") * symbol("E") + symbol("E") * network_parameters()


def experts_flops() -> Any:
    """The router, and k networks for each row."""
    n, d, e, k = _symbols("N d E k")
    return 2 * n * d * e + k * network_flops()


def experts_other() -> Any:
    """The router's softmax and choice, and for each expert asked its activation, both biases and its gate."""
    n, o, e, k, f = _symbols("N o E k f")
    return n * (6 * e + k * (6 * f + 3 * o))


def experts_peak() -> Any:
    """The gates of all experts, and the hidden layer of those asked before and after its activation."""
    n, e, k, w = _symbols("N E k w")
    return w * n * e + k * _hidden_bytes(2)


def _least_bytes(parameters: Callable[[], Any]) -> Any:
    n, d, o, w = _symbols("N d o w")
    return w * (n * (d + o) + parameters())


def _hidden_bytes(copies: int) -> Any:
    return copies * symbol("w") * symbol("N") * symbol("f")


def _matrices(parameters: Callable[[], Any], flops: Callable[[], Any], copies: int) -> Costs:
    return {
        "FLOPs": flops,
        "backward FLOPs": lambda: 2 * flops(),
        "bytes at least": lambda: _least_bytes(parameters),
        "peak extra bytes": lambda: _hidden_bytes(copies),
        "parameters": parameters,
    }


LAYER: Costs = {"FLOPs": layer_flops, "backward FLOPs": lambda: 2 * layer_flops(), "parameters": layer_parameters}
NETWORK = _matrices(network_parameters, network_flops, 2)
GATED = _matrices(gated_parameters, gated_flops, 3)
EXPERTS = {
    "FLOPs": experts_flops,
    "backward FLOPs": lambda: 2 * experts_flops(),
    "other operations": experts_other,
    "bytes if all experts are asked": lambda: _least_bytes(experts_parameters),
    "peak extra bytes": experts_peak,
    "parameters": experts_parameters,
}


def elementwise(passes: int, arrays: int = 2) -> Costs:
    """Costs of an operation that does so many elementwise operations on N rows of d."""
    n, d, w = (partial(symbol, name) for name in "Ndw")
    return {
        "FLOPs": lambda: sp.S.Zero,
        "other operations": lambda: passes * n() * d(),
        "bytes": lambda: arrays * w() * n() * d(),
        "parameters": lambda: sp.S.Zero,
    }

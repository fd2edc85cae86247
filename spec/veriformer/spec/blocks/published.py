"""The block read as it is printed, token by token: what the proofs hold the formula against."""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.equation import Assumption, Symbol
from veriformer.spec.heads.published import Raw, multi_head
from veriformer.spec.proofs.indexed import positive
from veriformer.spec.proofs.tower_arithmetic import TowerArithmetic


def normalised(x: Raw, weight: Raw, bias: Raw, eps: Any) -> Raw:
    """LayerNorm of every row (19), multiplied out so that it is not the formula's own text."""
    mean = x.sum(axis=-1, keepdims=True) / x.shape[-1]
    variance = ((x - mean) ** 2).sum(axis=-1, keepdims=True) / x.shape[-1]
    r = 1 / np.frompyfunc(sp.sqrt, 1, 1)(variance + eps)
    return np.asarray(weight * r * x - weight * r * mean + bias)


class Case:
    """Symbolic text with a block of one head, of the given sizes."""

    def __init__(self, n: int, d: int, inner: int) -> None:
        self.xp = xp = TowerArithmetic()
        self.eps = positive("epsilon")
        self.x = xp.symbols("x", 1, n, d)
        shapes = {"w_q": (d, 1), "w_k": (d, 1), "w_v": (d, 1), "w_o": (1, d), "w1": (d, inner), "b1": (inner,)}
        shapes |= {"w2": (inner, d), "b2": (d,)} | {
            f"norm{i}_{kind}": (d,) for i in (1, 2) for kind in ("weight", "bias")
        }
        self.params = {name: xp.symbols(name, *shape) for name, shape in shapes.items()}

    @property
    def options(self) -> dict[str, Any]:
        """The keyword arguments that both sublayers take."""
        return {"num_heads": 1, "eps": self.eps}

    def without(self, *names: str) -> Case:
        """Set these parameters to zero, and return the case."""
        self.params |= {name: self.xp.asarray(0 * self.params[name].value) for name in names}
        return self

    def attended(self, h: Raw) -> Raw:
        """MultiHeadAttn(h, h, h)."""
        return multi_head(h, h, {z: self.params[f"w_{z}"].value for z in "qkvo"}, 1, 1)

    def thought(self, h: Raw) -> Raw:
        """FFN(h) with ReLU as its activation (36)."""
        w1, b1, w2, b2 = (self.params[name].value for name in ("w1", "b1", "w2", "b2"))
        return np.asarray(np.frompyfunc(sp.Max, 2, 1)(h @ w1 + b1, 0) @ w2 + b2)

    def norm(self, place: int, x: Raw) -> Raw:
        """LayerNorm with the weights of this place."""
        weight, bias = (self.params[f"norm{place}_{kind}"].value for kind in ("weight", "bias"))
        return normalised(x, weight, bias, self.eps)

    def in_full(self, y: Any) -> list[Any]:
        """Entries with exponentials written out."""
        return [self.xp.in_full(e) for e in y.value.ravel()]


SYMBOLS = (
    Symbol(
        r"\mathbf{x}, \mathbf{y}", r"\mathbb{R}^{n \times d_{\text{model}}}", "the stream before and after, by rows"
    ),
    Symbol(r"\mathbf{h}_1, \mathbf{h}_3", r"\mathbb{R}^{n \times d_{\text{model}}}", "what the two branches read"),
    Symbol(r"\mathbf{h}_2", r"\mathbb{R}^{n \times d_{\text{model}}}", "the stream between the branches"),
    Symbol(r"\hat{\mathbf{x}}", r"\mathbb{R}^{d_{\text{model}}}", "a row, centred and divided by its deviation"),
    Symbol("W, J", r"\mathbb{R}^{d \times d}", "the Jacobians of a branch and of its layer norm"),
)
ASSUMPTIONS = (
    Assumption("the heads divide the columns", lambda a: a["params"]["w_q"].shape[1] % a["num_heads"] == 0),
    Assumption(
        "the branches keep the width",
        lambda a: a["x"].shape[-1] == a["params"]["w_o"].shape[1] == a["params"]["w2"].shape[1],
    ),
)


def parameters(rng: np.random.Generator, d: int, heads: int, groups: int, inner: int) -> dict[str, Any]:
    """Parameters of a block with heads of two features."""
    shapes: dict[str, tuple[int, ...]] = {
        "w_q": (d, 2 * heads),
        "w_k": (d, 2 * groups),
        "w_v": (d, 2 * groups),
        "w_o": (2 * heads, d),
    }
    shapes |= {"w1": (d, inner), "b1": (inner,), "w2": (inner, d), "b2": (d,)}
    names = ("norm1_weight", "norm1_bias", "norm2_weight", "norm2_bias")
    return {name: rng.normal(size=shape) for name, shape in (shapes | dict.fromkeys(names, (d,))).items()}


def sample(rng: np.random.Generator) -> dict[str, Any]:
    """Arguments of the attention sublayer."""
    heads, groups = ((2, 1), (2, 2), (4, 2))[int(rng.integers(3))]
    n, d = (int(size) for size in rng.integers(2, 5, size=2))
    params = parameters(rng, d, heads, groups, 3)
    return {"x": rng.normal(size=(2, n, d)), "params": params, "num_heads": heads, "num_kv_heads": groups}


def block_sample(rng: np.random.Generator) -> dict[str, Any]:
    """Arguments of the whole block."""
    return sample(rng) | {"activation": "gelu", "norm": ("pre", "post")[int(rng.integers(2))]}

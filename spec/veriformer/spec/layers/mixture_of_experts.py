"""Mixture of experts: each token asks a few of many networks (document 003, section 8)."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veriformer.spec import costs
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import EXPERTS, experts_flops, experts_parameters
from veriformer.spec.equation import Assumption, Equation, Identities, Scope, Source, Symbol, step
from veriformer.spec.layers.gelu import gelu, gelu_slope
from veriformer.spec.layers.linear import as_rows
from veriformer.spec.layers.silu import silu, silu_slope
from veriformer.spec.proofs.identities import entrywise
from veriformer.spec.proofs.indexed import dimension, index, symbolic_sum, vector
from veriformer.spec.proofs.provenance import computed, flat
from veriformer.spec.proofs.tower_arithmetic import TowerArithmetic
from veriformer.spec.scores.softmax import softmax

Chosen = NDArray[np.bool_]


def mixture_of_experts(
    xp: Any,
    x: Any,
    router: Any,
    w1: Any,
    b1: Any,
    w2: Any,
    b2: Any,
    *,
    top_k: int = 2,
    chosen: Chosen | None = None,
    renormalised: bool = True,
) -> Any:
    """Σ_e p_e E_e(x) over the chosen experts e, with p = softmax of their scores alone.

    Not renormalised, p is the softmax of the scores of all experts, of which those chosen have a share.

    x [..., d], router [d, E], w1 [E, d, h], b1 [E, h], w2 [E, h, d_out], b2 [E, d_out]. The scores are x @ router, each
    expert is gelu(x w1 + b1) w2 + b2; where b1 and b2 are None it is SwiGLU, w1 [E, d, 2 h] having the gate before the
    value. chosen [..., E] says who is asked, by default the `top_k` best (`route`, which also tells where rounding may
    change the choice; what is bounded here is the sum over these experts).
    """
    rows, see, p = _gates(xp, x, router, top_k, chosen, renormalised)
    gates = p if renormalised else xp.where(see, p, 0)
    answers = _rows_of(xp, hidden_units(xp, _rows_of(xp, rows, w1, b1), gated=b1 is None), w2, b2)
    y = xp.sum(answers * _per_expert(xp, gates), axis=0)
    return xp.reshape(y, (*x.shape[:-1], y.shape[-1]))


def mixture_of_experts_vjp(
    xp: Any,
    x: Any,
    router: Any,
    w1: Any,
    b1: Any,
    w2: Any,
    b2: Any,
    g: Any,
    *,
    top_k: int = 2,
    chosen: Chosen | None = None,
    renormalised: bool = True,
) -> tuple[Any, Any, Any, Any, Any, Any]:
    """(dx, drouter, dw1, db1, dw2, db2); through the choice itself there is no gradient, and none of biases that are
    None."""
    rows, g = as_rows(xp, x), as_rows(xp, g)
    _, see, p = _gates(xp, x, router, top_k, chosen, renormalised)
    gates = p if renormalised else xp.where(see, p, 0)
    z = _rows_of(xp, rows, w1, b1)
    h = hidden_units(xp, z, gated=b1 is None)
    answers = _rows_of(xp, h, w2, b2)
    dp = xp.swapaxes(xp.sum(answers * g, axis=-1), 0, 1)
    total = xp.sum(gates * dp, axis=-1, keepdims=True)
    ds = xp.where(see, gates * (dp - total), 0) if renormalised else gates * dp - p * total
    dy = _per_expert(xp, gates) * g
    dz = through_units(xp, z, xp.matmul(dy, xp.swapaxes(w2, 1, 2)), gated=b1 is None)
    dx = of_all_experts(xp, dz, w1) + xp.matmul(ds, xp.swapaxes(router, 0, 1))
    columns = xp.swapaxes(rows, 0, 1)
    db1, db2 = (None, None) if b1 is None else (xp.sum(dz, axis=1), xp.sum(dy, axis=1))
    weights = xp.matmul(columns, dz), db1, xp.matmul(xp.swapaxes(h, 1, 2), dy), db2
    return (xp.reshape(dx, x.shape), xp.matmul(columns, ds), *weights)


def hidden_units(xp: Any, z: Any, *, gated: bool) -> Any:
    """Return GELU(z), z [E, N, h]; where gated, SiLU of the first half of h times the second."""
    if not gated:
        return gelu(xp, z)
    f = z.shape[-1] // 2
    return silu(xp, z[..., :f]) * z[..., f:]


def through_units(xp: Any, z: Any, dh: Any, *, gated: bool) -> Any:
    """Return dz of dh, back through `hidden_units`."""
    if not gated:
        return dh * gelu_slope(xp, z)
    f = z.shape[-1] // 2
    gate, value = z[..., :f], z[..., f:]
    return xp.concat([dh * value * silu_slope(xp, gate), dh * silu(xp, gate)], axis=-1)


def of_all_experts(xp: Any, dz: Any, w1: Any) -> Any:
    """Σ_e dz_e W1_eᵀ [N, d] of dz [E, N, h]: one sum over the hidden units of all experts."""
    experts, d, h = w1.shape
    side_by_side = xp.reshape(xp.swapaxes(dz, 0, 1), (dz.shape[1], experts * h))
    return xp.matmul(side_by_side, xp.reshape(xp.swapaxes(w1, 1, 2), (experts * h, d)))


def route(xp: Any, x: Any, router: Any, top_k: int) -> tuple[Chosen, NDArray[np.bool_]]:
    """The `top_k` experts with the highest scores, [..., E], ties to the lower; and, [...], whether rounding spares it.

    Symbols cannot be compared: a choice over them must be given.
    """
    scores = xp.matmul(x, router)
    value, error = scores.value, getattr(scores, "error", np.zeros(scores.shape))
    order = np.argsort(-value, axis=-1, kind="stable")
    chosen = np.zeros(scores.shape, dtype=bool)
    np.put_along_axis(chosen, order[..., :top_k], True, axis=-1)
    low = np.where(chosen, value - error, np.inf).min(axis=-1)
    high = np.where(chosen, -np.inf, value + error).max(axis=-1)
    return chosen, np.asarray(low > high, dtype=bool)


def _gates(
    xp: Any, x: Any, router: Any, top_k: int, chosen: Chosen | None, renormalised: bool
) -> tuple[Any, Chosen, Any]:
    """The rows of x, who is asked of each, and the softmax of the scores of these alone, or of all."""
    rows = as_rows(xp, x)
    see = route(xp, rows, router, top_k)[0] if chosen is None else chosen.reshape(-1, chosen.shape[-1])
    scores = xp.matmul(rows, router)
    return rows, see, softmax(xp, xp.where(see, scores, -np.inf) if renormalised else scores)


def _rows_of(xp: Any, rows: Any, w: Any, b: Any) -> Any:
    """Return rows W_e + b_e of every expert; a bias of None is left out."""
    return xp.matmul(rows, w) if b is None else xp.matmul(rows, w) + _for_each_row(xp, b)


def _for_each_row(xp: Any, b: Any) -> Any:
    return xp.reshape(b, (b.shape[0], 1, b.shape[1]))


def _per_expert(xp: Any, gates: Any) -> Any:
    """[N, E] as [E, N, 1]."""
    return xp.reshape(xp.swapaxes(gates, 0, 1), (*gates.shape[::-1], 1))


class _Case:
    """n tokens of one feature before E experts of one hidden unit."""

    def __init__(self, n: int, experts: int, chosen: list[list[bool]]) -> None:
        self.xp = xp = TowerArithmetic()
        shapes = {"R": (1, experts), "W": (experts, 1, 1), "b": (experts, 1), "U": (experts, 1, 1), "c": (experts, 1)}
        self.arguments = [xp.symbols("x", n, 1), *(xp.symbols(name, *shape) for name, shape in shapes.items())]
        self.g, self.chosen = xp.symbols("g", n, 1), np.array(chosen)

    def output(self, *, renormalised: bool = True) -> Any:
        return mixture_of_experts(self.xp, *self.arguments, chosen=self.chosen, renormalised=renormalised)

    def printed(self, i: int, *, renormalised: bool = True) -> Any:
        """Token i, expert by expert; the weights are divided by their sum, or by that of all experts."""
        x, router, w1, b1, w2, b2 = (a.value for a in self.arguments)
        asked = [e for e in range(len(w1)) if self.chosen[i, e]]
        weights = [sp.exp(x[i, 0] * router[0, e]) for e in range(len(w1))]
        z = {e: x[i, 0] * w1[e, 0, 0] + b1[e, 0] for e in asked}
        said = [weights[e] * (u * (1 + sp.erf(u / sp.sqrt(2))) / 2 * w2[e, 0, 0] + b2[e, 0]) for e, u in z.items()]
        return sum(said) / sum(weights[e] for e in (asked if renormalised else range(len(w1))))


@step(
    scope=Scope.ENUMERATED, detail="3 experts of one hidden unit, two tokens, choices of one to three, both softmaxes"
)
def _formula() -> Identities:
    """The formula is the sum over the chosen experts."""
    choices = [[True, False, True], [False, True, False]], [[True, True, True], [False, True, True]]
    for chosen, renormalised in product(choices, (True, False)):
        case = _Case(2, 3, chosen)
        output = computed(case.output, renormalised=renormalised).each(case.xp.in_full)
        yield from entrywise(output, [case.printed(i, renormalised=renormalised) for i in range(2)])


@step()
def _renormalised() -> Identities:
    """Softmax over all experts, divided by what the chosen ones have of it, is softmax over the chosen alone; and it
    sums to one.
    """
    # Chosen are the first k of k + m experts.
    (e, j), z = index("e j"), vector("z")
    k, m = dimension("k"), dimension("m")
    everyone = symbolic_sum(sp.exp(z[j]), j, k) + symbolic_sum(sp.exp(z[j + k]), j, m)
    full = sp.exp(z[e]) / everyone
    yield full / symbolic_sum(full.subs(e, j), j, k), sp.exp(z[e]) / symbolic_sum(sp.exp(z[j]), j, k)
    yield symbolic_sum(sp.exp(z[e]) / symbolic_sum(sp.exp(z[j]), j, k), e, k), 1


@step()
def _capacity() -> Identities:
    r"""E experts have E times the weights of one (each with its column of the router); asking k costs k times one, and
    $\frac{E}{8d}$ of one for the router, for $f = 4d$: capacity grows with E, the work hardly.
    """
    n, d, f, o, e, k = (costs.symbol(name) for name in ("N", "d", "f", "o", "E", "k"))
    one = experts_parameters().subs(e, 1) - d
    yield experts_parameters(), e * (one + d)
    dense = 2 * n * f * (d + o)
    yield experts_flops() / dense, k + d * e / (f * (d + o))
    yield (experts_flops() / dense).subs({f: 4 * d, o: d}, simultaneous=True), k + e / (8 * d)


@step(scope=Scope.ENUMERATED, detail="one feature, one hidden unit, one output")
def _one_expert() -> Identities:
    """A single expert is the feed-forward network, whatever the router says."""
    case = _Case(1, 1, [[True]])
    x, _, w1, b1, w2, b2 = (a.value.ravel()[0] for a in case.arguments)
    z = x * w1 + b1
    yield computed(case.output).entry(0, 0), z * (1 + sp.erf(z / sp.sqrt(2))) / 2 * w2 + b2


@step(scope=Scope.ENUMERATED, detail="2 and 3 experts of one hidden unit, choices of one and two, both softmaxes")
def _vjp() -> Identities:
    """For a choice that stays, the vector-Jacobian product is the formula's derivative: experts that are not asked, and
    their scores, have no gradient.
    """
    cases = (2, 2, [[True, False], [True, True]]), (1, 3, [[True, False, True]])
    for sizes, renormalised in product(cases, (True, False)):
        case = _Case(*sizes)
        y = case.output(renormalised=renormalised)
        ours = mixture_of_experts_vjp(
            case.xp, *(*case.arguments, case.g), chosen=case.chosen, renormalised=renormalised
        )
        for argument, gradient in zip(case.arguments, ours, strict=True):
            true = computed(case.xp.gradient, y, case.g, argument)
            yield from entrywise([case.xp.in_full(e) for e in flat(gradient)], true.each(case.xp.in_full))


@step(scope=Scope.ENUMERATED, detail="2 experts of one gated unit, choices of one and two")
def _gated() -> Identities:
    """With gated experts the formula is the sum of theirs, and the vector-Jacobian product its derivative."""
    xp = TowerArithmetic()
    shapes = {"x": (1, 1), "R": (1, 2), "W": (2, 1, 2), "U": (2, 1, 1)}
    x, router, w1, w2 = (xp.symbols(name, *shape) for name, shape in shapes.items())
    g, arguments = xp.symbols("g", 1, 1), (x, router, w1, None, w2, None)
    for asked in ([True, False], [True, True]):
        chosen = np.array([asked])
        y = mixture_of_experts(xp, *arguments, chosen=chosen)
        z = [x.value[0, 0] * w1.value[e, 0] for e in range(2)]
        said = [gate / (1 + sp.exp(-gate)) * value * w2.value[e, 0, 0] for e, (gate, value) in enumerate(z)]
        weights = [sp.exp(x.value[0, 0] * router.value[0, e]) * int(asked[e]) for e in range(2)]
        printed = sum(p * one for p, one in zip(weights, said, strict=True)) / sum(weights)
        yield from entrywise(xp.in_full(flat(y)[0]), printed)
        ours = mixture_of_experts_vjp(xp, *arguments, g, chosen=chosen)
        for argument, gradient in ((one, two) for one, two in zip(arguments, ours, strict=True) if one is not None):
            true = computed(xp.gradient, y, g, argument)
            yield from entrywise([xp.in_full(e) for e in flat(gradient)], true.each(xp.in_full))


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    d, h, d_out = (int(x) for x in rng.integers(1, 4, size=3))
    experts = int(rng.integers(1, 5))
    shapes = {"x": (2, 3, d), "router": (d, experts), "w1": (experts, d, h), "b1": (experts, h)}
    shapes |= {"w2": (experts, h, d_out), "b2": (experts, d_out)}
    return {**{name: rng.normal(size=s) for name, s in shapes.items()}, "top_k": int(rng.integers(1, experts + 1))}


EQUATIONS = (
    Equation(
        slug="mixture-of-experts",
        number=None,
        title="Mixture of experts",
        statement=r"y = \sum_{e \in T} p_e \, \text{FFN}_e(x), \quad p = \text{softmax}_T(x R), \quad T = "
        r"\text{top}_k(x R)",
        sources=(Source("003", "8", 705), Source("003", "8", 708)),
        symbols=(
            Symbol("R", r"\mathbb{R}^{d \times E}", "the router"),
            Symbol("T", r"\{1, \ldots, E\}", "the k experts with the highest scores"),
            Symbol(r"\text{FFN}_e", r"\mathbb{R}^d \to \mathbb{R}^o", "expert e, a network of two layers with GELU"),
        ),
        assumptions=(
            Assumption("no more experts are asked than there are", lambda a: a["top_k"] <= a["router"].shape[1]),
            Assumption("at least one is asked", lambda a: a["top_k"] >= 1),
            Assumption("the router has a column for each expert", lambda a: a["router"].shape[1] == len(a["w1"])),
        ),
        sample=_sample,
        formula=mixture_of_experts,
        vjp=mixture_of_experts_vjp,
        steps=(_renormalised, _capacity, _one_expert, _formula, _gated, _vjp),
        costs=EXPERTS,
    ),
)

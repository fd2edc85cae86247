"""T5's learned bias: one number for each bucket of relative positions (document 002, section 6.3)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import POSITIONS
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.positions.t5_relative_position_bucket import edges, t5_relative_position_bucket
from veriformer.spec.proofs.identities import inner_product
from veriformer.spec.proofs.indexed import positive
from veriformer.spec.proofs.tower_arithmetic import TowerArithmetic


def t5_bias(xp: Any, table: Any, n_q: int, n_k: int, *, bidirectional: bool = True, max_distance: int = 128) -> Any:
    """b_{rel(i, j)}, shape [H, n_q, n_k], from a table [num_buckets, H]; the last query stands at the last key."""
    bucket = _buckets(table, n_q, n_k, bidirectional, max_distance)
    return xp.reshape(xp.swapaxes(table, 0, 1)[:, bucket.ravel()], (table.shape[1], n_q, n_k))


def t5_bias_vjp(
    xp: Any, table: Any, n_q: int, n_k: int, g: Any, *, bidirectional: bool = True, max_distance: int = 128
) -> Any:
    """dtable: each bucket collects the cotangent of all pairs that read it, head by head."""
    bucket = _buckets(table, n_q, n_k, bidirectional, max_distance)
    reads = np.arange(table.shape[0])[:, None] == bucket.ravel()
    return xp.matmul(reads.astype(np.float64), xp.swapaxes(xp.reshape(g, (table.shape[1], n_q * n_k)), 0, 1))


def _buckets(table: Any, n_q: int, n_k: int, bidirectional: bool, max_distance: int) -> NDArray[np.int64]:
    relative = np.arange(n_k)[None, :] - np.arange(n_q)[:, None] - (n_k - n_q)
    options = {"bidirectional": bidirectional, "num_buckets": table.shape[0], "max_distance": max_distance}
    return t5_relative_position_bucket(relative, **options)


def _b(x: Any) -> Any:
    """The bucket before it is rounded down: e + L log(x/e) / log(M/e)."""
    e, m, many = positive("e M L")
    return e + many * (sp.log(x) - sp.log(e)) / sp.log(m / e)


@step()
def _joints() -> Identities:
    r"""$b(x) = e + L \log(x/e) / \log(M/e)$ goes on where the exact buckets end, $b(e) = e$, and reaches $e + L$, one
    more than the last bucket, at $x = M$: from there on it is cut off.
    """
    e, m, many = positive("e M L")
    yield _b(e), e
    yield _b(m), e + many


@step()
def _monotone() -> Identities:
    r"""$b(x + h) - b(x) = L \log(1 + h/x) / \log(M/e) > 0$ for $h > 0$: further is never a lower bucket, and the
    further, the less a step counts.
    """
    e, m, many, x, h = positive("e M L x h")
    yield _b(x + h) - _b(x), many * sp.log(1 + h / x) / sp.log(m / e)


@step()
def _ratios() -> Identities:
    r"""$b(cx) - b(x) = L \log c / \log(M/e)$: only the ratio of two distances counts."""
    e, m, many, x, c = positive("e M L x c")
    yield _b(c * x) - _b(x), many * sp.log(c) / sp.log(m / e)


@step()
def _edges() -> Identities:
    """Bucket $e + t$ begins at $x = e (M/e)^{t/L}$, that is where $x^L = M^t e^{L-t}$. In whole numbers this is exact;
    in floating point a logarithm that should be whole may fall short of it.
    """
    e, m, many, t = positive("e M L t")
    edge = e * (m / e) ** (t / many)
    yield _b(edge), e + t
    yield edge**many, sp.exp(t * sp.log(m) + (many - t) * sp.log(e))


_SETTINGS = ((16, 128), (32, 128), (4, 20), (5, 9), (2, 2), (3, 40))


def _counted(distance: int, buckets: int, max_distance: int) -> Any:
    """⌊b⌋ as the number of whole t ≥ 1 with t ≤ b − e, capped: M^t e^(L − t) ≤ x^L, in whole numbers."""
    exact = buckets // 2
    many = buckets - exact
    ones = [int(max_distance**t * exact ** (many - t) <= distance**many) for t in range(1, many)]
    below = [int(n <= distance) for n in range(1, exact + 1)]
    return sp.Add(sp.S.Zero, *below, *ones, evaluate=False)


@step(
    scope=Scope.ENUMERATED,
    detail="distances at and next to each edge, six pairs of bucket count and M, 32 and 128 included",
)
def _formula() -> Identities:
    r"""The formula computes $\lfloor b(x) \rfloor$, as the number of edges that x has reached, exact also where $b(x)$
    is whole, non-decreasing, and constant from M on.
    """
    for buckets, far in _SETTINGS:
        near = {x + k for x in (0, *edges(buckets, far), far, 3 * far) for k in (-1, 0, 1)}
        for x in sorted(n for n in near if n >= 0):
            found = t5_relative_position_bucket(-x, bidirectional=False, num_buckets=buckets, max_distance=far)
            yield sp.Integer(int(found)), _counted(x, buckets, far)


@step(scope=Scope.ENUMERATED, detail="4 buckets, 2 heads, 2 × 3 pairs in two directions and 3 × 2 in one")
def _vjp() -> Identities:
    """The vector-Jacobian product is the adjoint of the lookup, which is linear in the table: a bucket collects from
    all pairs that read it.
    """
    for bidirectional, n_q, n_k in ((True, 2, 3), (False, 3, 2)):
        xp = TowerArithmetic()
        table, g = xp.symbols("b", 4, 2), xp.symbols("g", 2, n_q, n_k)
        options: dict[str, Any] = {"bidirectional": bidirectional, "max_distance": 2 if bidirectional else 3}
        bias = t5_bias(xp, table, n_q, n_k, **options)
        yield inner_product(g, bias), inner_product(t5_bias_vjp(xp, table, n_q, n_k, g, **options), table)


@erratum(
    kind="imprecise",
    source=Source("002", "6.3", 879),
    printed=r"\text{a learned bias based on relative distance rel}(i,j)",
    corrected=r"\text{on relative position } j - i \text{, whose sign counts where both directions are "
    r"visible}",
)
def _distance_has_no_sign() -> Evidence:
    ahead, behind = (int(t5_relative_position_bucket(r)) for r in (1, -1))
    return Evidence(
        "a key one step ahead and one step behind, both at distance 1: same bias",
        True,
        ahead == behind,
        letters={"i": 2, "j": 5},
        values=(3,),
    )


@erratum(
    kind="convention",
    source=Source("002", "6.3", 876),
    printed=r"A_{ij} = \frac{q_i^T k_j}{\sqrt{d_k}} + b_{\text{rel}(i,j)}",
    corrected=r"A_{ij} = q_i^T k_j + b_{\text{rel}(i,j)} \text{ in the model of that name, whose first weights are "
    r"smaller by "
    r"the root instead}",
)
def _published_without_the_root() -> Evidence:
    score, d_k, bias = 6, 4, 1
    return Evidence(
        "d_k = 4, q·k = 6, b = 1",
        score / sp.sqrt(d_k) + bias,
        sp.Integer(score + bias),
        letters={
            "A": [[0, score + bias]],
            "q": lambda i: np.array([[i + 1], [i]]),
            "k": lambda j: np.array([[j], [j]]),
            "b": lambda r: bias,
            "rel": lambda i, j: j - i,
            "i": 1,
            "j": 2,
        },
    )


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    table = rng.normal(size=(2 * int(rng.integers(2, 9)), int(rng.integers(1, 4))))
    lengths = {"n_q": int(rng.integers(1, 30)), "n_k": int(rng.integers(1, 30))}
    return {"table": table, **lengths, "bidirectional": bool(rng.integers(2)), "max_distance": int(rng.integers(9, 20))}


def _exact(a: Any) -> int:
    """Return the number of distances that have a bucket of their own."""
    return int(a["table"].shape[0] // (4 if a["bidirectional"] else 2))


EQUATIONS = (
    Equation(
        slug="t5-bias",
        number=None,
        title="T5's relative position bias",
        statement=r"A_{ij} = \frac{q_i^T k_j}{\sqrt{d_k}} + b_{\text{rel}(i,j)}",
        sources=(Source("002", "6.3", 876),),
        symbols=(
            Symbol("b", r"\mathbb{R}^{N \times H}", "the learned bias of each of N buckets, for each head"),
            Symbol(r"\text{rel}(i,j)", r"\{0, \ldots, N - 1\}", "the bucket of the relative position j − i"),
            Symbol("e", r"\mathbb{N}", "how many distances have a bucket of their own"),
            Symbol("L", r"\mathbb{N}", "how many buckets the further distances share"),
            Symbol("M", r"\mathbb{N}", "the distance from which on all share the last bucket", "more than e"),
        ),
        assumptions=(
            Assumption("each direction has at least two buckets", lambda a: _exact(a) >= 1),
            Assumption("in two directions they share evenly", lambda a: a["table"].shape[0] % 2 == 0),
            Assumption("the largest distance is beyond the exact ones", lambda a: a["max_distance"] > _exact(a)),
        ),
        sample=_sample,
        formula=t5_bias,
        vjp=t5_bias_vjp,
        steps=(_joints, _monotone, _ratios, _edges, _formula, _vjp),
        costs=POSITIONS["t5"],
        errata=(_distance_has_no_sign, _published_without_the_root),
    ),
)

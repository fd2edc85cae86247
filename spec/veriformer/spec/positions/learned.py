"""Positions added to embeddings: one learned row per position (document 003, section 6)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.arithmetic.any_size import counting
from veriformer.spec.arithmetic.exact_inputs import unbroadcast
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import POSITIONS
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.proofs.any_length import AnyLength, entry, whole_numbers
from veriformer.spec.proofs.indexed import delta, dimension, index, symbolic_sum, vector, whole
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.pullbacks import pullbacks, vjp_step


def add_positions(xp: Any, x: Any, table: Any, positions: NDArray[np.int64]) -> Any:
    """X + PE[positions] for x [..., n, d], a table [n_max, d] and positions [n] or [..., n], each below n_max."""
    return x + table[positions]


def add_positions_vjp(xp: Any, x: Any, table: Any, positions: NDArray[np.int64], g: Any) -> tuple[Any, Any]:
    """(dx, dtable): both get the whole cotangent, a row of the table that of every token at its position."""
    rows = unbroadcast(xp, g, (*positions.shape, g.shape[-1]))
    rows = xp.reshape(rows, (positions.size, g.shape[-1]))
    reads = counting(table.shape[0])[:, None] == positions.ravel()
    return unbroadcast(xp, g, x.shape), xp.matmul(reads.astype(np.float64), rows)


@step()
def _lookup() -> Identities:
    r"""Taking a row is multiplying by a one-hot vector: $PE[i] = \sum_p \delta_{pi} PE[p]$. Beyond $n_{\max}$ there is
    no such vector: a learned table says nothing of longer texts.
    """
    (i, p, a), table = index("i p a"), vector("P")
    yield symbolic_sum(delta(p, i) * table[p, a], p, dimension("N")), table[i, a]


@step()
def _gradient() -> Identities:
    """Token and position get the same cotangent; a row of the table sums it over the batch, and is learned from texts
    that reach that far only.
    """
    (b, r, c, p, a), g, x, table = index("b r c p a"), vector("g"), vector("x"), vector("P")
    row = symbolic_sum(g[b, r, c] * (x[b, r, c] + table[r, c]), c, dimension("d"))
    loss = symbolic_sum(symbolic_sum(row, r, dimension("n")), b, dimension("B"))
    yield sp.diff(loss, table[p, a]), symbolic_sum(g[b, p, a], b, dimension("B"))
    t = index("t")
    yield sp.diff(loss, x[t, p, a]), g[t, p, a]


@step()
def _four_terms() -> Identities:
    """The dot product of two such vectors is content with content, position with position, and the two mixtures."""
    (i, j, c), d, x, table = index("i j c"), dimension("d"), vector("x"), vector("P")
    score = symbolic_sum((x[i, c] + table[i, c]) * (x[j, c] + table[j, c]), c, d)
    content, position = symbolic_sum(x[i, c] * x[j, c], c, d), symbolic_sum(table[i, c] * table[j, c], c, d)
    yield (
        score,
        content + position + symbolic_sum(x[i, c] * table[j, c], c, d) + symbolic_sum(table[i, c] * x[j, c], c, d),
    )


@step(scope=Scope.ENUMERATED, detail="the four features that are printed")
def _worked() -> Identities:
    r"""The worked example: "The" at position 0 has $[0.11, -0.28, 0.69, 0.23, \ldots]$."""
    token, position = ("0.1", "-0.3", "0.7", "0.2"), ("0.01", "0.02", "-0.01", "0.03")
    printed = ("0.11", "-0.28", "0.69", "0.23")
    for a, b, c in zip(token, position, printed, strict=True):
        yield sp.Add(sp.Rational(a), sp.Rational(b), evaluate=False), sp.Rational(c)


@step()
def _any_length() -> Identities:
    """The formula computes the statement, for all sizes: position 0 reads the first row."""
    xp, (b, t, a) = AnyLength(), index("b t a")
    texts, n, longest, d = map(dimension, "BnNd")
    x, table, positions = vector("x"), vector("P"), whole("p")
    added = computed(
        add_positions, xp, xp.array("x", texts, n, d), xp.array("P", longest, d), whole_numbers(positions, n)
    )
    yield added.then(entry(b, t, a)), x[b, t, a] + table[positions[t] + 1, a]


_any_vjp = vjp_step(
    lambda: pullbacks(add_positions, add_positions_vjp, {"x": "B n d", "P": "N d", "p": whole_numbers(whole("p"), "n")})
)


@erratum(
    kind="imprecise",
    source=Source("003", "3, Position Encoding Solution", 123),
    printed=r"\text{ensuring the model can distinguish between different positions}",
    corrected=r"\text{for one and the same token, if rows differ; another token may make up for the "
    r"difference}",
)
def _same_input() -> Evidence:
    xp = Symbolic()
    table, token = xp.asarray([[0, 0], [1, 2]]), xp.asarray([[5, 5], [4, 3]])
    rows = add_positions(xp, token, table, np.arange(2)).value
    return Evidence(
        "PE = ((0, 0), (1, 2)), embeddings (5, 5) and (4, 3): are the inputs of positions 0 and 1 different",
        True,
        bool((rows[0] != rows[1]).any()),
    )


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    n, d = int(rng.integers(1, 5)), int(rng.integers(1, 5))
    table = rng.normal(size=(n + int(rng.integers(0, 3)), d))
    return {"x": rng.normal(size=(2, n, d)), "table": table, "positions": np.arange(n)}


EQUATIONS = (
    Equation(
        slug="learned-positions",
        number=None,
        title="Positions that are added",
        statement=r"X = X_{\text{tok}} + X_{\text{pos}}, \quad X_{\text{pos}}[i] = PE[i]",
        sources=(
            Source("003", "3, Position Encoding Solution", 119),
            Source("003", "6, Embedding Computation Pipeline", 396),
            Source("003", "6, Mathematical Formulation", 425),
            Source("003", "6, Mathematical Formulation", 442),
        ),
        symbols=(
            Symbol(r"X_{\text{tok}}", r"\mathbb{R}^{n \times d_{\text{model}}}", "the embeddings of n tokens"),
            Symbol(
                "PE", r"\mathbb{R}^{n_{\max} \times d_{\text{model}}}", "one row per position, learned or sinusoidal"
            ),
        ),
        assumptions=(
            Assumption("every position has a row", lambda a: bool((a["positions"] < a["table"].shape[0]).all())),
            Assumption("rows are as wide as embeddings", lambda a: a["table"].shape[1] == a["x"].shape[-1]),
        ),
        sample=_sample,
        formula=add_positions,
        vjp=add_positions_vjp,
        steps=(_lookup, _gradient, _four_terms, _worked, _any_length, _any_vjp),
        costs=POSITIONS["learned"],
        errata=(_same_input,),
    ),
)

"""The sinusoidal encoding of absolute positions (equations 28 and 29)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.arithmetic.any_size import counting
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import POSITIONS
from veriformer.spec.equation import Assumption, Equation, Identities, Scope, Source, Symbol, step
from veriformer.spec.positions.angles import cosines_and_sines
from veriformer.spec.proofs.any_length import AnyLength, entry, place
from veriformer.spec.proofs.complex_exponentials import as_exponentials, rotated
from veriformer.spec.proofs.indexed import dimension, index, positive, real, symbolic_sum, vector
from veriformer.spec.proofs.provenance import Computed, computed


def sinusoidal_encoding(xp: Any, num_positions: int, d_model: int, *, base: Any = 10000.0) -> Any:
    """PE[p, 2i] = sin(p θ_i) and PE[p, 2i + 1] = cos(p θ_i) with θ_i = base^(−2i / d_model) (equations 28, 29).

    Shape [num_positions, d_model]. Of an odd width the last feature is a sine without its cosine.
    """
    cos, sin = cosines_and_sines(xp, counting(num_positions), d_model, base=base)
    both = xp.stack([sin, cos], axis=-1)
    return xp.reshape(both, (num_positions, 2 * cos.shape[-1]))[:, :d_model]


# In the proofs for all widths: w holds the frequencies of any number m = d / 2 of pairs, whatever they are.


def _inner(p: Any, q: Any) -> Any:
    """PE_p · PE_q."""
    i, w = sp.Dummy("i", integer=True), vector("w")
    sines = as_exponentials(sp.sin(p * w[i])) * as_exponentials(sp.sin(q * w[i]))
    return symbolic_sum(
        sines + as_exponentials(sp.cos(p * w[i])) * as_exponentials(sp.cos(q * w[i])), i, dimension("m")
    )


def _sum_of(f: Any, p: Any) -> Any:
    i, w = sp.Dummy("i", integer=True), vector("w")
    return symbolic_sum(as_exponentials(f(p * w[i])), i, dimension("m"))


@step(scope=Scope.ENUMERATED, detail="d = 2, 4, 6, positions 0 to 2, every base")
def _turns() -> Identities:
    r"""A pair of features is one complex number that turns at its own speed, $PE_{2i+1} + \mathrm{i} PE_{2i} =
    e^{\mathrm{i} \, pos \, \theta_i}$: what is computed are its imaginary part, $(e^{\mathrm{i}x} - e^{-\mathrm{i}x}) /
    2\mathrm{i}$ with $x = pos \, \theta_i$, and its real part.
    """
    base = positive("b")
    for d in (2, 4, 6):
        rows = sinusoidal_encoding(Symbolic(), 3, d, base=base).value
        for p, row in enumerate(rows):
            for i in range(d // 2):
                up, down = (sp.exp(sign * sp.I * p * base ** sp.Rational(-2 * i, d)) for sign in (1, -1))
                yield as_exponentials(row[2 * i]), up / (2 * sp.I) - down / (2 * sp.I)
                yield as_exponentials(row[2 * i + 1]), (up + down) / 2


def _frequency(i: Any) -> Any:
    return sp.exp(-2 * i / dimension("d") * sp.log(positive("b")))


def _any(feature: int) -> tuple[Computed, Any]:
    """The first or second feature of pair i at position p, and its angle as printed; both count from 0."""
    (p, i), m = index("p i"), dimension("m")
    table = computed(sinusoidal_encoding, AnyLength(), dimension("n"), 2 * m, base=positive("b"))
    return table.then(entry(p + 1, place(i + 1, feature, 2))), p / sp.exp(2 * i / (2 * m) * sp.log(positive("b")))


@step()
def _any_sine() -> Identities:
    """The formula computes the statement at feature 2i, for any number of positions, even width and base."""
    feature, angle = _any(1)
    yield feature, sp.sin(angle)


@step()
def _any_cosine() -> Identities:
    """The formula computes the statement at feature 2i + 1, for any number of positions, even width and base."""
    feature, angle = _any(2)
    yield feature, sp.cos(angle)


@step()
def _geometric() -> Identities:
    r"""$\theta_{i+1} = \theta_i \cdot 10000^{-2/d}$: from pair to pair the wavelength grows by one factor, from $2\pi$
    to $2\pi \cdot 10000^{1 - 2/d}$ positions.
    """
    i, d, b = index("i"), dimension("d"), positive("b")
    ratio = sp.exp(-2 / d * sp.log(b))
    yield _frequency(i + 1), _frequency(i) * ratio
    yield 2 * sp.pi / _frequency(d / 2 - 1), 2 * sp.pi * b * ratio


@step()
def _distinct() -> Identities:
    r"""The first pair alone tells all positions apart, as $\theta_0 = 1$: the squared distance is $4 \sin^2((p -
    q)/2)$, zero only where $p - q$ is a multiple of $2\pi$, and no whole number but 0 is one. So the encoding is
    absolute.
    """
    p, q = real("p q")
    apart = [as_exponentials(f(p)) - as_exponentials(f(q)) for f in (sp.sin, sp.cos)]
    yield sp.expand(apart[0] ** 2 + apart[1] ** 2), 4 * as_exponentials(sp.sin((p - q) / 2)) ** 2


def _shifted(p: Any, k: Any, w: Any) -> tuple[Any, Any]:
    """M(k) times the column (sin pw, cos pw): the pair (cos, sin) turned by the angle kw, in the other order."""
    c, s = rotated(as_exponentials(sp.cos(p * w)), as_exponentials(sp.sin(p * w)), k * w)
    return s, c


@step()
def _linear_shift() -> Identities:
    r"""$(\sin (p + k)\theta, \cos (p + k)\theta) = M(k) (\sin p\theta, \cos p\theta)$ with $M(k) = \begin{pmatrix} \cos
    k\theta & \sin k\theta \\ -\sin k\theta & \cos k\theta \end{pmatrix}$, in which p does not occur: one linear map
    moves every position by k.
    """
    p, k, w = real("p k w")
    s, c = _shifted(p, k, w)
    yield as_exponentials(sp.sin((p + k) * w)), s
    yield as_exponentials(sp.cos((p + k) * w)), c


def _matrix(k: Any) -> Any:
    c, s = as_exponentials(sp.cos(k * real("w"))), as_exponentials(sp.sin(k * real("w")))
    return sp.Matrix([[c, s], [-s, c]])


@step()
def _shift_group() -> Identities:
    """$M(j) M(k) = M(j + k)$ and $M(k) M(k)^T = 1$: moves add up, and are rotations."""
    j, k = real("j k")
    yield from zip(_matrix(j) * _matrix(k), _matrix(j + k), strict=True)
    yield from zip(_matrix(k) * _matrix(k).T, sp.eye(2), strict=True)


@step()
def _dot_product() -> Identities:
    r"""$PE_p \cdot PE_q = \sum_i \cos((p - q) \theta_i)$, for any width and any frequencies."""
    p, q = real("p q")
    yield _inner(p, q), _sum_of(sp.cos, p - q)


@step()
def _offset_only() -> Identities:
    """So it depends on $|p - q|$ only: moving both positions changes nothing, nor does exchanging them."""
    p, q, t = real("p q t")
    yield _inner(p + t, q + t), _inner(p, q)
    yield _inner(p, q), _inner(0, q - p)
    yield _inner(p, q), _inner(0, p - q)


@step()
def _norm() -> Identities:
    r"""$\|PE_p\|^2 = d / 2$ at every position."""
    p = real("p")
    yield _inner(p, p), dimension("m")


@step()
def _nearest() -> Identities:
    r"""$\|PE_p - PE_q\|^2 = 4 \sum_i \sin^2((p - q)\theta_i / 2) \ge 0$: the largest dot product is the one with
    itself.
    """
    p, q = real("p q")
    i, w = index("i"), vector("w")
    squares = symbolic_sum(as_exponentials(sp.sin((p - q) * w[i] / 2)) ** 2, i, dimension("m"))
    yield _inner(p, p) + _inner(q, q) - 2 * _inner(p, q), 4 * squares


@step(scope=Scope.ENUMERATED, detail="d = 2, 4, 6, positions 0 and 2, 1 and 3, every base")
def _formula() -> Identities:
    """The rows that the formula computes have these dot products."""
    base = positive("b")
    for d, rows in _tables(base):
        for (p, left), (q, right) in (((0, rows[0]), (2, rows[2])), ((1, rows[1]), (3, rows[3]))):
            offset = sum(sp.cos((q - p) * base ** sp.Rational(-2 * i, d)) for i in range(d // 2))
            yield as_exponentials(sum(a * b for a, b in zip(left, right, strict=True))), as_exponentials(offset)


def _tables(base: Any) -> Iterator[tuple[int, Any]]:
    return ((d, sinusoidal_encoding(Symbolic(), 4, d, base=base).value) for d in (2, 4, 6))


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    return {"num_positions": int(rng.integers(1, 9)), "d_model": 2 * int(rng.integers(1, 5)), "base": 10000.0}


_SYMBOLS = (
    Symbol("pos", r"\mathbb{N}_0", "a position, counted from 0"),
    Symbol("i", r"\{0, \ldots, d_{\text{model}} / 2 - 1\}", "the number of a pair of features"),
    Symbol(r"d_{\text{model}}", r"\mathbb{N}", "the width of the model", "even"),
    Symbol(r"\theta_i", r"(0, 1]", "the frequency of pair i: its base, 10000, to the power −2i over the width"),
)
_ASSUMPTIONS = (
    Assumption("the width is even, so that every sine has its cosine", lambda a: a["d_model"] % 2 == 0),
    Assumption("the base is positive", lambda a: a["base"] > 0),
)

EQUATIONS = (
    Equation(
        slug="sinusoidal-encoding",
        number="28",
        title="Sinusoidal encoding: the sines",
        statement=r"PE_{(pos,2i)} = \sin(pos/10000^{2i/d_{\text{model}}})",
        sources=(Source("002", "6.2", 800), Source("003", "6, Mathematical Formulation", 433)),
        symbols=_SYMBOLS,
        assumptions=_ASSUMPTIONS,
        sample=_sample,
        formula=sinusoidal_encoding,
        steps=(_any_sine, _turns, _geometric, _distinct),
        costs=POSITIONS["sinusoidal"],
    ),
    Equation(
        slug="sinusoidal-shift",
        number="29",
        title="Sinusoidal encoding: the cosines, and what the pairs are for",
        statement=r"PE_{(pos,2i+1)} = \cos(pos/10000^{2i/d_{\text{model}}})",
        sources=(Source("002", "6.2", 801), Source("003", "6, Mathematical Formulation", 434)),
        symbols=(*_SYMBOLS, Symbol("M(k)", r"\mathbb{R}^{2 \times 2}", "moves the encoding of a pair by k positions")),
        assumptions=_ASSUMPTIONS,
        sample=_sample,
        formula=sinusoidal_encoding,
        steps=(_any_cosine, _linear_shift, _shift_group, _dot_product, _offset_only, _norm, _nearest, _formula),
        costs=POSITIONS["sinusoidal"],
    ),
)

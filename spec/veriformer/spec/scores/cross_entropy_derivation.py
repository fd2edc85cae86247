"""Cross entropy over logits (equation 2, with the smoothing of 48)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from veriformer.spec import costs
from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.proofs.any_length import AnyLength, entry, whole_numbers
from veriformer.spec.proofs.indexed import (
    delta,
    dimension,
    index,
    positive,
    sum_over,
    symbolic_sum,
    vector,
    whole,
)
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.published import holds, rounds_to
from veriformer.spec.proofs.pullbacks import pullbacks
from veriformer.spec.proofs.tower_arithmetic import TowerArithmetic
from veriformer.spec.scores.cross_entropy import cross_entropy, cross_entropy_vjp
from veriformer.spec.scores.softmax import weight


def _loss(y: Any) -> Any:
    j = sp.Dummy("j", integer=True)
    return -symbolic_sum(y(j) * sp.log(weight(j)), j, dimension("n"))


@step()
def _general_gradient() -> Identities:
    r"""Through softmax: $\partial \mathcal{L} / \partial z_k = p_k \sum_j y_j - y_k$, whatever y."""
    y, (j, k) = vector("y"), index("j k")
    yield sp.diff(_loss(lambda i: y[i]), vector("z")[k]), weight(k) * symbolic_sum(y[j], j, dimension("n")) - y[k]


@step()
def _clean_gradient() -> Identities:
    r"""For a class index t the sum is one: $\nabla \mathcal{L} = \mathbf{p} - \mathbf{y}$."""
    k, t = index("k t")
    yield sp.diff(_loss(lambda i: delta(i, t)), vector("z")[k]), weight(k) - delta(k, t)


@step()
def _wrong_guess() -> Identities:
    r"""Where another class j is as probable as the true one t, or more, the gradient of the true logit is $\frac{1}{2}$
    at least: $1 - p_t - \frac{1}{2} = \frac{1}{2} (p_j - p_t) + \frac{1}{2} (\sum_i p_i - p_j - p_t)$, both not
    negative.
    """
    i, j, t = index("i j t")
    total = symbolic_sum(weight(i), i, dimension("n"))
    yield 1 - weight(t) - sp.Rational(1, 2), (weight(j) - weight(t)) / 2 + (total - weight(j) - weight(t)) / 2


@step()
def _one_hot() -> Identities:
    r"""For a class index t: $\mathcal{L} = \log \sum_j e^{z_j} - z_t$."""
    z, (j, t) = vector("z"), index("j t")
    yield _loss(lambda i: delta(i, t)), sp.log(symbolic_sum(sp.exp(z[j]), j, dimension("n"))) - z[t]


@step()
def _gradient_sums_to_zero() -> Identities:
    """The gradient's entries sum to zero: the loss does not change when all logits move together."""
    y, (j, k), n = vector("y"), index("j k"), dimension("n")
    yield symbolic_sum(weight(k) * symbolic_sum(y[j], j, n) - y[k], k, n), 0


@step()
def _smoothed() -> Identities:
    r"""Smoothed targets $(1 - \alpha) \delta_{it} + \alpha / n$ sum to one too, and the gradient is p less the smoothed
    target.
    """
    (k, t), n, a = index("k t"), dimension("n"), positive("alpha")
    loss = _loss(lambda i: (1 - a) * delta(i, t) + a / n)
    yield sp.diff(loss, vector("z")[k]), weight(k) - ((1 - a) * delta(k, t) + a / n)


def log_probability(t: Any, k: Any, size: Any) -> Any:
    """log p_k of row t of the logits, as printed, for any number of classes; a row may have several indices."""
    z, row = vector("z"), t if isinstance(t, tuple) else (t,)
    return sp.log(sp.exp(z[(*row, k)]) / sum_over(size, lambda j: sp.exp(z[(*row, j)])))


@step()
def _any_length() -> Identities:
    r"""The formula computes the statement, for any number of classes and the mean over any number T of rows: for
    probabilities, and for class indices k of which some are to be ignored ($k_t = -100$), both also smoothed (48).
    """
    xp, rows, size, a, y = AnyLength(), dimension("T"), dimension("V"), positive("alpha"), whole("k")
    z = xp.array("z", rows, size)

    def row(t: Any, target: Any) -> Any:
        return -sum_over(size, lambda i: target(i) * log_probability(t, i, size))

    given, probabilities = vector("y"), xp.array("y", rows, size)
    soft = sum_over(rows, lambda t: row(t, lambda i: given[t, i])) / rows
    yield computed(cross_entropy, xp, z, probabilities).then(entry()), soft
    smooth = sum_over(rows, lambda t: row(t, lambda i: (1 - a) * given[t, i] + a / size)) / rows
    yield computed(cross_entropy, xp, z, probabilities, label_smoothing=a).then(entry()), smooth

    def counts(t: Any) -> Any:
        return 1 - delta(y[t], -100)

    classes = whole_numbers(y, rows)
    total = sp.Max(sum_over(rows, counts), 1)
    hard = sum_over(rows, lambda t: counts(t) * row(t, lambda i: delta(i, y[t] + 1))) / total
    yield computed(cross_entropy, xp, z, classes).then(entry()), hard
    smooth = sum_over(rows, lambda t: counts(t) * row(t, lambda i: (1 - a) * delta(i, y[t] + 1) + a / size)) / total
    yield computed(cross_entropy, xp, z, classes, label_smoothing=a).then(entry()), smooth


@step(scope=Scope.ENUMERATED, detail="n ≤ 3, every m, class indices and probabilities")
def _stable_form() -> Identities:
    r"""The formula, $-\sum_i y_i ((z_i - m) - \log \sum_j e^{z_j - m})$, is the statement for every m."""
    for n in range(1, 4):
        xp = TowerArithmetic()
        z, y = xp.symbols("z", 1, n), xp.symbols("y", 1, n)
        log_p = [sp.log(sp.exp(e) / sum(map(sp.exp, z.value[0]))) for e in z.value[0]]
        yield xp.in_full(cross_entropy(xp, z, np.array([n - 1])).value[()]), -log_p[n - 1]
        printed = -sum(a * b for a, b in zip(y.value[0], log_p, strict=True))
        yield xp.in_full(cross_entropy(xp, z, y).value[()]), printed


@step()
def _any_vjp() -> Identities:
    """The vector-Jacobian product is the derivative that SymPy takes of the formula, for all sizes."""
    tokens = whole_numbers(whole("y", nonnegative=True), "T")
    for y in ("T V", tokens):
        yield from pullbacks(cross_entropy, cross_entropy_vjp, {"z": "T V", "y": y}, label_smoothing=positive("alpha"))


@erratum(
    kind="imprecise",
    source=Source("002", "2.2.4", 416),
    printed=r"\nabla \mathcal{L} = \mathbf{p} - \mathbf{y}",
    corrected=r"\nabla_{\mathbf{z}} \mathcal{L} = \mathbf{p} \sum_i y_i - \mathbf{y}, "
    r"\text{ which is } \mathbf{p} - \mathbf{y} \text{ where } \sum_i y_i = 1",
)
def _clean_gradient_needs_a_distribution() -> Evidence:
    z = sp.symbols("z_1 z_2", real=True)
    loss = -sum(sp.log(sp.exp(e) / (sp.exp(z[0]) + sp.exp(z[1]))) for e in z)
    actual = sp.simplify(sp.diff(loss, z[0]).subs({z[0]: sp.log(3), z[1]: 0}))
    share = np.array([sp.Rational(1, 3), sp.Rational(2, 3)])
    log_p = [e - sp.log(sp.exp(z[0]) + sp.exp(z[1])) for e in z]
    point = {z[0]: sp.log(3), z[1]: 0}
    slope = [sp.simplify(sp.diff(-sum(share * log_p), e).subs(point)) for e in z]
    weights = np.array([sp.Rational(3, 4), sp.Rational(1, 4)])
    return Evidence(
        "two labels y = (1, 1) and p = (3/4, 1/4), the first entry",
        sp.Rational(3, 4) - 1,
        actual,
        letters={"dL/dz": slope, "p": weights, "y": share, "n": 2},
        values=(slope,),
    )


@erratum(
    kind="convention",
    source=Source("002", "2.2.4", 403),
    printed=r"\mathcal{L} = -\sum_{i=1}^n y_i \log p_i",
    corrected=r"\mathcal{L} = -\sum_{i : y_i > 0} y_i \log p_i",
)
def _zero_times_log_zero() -> Evidence:
    share, half, xp = [sp.Rational(3, 4), sp.Rational(1, 4)], sp.Rational(1, 2), Symbolic()
    loss = cross_entropy(xp, xp.asarray([[0, 0]]), xp.asarray([share])).value[()]
    return Evidence(
        "y = (1, 0) and p = (1, 0)",
        -(1 * math.log(1) + 0 * -math.inf),
        0.0,
        letters={"L": loss, "n": 3, "y": [*share, 0], "p": [half, half, 0]},
    )


@erratum(
    kind="imprecise",
    source=Source("004", "2.2", 131),
    printed=r"\text{the average loss over all vocabulary entries is } -\sum_{i=1}^V y_{t,i} \log p_{t,i}",
    corrected=r"\text{the loss of one position is the sum } -\sum_{i=1}^V y_{t,i} \log p_{t,i}",
)
def _sum_not_average() -> Evidence:
    printed = sp.log(2)
    return Evidence(
        "V = 2, p = (1/2, 1/2), y = (1, 0), called an average over the vocabulary",
        printed / 2,
        printed,
        letters={"V": 2, "t": 1, "y": [[1, 0]], "p": [[sp.Rational(1, 2)] * 2]},
        values=(printed,),
    )


@erratum(
    kind="wrong",
    source=Source("004", "2.3", 176),
    printed=r"\text{Differentiate } \log p_{t,y_t} \text{: for the correct class, you get } p_{t,y_t} - 1 \text{; "
    r"for others, } "
    r"p_{t,k}",
    corrected=r"\text{of } -\log p_{t,y_t} \text{, the loss; of } \log p_{t,y_t} \text{ one gets } 1 - p_{t,y_t} "
    r"\text{ and } "
    r"-p_{t,k}",
)
def _sign_of_the_log() -> Evidence:
    z = sp.symbols("z_1 z_2", real=True)
    slope = sp.diff(sp.log(sp.exp(z[0]) / (sp.exp(z[0]) + sp.exp(z[1]))), z[0])
    actual = sp.simplify(slope.subs({z[0]: sp.log(3), z[1]: 0}))
    other = sp.simplify(sp.diff(z[0] - sp.log(sp.exp(z[0]) + sp.exp(z[1])), z[1]).subs({z[0]: sp.log(3), z[1]: 0}))
    return Evidence(
        "p = (3/4, 1/4), the derivative of log p_1 by z_1",
        sp.Rational(3, 4) - 1,
        actual,
        letters={"t": 1, "k": 2, "y": [1], "p": [[sp.Rational(3, 4), sp.Rational(1, 4)]]},
        values=(sp.log(sp.Rational(4, 3)), sp.log(sp.Rational(3, 4)), actual, other),
    )


@step(scope=Scope.NUMERIC, detail="exact numbers, rounded to 7 and 9 places")
def _printed() -> Identities:
    """For logits (5, 0.5) and the first class the printed probabilities, the loss 0.0110477 and the small gradient are
    right; p - 1 shows the rounding of p in fp32, in its sixth digit.
    """
    xp, target = Symbolic(), np.array([0])
    z = xp.asarray([[5, sp.Rational(1, 2)]])
    right, wrong = cross_entropy_vjp(xp, z, target, xp.asarray(1))[0].value[0]
    yield rounds_to(1 + right, "0.9890131")
    yield rounds_to(wrong, "0.010986943")
    yield rounds_to(cross_entropy(xp, z, target).value[()], "0.0110477")
    # fp32 numbers just below 1 are 2^-24 apart, and p - 1 keeps the error of p.
    yield holds(abs(right + sp.Rational("0.010986924171447754")) <= sp.Rational(1, 2**25))


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    n = int(rng.integers(2, 6))
    return {"logits": rng.normal(size=(2, n)) * 3, "target": rng.dirichlet(np.ones(n), size=2)}


EQUATIONS = (
    Equation(
        slug="cross-entropy",
        number="2",
        title="Cross entropy",
        statement=r"\mathcal{L} = -\sum_{i=1}^n y_i \log p_i",
        sources=(Source("002", "2.2.4", 403), Source("004", "2.2", 135)),
        symbols=(
            Symbol(r"\mathbf{p}", r"[0, 1]^n", "predicted probabilities, softmax of the logits z"),
            Symbol(r"\mathbf{y}", r"[0, 1]^n", "true probabilities", "sum to one; one-hot for a class index"),
        ),
        assumptions=(
            Assumption("the logits are real numbers", lambda a: bool(np.isfinite(a["logits"]).all())),
            Assumption("no true probability is negative", lambda a: bool((a["target"] >= 0).all())),
            Assumption(
                "the true probabilities sum to one",
                lambda a: bool((abs(a["target"].sum(-1) - 1) <= a["target"].shape[-1] * 2.0**-52).all()),
            ),
        ),
        sample=_sample,
        formula=cross_entropy,
        vjp=cross_entropy_vjp,
        steps=(
            _general_gradient,
            _clean_gradient,
            _wrong_guess,
            _gradient_sums_to_zero,
            _one_hot,
            _smoothed,
            _any_length,
            _stable_form,
            _any_vjp,
            _printed,
        ),
        costs=costs.lazily("cross_entropy"),
        errata=(_clean_gradient_needs_a_distribution, _zero_times_log_zero, _sum_not_average, _sign_of_the_log),
    ),
)

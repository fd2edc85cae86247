"""Label smoothing: targets that leave every class a share (equation 48)."""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.spec.arithmetic.any_size import as_indices, counting
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import elementwise
from veriformer.spec.equation import Assumption, Equation, Identities, Scope, Source, Symbol, step
from veriformer.spec.proofs.any_length import AnyLength, entry, whole_numbers
from veriformer.spec.proofs.indexed import delta, dimension, index, positive, real, symbolic_sum, vector, whole
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.tower_arithmetic import TowerArithmetic
from veriformer.spec.scores.cross_entropy import cross_entropy
from veriformer.spec.scores.softmax import weight


def smooth_labels(xp: Any, target: Any, num_classes: int, alpha: float) -> Any:
    """(1 − α) y + α / V for the one-hot y of each class index in target [...]: [..., V] (48)."""
    hit = as_indices(target)[..., None] == counting(num_classes)
    share = xp.asarray(alpha) / num_classes
    return xp.where(hit, share + (1 - xp.asarray(alpha)), xp.broadcast_to(share, hit.shape))


def _smoothed(i: Any, t: Any) -> Any:
    alpha = positive("alpha")
    return (1 - alpha) * delta(i, t) + alpha / dimension("n")


def _loss(y: Any) -> Any:
    j = sp.Dummy("j", integer=True)
    return -symbolic_sum(y(j) * sp.log(weight(j)), j, dimension("n"))


@step()
def _sums_to_one() -> Identities:
    r"""Smoothed targets sum to one again; the true class keeps $1 - \alpha \frac{V - 1}{V}$, since it has its part of
    the share too.
    """
    i, t, n = index("i"), index("t"), dimension("n")
    yield symbolic_sum(_smoothed(i, t), i, n), 1
    yield _smoothed(i, t).subs(i, t), 1 - positive("alpha") * (n - 1) / n


@step()
def _gradient() -> Identities:
    r"""The gradient is $p - y_{\text{smooth}}$, a mixture: $(1 - \alpha)$ times the plain gradient, and $\alpha$ times
    the pull towards even probabilities.
    """
    k, t, z = index("k"), index("t"), vector("z")
    smoothed = sp.diff(_loss(lambda i: _smoothed(i, t)), z[k])
    yield smoothed, weight(k) - _smoothed(k, t)
    hard = sp.diff(_loss(lambda i: delta(i, t)), z[k])
    alpha = positive("alpha")
    yield smoothed, (1 - alpha) * hard + alpha * (weight(k) - 1 / dimension("n"))


@step()
def _divergence() -> Identities:
    r"""So is the loss: $\mathcal{L} = (1 - \alpha) \mathcal{L}_{\text{plain}} + \alpha (KL(u \| p) + \log V)$ with $u =
    1/V$ for every class. Smoothing penalises what is far from uniform.
    """
    t, n, alpha = index("t"), dimension("n"), positive("alpha")
    j = sp.Dummy("j", integer=True)
    # KL(u | p) = Σ u (log u − log p) with u = 1/n.
    from_uniform = symbolic_sum((-sp.log(n) - sp.log(weight(j))) / n, j, n)
    plain = _loss(lambda i: delta(i, t))
    yield _loss(lambda i: _smoothed(i, t)), (1 - alpha) * plain + alpha * (from_uniform + sp.log(n))


@step()
def _optimum() -> Identities:
    r"""The gradient vanishes for logits that are equal but for the target's, higher by $\log(1 + V \frac{1 -
    \alpha}{\alpha})$: a finite gap, where plain cross entropy pulls without end. That is how it prevents
    overconfidence.
    """
    # All logits equal but that of the target, which is higher by the gap: e^gap = 1 + n (1 − α) / α.
    n, alpha = dimension("n"), positive("alpha")
    e = 1 + n * (1 - alpha) / alpha
    yield e / (e + n - 1), (1 - alpha) + alpha / n
    yield 1 / (e + n - 1), alpha / n


@step()
def _any_length() -> Identities:
    """The formula computes the statement, for any number of targets and of classes; class 0 is the first."""
    xp, (t, k), n, target = AnyLength(), index("t k"), dimension("n"), whole("c", nonnegative=True)
    y = computed(smooth_labels, xp, whole_numbers(target, dimension("T")), n, positive("alpha"))
    yield y.then(entry(t, k)), _smoothed(k, target[t] + 1)


@step(scope=Scope.ENUMERATED, detail="2 rows of V = 3, every α")
def _in_the_loss() -> Identities:
    """Cross entropy with smoothing is cross entropy of the smoothed targets."""
    xp, alpha = TowerArithmetic(), real("alpha")
    z, target = xp.symbols("z", 2, 3), np.array([2, 0])
    soft = cross_entropy(xp, z, smooth_labels(xp, target, 3, alpha))
    yield soft.value[()], cross_entropy(xp, z, target, label_smoothing=alpha).value[()]


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    classes = int(rng.integers(1, 6))
    return {
        "target": rng.integers(0, classes, size=(2, 3)),
        "num_classes": classes,
        "alpha": float(rng.uniform(0, 1)),
    }


EQUATIONS = (
    Equation(
        slug="label-smoothing",
        number="48",
        title="Label smoothing",
        statement=r"y_{\text{smooth}} = (1-\alpha) y_{\text{true}} + \frac{\alpha}{V} \mathbf{1}",
        sources=(Source("000", "11.4", 440), Source("001", "11.4", 581)),
        symbols=(
            Symbol(r"y_{\text{true}}", r"\{0, 1\}^V", "the one-hot target", "one at t"),
            Symbol(r"\alpha", "[0, 1]", "the share that all classes divide"),
            Symbol("V", r"\mathbb{N}", "the number of classes", "n in the steps"),
        ),
        assumptions=(
            Assumption("α is a probability", lambda a: 0 <= a["alpha"] <= 1),
            Assumption(
                "every target is a class",
                lambda a: bool((a["target"] >= 0).all() and (a["target"] < a["num_classes"]).all()),
            ),
        ),
        sample=_sample,
        formula=smooth_labels,
        steps=(_sums_to_one, _gradient, _divergence, _optimum, _any_length, _in_the_loss),
        costs=elementwise(2, arrays=1),
    ),
)

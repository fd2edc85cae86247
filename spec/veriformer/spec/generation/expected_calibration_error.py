"""Expected calibration error (documents 000 and 001, section 11.2)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import CALIBRATION
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.generation.choices import exact_values, highest
from veriformer.spec.proofs.indexed import dimension, index, real, symbolic_sum, vector
from veriformer.spec.proofs.provenance import computed


def expected_calibration_error(xp: Any, probs: Any, target: NDArray[np.int64], *, num_bins: int = 15) -> Any:
    """Σ_m |B_m|/n · |acc(B_m) − conf(B_m)|, a 0-d array, computed as Σ_m |Σ_{i ∈ B_m} (c_i − p_i)| / n.

    probs [..., V] and target [...] of n ≥ 1 samples. p_i is a row's largest probability, c_i is 1 where its index (the
    lowest of equals) is the target. Bin m is ((m − 1) / M, m / M]; the first also holds 0.
    """
    chosen = highest(probs)
    confidence = xp.reshape(xp.take_along(probs, chosen[..., None], -1), (chosen.size,))
    inside = _bins(xp, confidence, num_bins) == np.arange(num_bins)[:, None]
    surplus = (chosen == target).ravel().astype(np.float64) - confidence
    gaps = xp.sum(xp.where(inside, surplus, 0), axis=-1)
    return xp.sum(abs(gaps)) / chosen.size


def _bins(xp: Any, confidence: Any, num_bins: int) -> NDArray[np.int64]:
    """Return the bin of each confidence: the number of inner edges strictly below it."""
    inner = exact_values(xp.asarray(np.arange(1, num_bins) / num_bins))
    below = np.asarray(inner < exact_values(confidence)[:, None], dtype=bool)
    return np.asarray(below.sum(axis=-1), dtype=np.int64)


@step()
def _one_sum() -> Identities:
    r"""$\frac{b}{n} (\text{acc} - \text{conf}) = \frac{1}{n} \sum_{i=1}^b (c_i - p_i)$ for a bin of b samples: the size
    of a bin cancels, so nothing is divided by zero in an empty one.
    """
    hit, p, i, b, n = vector("c"), vector("p"), index("i"), dimension("b"), dimension("n")
    accuracy, confidence = symbolic_sum(hit[i], i, b) / b, symbolic_sum(p[i], i, b) / b
    yield b / n * (accuracy - confidence), symbolic_sum(hit[i] - p[i], i, b) / n


@step()
def _finer() -> Identities:
    r"""$(|a| + |b|)^2 - (a + b)^2 = 2 (|a| |b| - ab) \ge 0$: splitting a bin never lowers the error. It depends on the
    number of bins, and is comparable only where that is the same.
    """
    a, b = real("a b")
    yield sp.expand((abs(a) + abs(b)) ** 2) - (a + b) ** 2, 2 * (abs(a) * abs(b) - a * b)


@step()
def _one_bin() -> Identities:
    """With one bin it is the distance between accuracy and mean confidence."""
    hit, p, i, n = vector("c"), vector("p"), index("i"), dimension("n")
    yield n / n * symbolic_sum(hit[i] - p[i], i, n) / n, symbolic_sum(hit[i], i, n) / n - symbolic_sum(p[i], i, n) / n


# Confidence in tenths, and whether the guess was right.
_SAMPLES = ((0, 0), (1, 1), (5, 1), (6, 0), (7, 1), (9, 1), (10, 1))


def _two_classes(samples: tuple[tuple[int, int], ...]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    probs = np.array([[sp.Rational(p, 10), sp.S.Zero] for p, _ in samples], dtype=object)
    return probs, np.array([0 if hit else 1 for _, hit in samples])


def _printed(samples: tuple[tuple[int, int], ...], bins: int) -> Any:
    """As printed, bin by bin, with edges in whole numbers: 10 (m − 1) < 10 p M ≤ 10 m."""
    out = sp.S.Zero
    for m in range(1, bins + 1):
        held = [(p, hit) for p, hit in samples if 10 * (m - 1) < p * bins <= 10 * m or (m == 1 and p == 0)]
        if held:
            accuracy = sp.Rational(sum(hit for _, hit in held), len(held))
            confidence = sp.Rational(sum(p for p, _ in held), 10 * len(held))
            out += sp.Rational(len(held), len(samples)) * abs(accuracy - confidence)
    return out


@step(scope=Scope.ENUMERATED, detail="1 to 7 samples, on edges too, in 1, 2 and 4 bins")
def _formula() -> Identities:
    """The formula computes the statement, bins closed above, and the first at 0 as well."""
    xp = Symbolic()
    for bins in (1, 2, 4):
        for count in range(1, len(_SAMPLES) + 1):
            probs, target = _two_classes(_SAMPLES[-count:])
            found = computed(expected_calibration_error, xp, xp.asarray(probs), target, num_bins=bins)
            yield found, _printed(_SAMPLES[-count:], bins)


_CANCELLING = ((5, 1), (5, 1), (10, 1), (10, 0))


@erratum(
    kind="imprecise",
    source=Source("000", "11.2", 391),
    printed=r"\text{Measures how well predicted probabilities match actual outcomes}",
    corrected=r"\text{on average within each bin, of the largest probability: 0 does not mean calibrated}",
)
def _errors_cancel() -> Evidence:
    one, two = (_printed(_CANCELLING, bins) for bins in (1, 2))
    return Evidence("right twice at confidence 1/2, and once of twice at 1: the error in 1 bin, and in 2", one, two)


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    n = int(rng.integers(1, 9))
    return {
        "probs": rng.dirichlet(np.ones(3), size=n),
        "target": rng.integers(0, 3, size=n),
        "num_bins": int(rng.integers(1, 8)),
    }


EQUATIONS = (
    Equation(
        slug="calibration-error",
        number=None,
        title="Expected calibration error",
        statement=r"\text{ECE} = \sum_{m=1}^M \frac{|B_m|}{n} |\text{acc}(B_m) - \text{conf}(B_m)|",
        sources=(Source("000", "11.2", 393), Source("001", "11.2", 509)),
        symbols=(
            Symbol("B_m", r"\{1, \dots, n\}", "the samples whose confidence is in the m-th bin"),
            Symbol("M", r"\mathbb{N}", "the number of bins, each of width 1/M"),
            Symbol("c_i", r"\{0, 1\}", "whether the guess was right"),
            Symbol("p_i", "[0, 1]", "the confidence, the largest probability"),
        ),
        assumptions=(
            Assumption("there is a sample", lambda a: a["target"].size > 0),
            Assumption("probabilities are not negative", lambda a: bool((a["probs"] >= 0).all())),
        ),
        sample=_sample,
        formula=expected_calibration_error,
        steps=(_one_sum, _one_bin, _finer, _formula),
        costs=CALIBRATION,
        errata=(_errors_cancel,),
    ),
)

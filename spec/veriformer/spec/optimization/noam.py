"""The original Transformer schedule: warmup, then decay by the inverse square root (documents 000 and 001, 9.3)."""

from __future__ import annotations

from typing import Any

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import schedule_costs
from veriformer.spec.equation import Assumption, Equation, Identities, Source, Symbol, step
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.indexed import dimension, positive
from veriformer.spec.proofs.provenance import computed


def noam(xp: Any, step: int, *, d_model: int, warmup_steps: int) -> Any:
    """d^−½ · min(t^−½, t · T^−3/2) at step t ≥ 1, with T ≥ 1 steps of warmup."""
    t, warm = xp.asarray(step), xp.asarray(warmup_steps)
    rate = t / (warm * xp.sqrt(warm)) if step < warmup_steps else 1 / xp.sqrt(t)
    return rate / xp.sqrt(xp.asarray(d_model))


# In the proofs t = a² and T = b² are any positive numbers, written so that their roots are a and b.


def _printed(a: Any, b: Any) -> Any:
    return sp.Min(1 / a, a**2 / b**3) / sp.sqrt(positive("d"))


def _peak(b: Any) -> Any:
    return 1 / sp.sqrt(positive("d") * b**2)


@step()
def _rises() -> Identities:
    r"""For $t < T$ the second argument is the smaller: with the peak $p = (d T)^{-1/2}$ the rate is $p \, t / T$, a
    linear warmup.
    """
    a, slack = positive("a s")
    b = a + slack
    yield _printed(a, b), _peak(b) * a**2 / b**2


@step()
def _falls() -> Identities:
    r"""For $t > T$ it is the first: $p \sqrt{T / t}$, decay by the inverse square root."""
    b, slack = positive("b s")
    a = b + slack
    yield _printed(a, b), _peak(b) * b / a


@step()
def _combined() -> Identities:
    r"""So $\eta_t = p \cdot \min(t / T, 1) \cdot \min(\sqrt{T / t}, 1)$: warmup (10) to the largest rate p, times the
    decay. A warmup or a width four times as large halves p.
    """
    low, slack = positive("a s")
    high = low + slack
    for a, b in ((low, high), (high, low)):
        yield _printed(a, b), _peak(b) * sp.Min(a**2 / b**2, 1) * sp.Min(b / a, 1)


@step()
def _joint() -> Identities:
    r"""The two meet at p: before T the rate is short of p by $p / T$ per step, and after it by $\frac{p}{\sqrt{t}
    (\sqrt{t} + \sqrt{T})}$ per step after it. That is a kink: up with slope $p / T$, down with half of it.
    """
    # What is lost per step on the way from the joint: back by T − t steps, and on by t − T.
    a, slack = positive("a s")
    b = a + slack
    yield (_peak(b) - _printed(a, b)) / (b**2 - a**2), _peak(b) / b**2
    yield (_peak(a) - _printed(b, a)) / (b**2 - a**2), _peak(a) / (b * (a + b))


@step()
def _any_length() -> Identities:
    """The formula computes the smaller of the two, for every step before the end of warmup and every step after it."""
    xp, d, t, rest = AnyLength(), positive("d"), dimension("t"), dimension("r")
    for now, end, printed in (
        (t, t + rest, t * (t + rest) ** sp.Rational(-3, 2)),
        (t + rest, t, 1 / sp.sqrt(t + rest)),
    ):
        yield computed(noam, xp, now, d_model=d, warmup_steps=end).then(entry()), printed / sp.sqrt(d)
    # Which is the smaller: the squares of the two differ by a positive number for t < T, by a negative one after T.
    yield 1 / t - t**2 / (t + rest) ** 3, rest * (3 * t**2 + 3 * t * rest + rest**2) / (t * (t + rest) ** 3)
    yield 1 / (t + rest) - (t + rest) ** 2 / t**3, -rest * (3 * t**2 + 3 * t * rest + rest**2) / (t**3 * (t + rest))


EQUATIONS = (
    Equation(
        slug="noam",
        number=None,
        title="The original Transformer schedule",
        statement=r"\eta_t = d_{\text{model}}^{-0.5} \cdot \min(t^{-0.5}, t \cdot T_{\text{warmup}}^{-1.5})",
        sources=(Source("000", "9.3", 186), Source("001", "9.3", 230)),
        symbols=(
            Symbol("t", r"\mathbb{N}", "the step, counted from 1"),
            Symbol(r"T_{\text{warmup}}", r"\mathbb{N}", "the number of steps of warmup"),
            Symbol(r"d_{\text{model}}", r"\mathbb{N}", "model width"),
        ),
        assumptions=(
            Assumption("steps count from 1", lambda a: a["step"] >= 1),
            Assumption("there is at least one step of warmup", lambda a: a["warmup_steps"] >= 1),
        ),
        sample=lambda rng: {name: int(rng.integers(1, 20)) for name in ("step", "d_model", "warmup_steps")},
        formula=noam,
        steps=(_rises, _falls, _combined, _joint, _any_length),
        costs=schedule_costs(5),
    ),
)

"""Cosine decay of the learning rate, after a linear warmup (documents 000 and 001, section 9.3)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from mpmath import libmp

from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import schedule_costs
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.optimization.warmup import sample, warmup
from veriformer.spec.proofs.indexed import positive
from veriformer.spec.proofs.published import holds

# π to 1024 bits: a constant for any precision that is asked for.
_PI = Fraction(libmp.pi_fixed(1024), 1 << 1024)


def warmup_cosine(xp: Any, step: int, *, max_lr: Any, warmup_steps: int, total_steps: int) -> Any:
    """Warmup (10) up to T_w, then η_max · ½ (1 + cos(π (t − T_w) / (T − T_w))), and 0 from T on.

    T_w steps of warmup, T ≥ T_w steps in all; where they are equal the rate is 0 from there on.
    """
    if step < warmup_steps:
        return warmup(xp, step, max_lr=max_lr, warmup_steps=warmup_steps)
    if step >= total_steps:
        return xp.asarray(0)
    progress = Fraction(step - warmup_steps, total_steps - warmup_steps)
    return decay(xp, _PI * progress) * max_lr


def decay(xp: Any, angle: Any) -> Any:
    """½ (1 + cos x) for 0 ≤ x ≤ π: from 1 to 0."""
    return (1 + xp.cos(xp.asarray(angle))) * Fraction(1, 2)


def _printed(since: Any) -> Any:
    """The rate `since` steps after the warmup, of a decay over D steps, as printed."""
    return positive("eta") * sp.Rational(1, 2) * (1 + sp.cos(sp.expand(sp.pi * since / positive("D"))))


def _squared_sine(steps: Any) -> Any:
    """η sin²(π s / 2D) in exponentials, in which all such identities are rational."""
    return positive("eta") * (sp.sin(sp.pi * steps / (2 * positive("D"))) ** 2).rewrite(sp.exp)


@step()
def _ends() -> Identities:
    r"""s steps after its start the rate is $\eta_{\max} \sin^2 \frac{\pi s}{2D}$ short of the largest, and s steps
    before its end it is just that: it goes from $\eta_{\max}$ to 0.
    """
    s, d, eta = positive("s D eta")
    yield eta - _printed(s).rewrite(sp.exp), _squared_sine(s)
    yield _printed(d - s).rewrite(sp.exp), _squared_sine(s)


@step()
def _symmetric() -> Identities:
    r"""Half of it is left halfway, and the second half mirrors the first: on average the rate is $\eta_{\max} / 2$, as
    on a straight line.
    """
    s, d, eta = positive("s D eta")
    yield _printed(d / 2 - s) - eta / 2, eta / 2 - _printed(d / 2 + s)


@step()
def _slope() -> Identities:
    r"""Its slope is $-\frac{\pi}{2D} \eta_{\max} \sin \frac{\pi s}{D} \le 0$: it only falls, gently at both ends, and
    $\pi / 2$ times as steeply as a straight line in the middle, where $\eta'' = -(\pi / D)^2 (\eta - \eta_{\max} / 2)$
    changes its sign.
    """
    s, d, eta = positive("s D eta")
    rate = sp.diff(_printed(s), s)
    yield rate, -eta * sp.pi / (2 * d) * sp.sin(sp.pi * s / d)
    yield sp.diff(rate, s), -((sp.pi / d) ** 2) * (_printed(s) - eta / 2)


@step()
def _joint() -> Identities:
    r"""Warmup and decay meet at $\eta_{\max}$, but with a kink: per step the warmup gains $\eta_{\max} /
    T_{\text{warmup}}$ up to the joint, and after it the loss per step vanishes with s.
    """
    # s before the end of T steps of warmup, s after it.
    s, rest, eta = positive("s r eta")
    warm = eta * rest / (rest + s)
    yield (eta - warm) / s, eta / (rest + s)
    yield (eta - _printed(s).rewrite(sp.exp)) / s, _squared_sine(s) / s


@step(scope=Scope.ENUMERATED, detail="5 of 5 steps of a decay over D = 4")
def _formula() -> Identities:
    """The decay that is computed is the statement."""
    eta, xp = positive("eta"), Symbolic()
    for since in range(5):
        rate = eta * decay(xp, sp.pi * sp.Rational(since, 4)).value[()]
        yield rate, _printed(since).subs(positive("D"), 4)


@step(scope=Scope.NUMERIC, detail="50 digits of every step, of 3 of warmup, 5 of decay and 2 after the end")
def _whole_schedule() -> Identities:
    """The formula computes (10) before the end of the warmup, the statement up to the end of all steps, then 0."""
    eta, warm, total = positive("eta"), 3, 8
    for t in range(total + 2):
        rate = warmup_cosine(Symbolic(), t, max_lr=eta, warmup_steps=warm, total_steps=total).value[()]
        due = _printed(t - warm).subs(positive("D"), total - warm) if t < total else sp.S.Zero
        due = eta * sp.Rational(t, warm) if t < warm else due
        yield holds(abs(sp.N((rate - due) / eta, 60)) < sp.Float(10) ** -50)


@erratum(
    kind="imprecise",
    source=Source("000", "9.3", 179),
    printed=r"\eta_t = \eta_{\text{max}} \cdot 0.5 \left(1 + \cos\left(\pi \cdot \frac{t - "
    r"T_{\text{warmup}}}{T_{\text{total}} - T_{\text{warmup}}}\right)\right)",
    corrected=r"\text{for } T_{\text{warmup}} \le t \le T_{\text{total}} \text{; before, (10); after, } 0",
)
def _cosine_rises_again() -> Evidence:
    printed = _printed(2 * positive("D")).subs(positive("eta"), 1)
    rate = warmup_cosine(Symbolic(), 30, max_lr=1, warmup_steps=10, total_steps=20).value[()]
    return Evidence(
        "T_warmup = 10, T_total = 20, t = 30, in units of η_max",
        printed,
        rate,
        letters={"T_warmup": 10, "T_total": 20, "t": range(9, 22)},
        values=(lambda letters: 10 <= letters["t"] <= 20, rate),
    )


EQUATIONS = (
    Equation(
        slug="warmup-cosine",
        number=None,
        title="Cosine decay after warmup",
        statement=r"\eta_t = \eta_{\text{max}} \cdot 0.5 \left(1 + \cos\left(\pi \cdot \frac{t - T_{\text{warmup}}}"
        r"{T_{\text{total}} - T_{\text{warmup}}}\right)\right)",
        sources=(
            Source("000", "9.3", 169),
            Source("000", "9.3", 179),
            Source("001", "9.3", 207),
            Source("001", "9.3", 219),
        ),
        symbols=(
            Symbol(r"\eta_{\text{max}}", r"\mathbb{R}_{\ge 0}", "the rate at the end of the warmup"),
            Symbol(r"T_{\text{warmup}}", r"\mathbb{N}_0", "the number of steps of warmup (10)"),
            Symbol(r"T_{\text{total}}", r"\mathbb{N}", "the number of all steps", "more than those of the warmup"),
            Symbol("D", r"\mathbb{N}", r"$T_{\text{total}} - T_{\text{warmup}}$, the number of steps of decay"),
        ),
        assumptions=(
            Assumption("the warmup does not outlast the training", lambda a: a["warmup_steps"] <= a["total_steps"]),
            Assumption("the step is not negative", lambda a: a["step"] >= 0),
        ),
        sample=lambda rng: {**(drawn := sample(rng)), "warmup_steps": drawn["warmup_steps"] - 1},
        formula=warmup_cosine,
        steps=(_ends, _symmetric, _slope, _joint, _formula, _whole_schedule),
        costs=schedule_costs(9),
        errata=(_cosine_rises_again,),
    ),
)

"""Linear warmup of the learning rate (equation 10)."""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.arithmetic.any_size import ratio
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import schedule_costs
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Source, Symbol, erratum, step
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.indexed import dimension, index, positive, symbolic_sum
from veriformer.spec.proofs.provenance import computed


def warmup(xp: Any, step: int, *, max_lr: Any, warmup_steps: int) -> Any:
    """η_max · min(t / T, 1) at step t ≥ 0 (equation 10): 0 at t = 0, and η_max at once where T = 0."""
    return xp.asarray(max_lr) * (ratio(step, warmup_steps) if step < warmup_steps else 1)


def _printed(t: Any, warmup_steps: Any) -> Any:
    return positive("eta") * sp.Min(t / warmup_steps, 1)


@step()
def _rises() -> Identities:
    r"""For $t < T$ the rate is $\eta_{\max} t / T$: a straight line from 0."""
    # t < T, the slack between them written out.
    t, slack, eta = positive("t s eta")
    yield _printed(t, t + slack), eta * t / (t + slack)


@step()
def _stays() -> Identities:
    r"""From $t = T$ on it is $\eta_{\max}$."""
    warmup_steps, slack, eta = positive("T s eta")
    yield _printed(warmup_steps + slack, warmup_steps), eta


@step()
def _joint() -> Identities:
    r"""The two meet: s steps before T the rate is $\eta_{\max} s / T$ short of the largest, which vanishes with s."""
    # s before T the rate is still η s / T short: nothing, as s goes to 0.
    short, rest, eta = positive("s r eta")
    warmup_steps = short + rest
    yield eta - _printed(rest, warmup_steps), eta * short / warmup_steps


@step()
def _half_the_way() -> Identities:
    r"""The rates of steps 1 to T sum to $\eta_{\max} (T + 1) / 2$: warmup goes about half as far as the full rate
    would.
    """
    t, k, eta = dimension("T"), index("k"), positive("eta")
    yield symbolic_sum(eta * k / t, k, t), eta * (t + 1) / 2


@step()
def _any_length() -> Identities:
    """The formula computes the statement, for every step before the end of warmup and every step after it."""
    xp, t, rest, eta = AnyLength(), sp.Symbol("t", integer=True, nonnegative=True), dimension("r"), positive("eta")
    for now, end in ((t, t + rest), (rest + t, rest)):
        yield computed(warmup, xp, now, max_lr=eta, warmup_steps=end).then(entry()), _printed(now, end)


@erratum(
    kind="imprecise",
    source=Source("000", "9.3", 158),
    printed=r"\eta_t = \eta_{\text{max}} \cdot \min\left(\frac{t}{T_{\text{warmup}}}, 1\right)",
    corrected=r"\text{for } T_{\text{warmup}} > 0 \text{; without warmup } \eta_t = \eta_{\text{max}}",
)
def _no_warmup() -> Evidence:
    rate = warmup(Symbolic(), 1, max_lr=1, warmup_steps=1).value[()]
    return Evidence(
        "T_warmup = 0 at t = 0, in units of η_max",
        sp.S.Zero / sp.S.Zero,
        1,
        letters={"T_warmup": 1, "t": 1, "eta_t": rate, "eta_max": 1},
    )


def sample(rng: np.random.Generator) -> dict[str, Any]:
    """A step, and arguments of every schedule."""
    t, end = sorted(int(n) for n in rng.integers(1, 20, size=2))
    step = int(rng.integers(0, end + 3))
    return {"step": step, "max_lr": float(rng.uniform(0, 1)), "warmup_steps": t, "total_steps": end}


EQUATIONS = (
    Equation(
        slug="warmup",
        number="10",
        title="Linear warmup",
        statement=r"\eta_t = \eta_{\text{max}} \cdot \min\left(\frac{t}{T_{\text{warmup}}}, 1\right)",
        sources=(Source("000", "9.3", 158), Source("001", "9.3", 194)),
        symbols=(
            Symbol(r"\eta_t", r"\mathbb{R}_{\ge 0}", "the learning rate of step t"),
            Symbol(r"\eta_{\text{max}}", r"\mathbb{R}_{\ge 0}", "the largest rate"),
            Symbol("t", r"\mathbb{N}_0", "the step, counted from 0"),
            Symbol(r"T_{\text{warmup}}", r"\mathbb{N}", "the number of steps of warmup", "positive"),
        ),
        assumptions=(
            Assumption("there are steps of warmup", lambda a: a["warmup_steps"] > 0),
            Assumption("the step is not negative", lambda a: a["step"] >= 0),
        ),
        sample=lambda rng: {name: x for name, x in sample(rng).items() if name != "total_steps"},
        formula=warmup,
        steps=(_rises, _stays, _joint, _half_the_way, _any_length),
        costs=schedule_costs(2),
        errata=(_no_warmup,),
    ),
)

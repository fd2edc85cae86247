"""The worked example of gradient descent: f(x) = x² from x = 3 (document 002, section 2.1.1)."""

from __future__ import annotations

from typing import Any

from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.optimization.gradient_descent import gradient_descent
from veriformer.spec.proofs.indexed import dimension, positive, real
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.published import rounds_to


def descend_parabola(xp: Any, x: Any, *, lr: Any, steps: int) -> Any:
    """x after some steps of gradient descent on f(x) = x²."""
    for _ in range(steps):
        (x,) = gradient_descent(xp, [x], [x * 2], lr=lr)
    return x


def _position(k: int) -> Any:
    """x at the beginning of iteration k, exactly."""
    xp = Symbolic()
    return descend_parabola(xp, xp.asarray(3), lr=sp.Rational(1, 10), steps=k).value[()]


@step()
def _derivative() -> Identities:
    r"""The slope of the chord is $\frac{(x + h)^2 - x^2}{h} = 2x + h$; as $h \to 0$, $\frac{df}{dx} = 2x$."""
    x, h = real("x h")
    quotient = ((x + h) ** 2 - x**2) / h
    yield quotient, 2 * x + h
    yield sp.limit(quotient, h, 0), sp.diff(x**2, x)


@step()
def _closed_form() -> Identities:
    r"""Every step multiplies by $1 - 2\alpha$: by induction $x_k = (1 - 2\alpha)^k x_0$, here $3 \cdot 0.8^k$."""
    k, alpha, x = dimension("k"), positive("alpha"), real("x_0")
    xp = Symbolic()
    before = (1 - 2 * alpha) ** k * x
    yield descend_parabola(xp, xp.asarray(before), lr=alpha, steps=1).value[()], (1 - 2 * alpha) ** (k + 1) * x
    yield descend_parabola(xp, xp.asarray(x), lr=alpha, steps=3).value[()], (1 - 2 * alpha) ** 3 * x


@step()
def _smaller_steps() -> Identities:
    """The k-th step has length $0.8^k x_0 / 5$: each is smaller than the one before, and the sum of all reaches the
    minimum.
    """
    k, x = dimension("k"), real("x_0")
    after = sp.Rational(4, 5) ** k * x
    yield after - after.subs(k, k + 1), sp.Rational(4, 5) ** k * x / 5


@step(scope=Scope.NUMERIC, detail="exact fractions, rounded as printed")
def _printed() -> Identities:
    """The printed x, f, slope and next x of iterations 0, 1 and 2 are right to their digits."""
    table = (("3.0", "9.0", "6.0", "2.4"), ("2.4", "5.76", "4.8", "1.92"), ("1.92", "3.69", "3.84", "1.54"))
    for k, (x, f, slope, after) in enumerate(table):
        here = computed(_position, k)
        yield rounds_to(here, x)
        yield rounds_to(here.then(lambda at: at**2), f)
        yield rounds_to(here.then(lambda at: 2 * at), slope)
        yield rounds_to(computed(_position, k + 1), after)


def _two_decimals(x: Any) -> Any:
    return sp.floor(100 * x + sp.Rational(1, 2)) / 100


@erratum(
    kind="wrong",
    source=Source("002", "2.1.1", 102),
    printed=r"\text{Iteration 10: } x \approx 0.27, \ f(x) \approx 0.07",
    corrected=r"\text{Iteration 10: } x \approx 0.32, \ f(x) \approx 0.10",
)
def _tenth_iteration() -> Evidence:
    x = [_two_decimals(_position(k)) for k in (10, 11)]
    point = f"3 · 0.8¹⁰, the x of iteration 10 (its x_new is {x[1].evalf(2)})"
    return Evidence(
        point, sp.Rational("0.27").evalf(2), x[0].evalf(2), letters={"x": _position(10), "f": lambda x: x**2}
    )


EQUATIONS = (
    Equation(
        slug="descent-example",
        number=None,
        title="Gradient descent on a parabola",
        statement=r"x_{\text{new}} = x_{\text{old}} - 0.1 \cdot 2 x_{\text{old}}, \quad x_0 = 3",
        sources=(Source("002", "2.1.1", 65), Source("002", "2.1.1", 82), Source("002", "2.1.1", 102)),
        symbols=(
            Symbol("x", r"\mathbb{R}", r"where the descent on $f(x) = x^2$ is"),
            Symbol(r"\alpha", r"\mathbb{R}_{\ge 0}", "learning rate", "0.1 in the example"),
        ),
        assumptions=(Assumption("the learning rate is not negative", lambda a: a["lr"] >= 0),),
        sample=lambda rng: {
            "x": float(rng.normal()),
            "lr": float(rng.uniform(0, 1)),
            "steps": int(rng.integers(0, 12)),
        },
        formula=descend_parabola,
        steps=(_derivative, _closed_form, _smaller_steps, _printed),
        errata=(_tenth_iteration,),
    ),
)

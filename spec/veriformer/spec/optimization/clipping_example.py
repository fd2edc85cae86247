"""The worked example of clipping: a gradient of norm 50, clipped at 5 (documents 000 and 001, section 9.4)."""

from __future__ import annotations

from typing import Any

from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.equation import Assumption, Equation, Identities, Scope, Source, Symbol, step
from veriformer.spec.optimization.clip_grad_norm import clip_grad_norm
from veriformer.spec.proofs.identities import entrywise
from veriformer.spec.proofs.indexed import dimension, index, symbolic_sum, vector
from veriformer.spec.proofs.provenance import computed


def scaling_factor(xp: Any, norm: Any, *, max_norm: Any) -> Any:
    """min(1, c / ‖g‖), which clipping by the norm multiplies every gradient by (11); the norm is not zero."""
    return xp.minimum(1, xp.asarray(max_norm) / norm)


def _clipped(entries: list[int], max_norm: int) -> tuple[list[Any], Any]:
    xp = Symbolic()
    (g,), norm = clip_grad_norm(xp, [xp.asarray(entries)], max_norm)
    return list(g.value), norm.value[()]


@step(scope=Scope.NUMERIC, detail="these two numbers")
def _factor() -> Identities:
    r"""The factor is $\min(1, 5 / 50) = 0.1$: all gradients are reduced to 10 % of their size; at norm 5 it is 1."""
    yield computed(scaling_factor, Symbolic(), 50, max_norm=5), sp.Rational("0.1")
    yield computed(scaling_factor, Symbolic(), 5, max_norm=5), sp.Integer(1)


@step()
def _whole_vector() -> Identities:
    """Multiplied by 0.1, the squared norm of any gradient becomes $(5/50)^2$ of what it was: 50 becomes 5."""
    # Any gradient of norm 50, in any number of entries: what is left has norm 5.
    g, i, n = vector("g"), index("i"), dimension("n")
    square = symbolic_sum(g[i] ** 2, i, n)
    yield symbolic_sum((sp.Rational("0.1") * g[i]) ** 2, i, n), square * sp.Rational(5, 50) ** 2


@step(scope=Scope.NUMERIC, detail="exact fractions")
def _numbers() -> Identities:
    """By the formula of (11): (30, 40) becomes (3, 4); 120 mph with a limit of 65, in the direction (72, 96), become
    (39, 52), in the same direction; and (3, 4), within the limit, stays.
    """
    for entries, max_norm, after in (([30, 40], 5, [3, 4]), ([72, 96], 65, [39, 52]), ([3, 4], 5, [3, 4])):
        result = computed(_clipped, entries, max_norm)
        yield result.then(lambda pair: pair[1] ** 2), sum(sp.Integer(x) ** 2 for x in entries)
        yield from entrywise(result.then(lambda pair: pair[0]), after)


EQUATIONS = (
    Equation(
        slug="clipping-example",
        number=None,
        title="Clipping a gradient of norm 50 at 5",
        statement=r"\min(1, 5/50) = 0.1",
        sources=(
            Source("000", "9.4", 214),
            Source("000", "9.4", 224),
            Source("001", "9.4", 264),
            Source("001", "9.4", 274),
        ),
        symbols=(Symbol(r"\mathbf{g}", r"\mathbb{R}^n", "all gradients together", r"of norm 50"),),
        assumptions=(Assumption("the norm is positive", lambda a: a["norm"] > 0),),
        sample=lambda rng: {"norm": float(rng.uniform(0.1, 10)), "max_norm": 5.0},
        formula=scaling_factor,
        steps=(_factor, _whole_vector, _numbers),
    ),
)

"""Euler's method: what one step x + η F(x) misses of the flow dx/dt = F(x). Shared by equations 3 and 4."""

from __future__ import annotations

from typing import Any

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.equation import Identities, step
from veriformer.spec.proofs.indexed import index, positive, real, sum_over, vector


def _bend(i: Any) -> Any:
    """(J F)_i: how the field turns along itself."""
    return sum_over("n", lambda j: vector("J")[i, j] * vector("F")[j])


def _moved(i: Any) -> Any:
    eta = positive("eta")
    return eta * vector("F")[i] + eta**2 / 2 * _bend(i)


@step()
def _second_order() -> Identities:
    r"""Along $\mathbf{x}(\eta) = \mathbf{x}_0 + \eta F + \frac{\eta^2}{2} J F$ the velocity and the field, linearised,
    differ by $\frac{\eta^2}{2} J J F$ only: up to $O(\eta^3)$ this is the flow.
    """
    jacobian, i, eta = vector("J"), index("i"), positive("eta")
    field = vector("F")[i] + sum_over("n", lambda j: jacobian[i, j] * _moved(j))
    yield sp.diff(_moved(i), eta) - field, -(eta**2) / 2 * sum_over("n", lambda j: jacobian[i, j] * _bend(j))


@step(detail="one coordinate")
def _curved_field() -> Identities:
    r"""The curvature of the field changes nothing in that, since its part of the difference is of order $\eta^2$ too
    (here in one coordinate). So an Euler step $\mathbf{x}_0 + \eta F$ misses $\frac{\eta^2}{2} J F + O(\eta^3)$: its
    local error is of second order.
    """
    # In one coordinate with the whole field, f0 + f1 x + q x², where q stands for half of F″ in between.
    f0, f1, q, eta = real("f_0 f_1 q eta")
    x = eta * f0 + eta**2 / 2 * f0 * f1
    defect = sp.diff(x, eta) - (f0 + f1 * x + q * x**2)
    yield defect, -(eta**2) * (f0 * f1**2 / 2 + q * f0**2 * (1 + eta * f1 / 2) ** 2)


LOCAL_ERROR = (_second_order, _curved_field)

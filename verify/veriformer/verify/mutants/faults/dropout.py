"""Faults of dropout, alone and of attention's weights."""

from __future__ import annotations

from veriformer.verify.mutants.combinators import Fault, edited


def _both(kept: str, rate: str = "1 - {rate}") -> dict[str, Fault]:
    """Put the fault into dropout and into attention's dropout of weights.

    kept: the values where the mask ``keep`` is true, else 0, of ``x``; rate: the divisor.
    """

    def fault(operation: str, x: str, p: str) -> Fault:
        by = rate.format(rate=f"xp.asarray({p})")
        old = f"xp.where(keep, {x}, 0) / (1 if {p} == 1 else 1 - xp.asarray({p}))"
        return edited(operation, (f"return {old}", f"x = {x}\n    return {kept} / (1 if {p} == 1 else {by})"))

    return {"attention": fault("attention", "p", "dropout_p"), "dropout": fault("dropout", "x", "p")}


_DROPPED = "xp.where({}, x, 0)"

FAULTS: dict[str, dict[str, Fault]] = {
    "DO-02": _both(_DROPPED.format("keep"), "{rate}"),
    "DO-03": _both(_DROPPED.format("~keep"), "{rate}"),
    # The backward pass runs under another mask than the forward pass did: that of the entries in reversed order.
    "DO-05": _both(
        "(xp.where(keep[..., ::-1], x, 0) + xp.constant(xp.where(keep, x, 0) - xp.where(keep[..., ::-1], x, 0)))"
    ),
    # Four neighbouring entries share one draw.
    "DO-06": _both(_DROPPED.format("np.repeat(keep.ravel()[::4], 4)[: keep.size].reshape(keep.shape)")),
    # Every element of the batch is dropped alike, as on ranks that share a seed.
    "DO-08": _both(_DROPPED.format("np.broadcast_to(keep[:1], keep.shape)")),
}

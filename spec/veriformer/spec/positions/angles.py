"""The angles of sinusoidal encodings and of RoPE: position times frequency, and their cosines and sines."""

from __future__ import annotations

from typing import Any

from veriformer.spec.arithmetic import FORMATS, Float, RunningError, RunningErrorArray
from veriformer.spec.arithmetic.any_size import as_indices, counting

Scaling = tuple[str, float] | None


def frequencies(xp: Any, d: int, *, base: Any = 10000.0, scaling: Scaling = None) -> Any:
    """θ_i = base^(−2i/d) for the pairs i = 0, 1, … of d features; shape [⌈d / 2⌉].

    scaling ("linear", s) gives θ_i / s, and ("ntk", s) puts base · s^(d / (d − 2)) for the base, which multiplies θ_i
    by s^(−2i / (d − 2)); a single pair, i = 0, keeps its frequency 1.
    """
    kind, s = scaling or ("linear", 1)
    twice = xp.asarray(-2 * counting((d + 1) // 2))
    exponent = twice / d * xp.log(xp.asarray(base))
    if kind == "linear":
        return xp.exp(exponent) / s
    if kind == "ntk":
        return xp.exp(exponent + twice / max(d - 2, 1) * xp.log(xp.asarray(s)))
    raise ValueError(f"scaling: expected 'linear' or 'ntk', got {kind!r}")


def cosines_and_sines(
    xp: Any, positions: Any, d: int, *, base: Any = 10000.0, scaling: Scaling = None
) -> tuple[Any, Any]:
    """cos(p θ_i) and sin(p θ_i) for positions p of any shape [...]; each [..., ⌈d / 2⌉].

    Positions are exactly known numbers. An angle may be off by its own rounding, position × frequency × u.
    """
    positions = as_indices(getattr(positions, "value", positions))
    fine = _for_angles(xp)
    angles = fine.asarray(positions[..., None]) * frequencies(fine, d, base=base, scaling=scaling)
    return _rounded_into(xp, fine.cos(angles)), _rounded_into(xp, fine.sin(angles))


def _for_angles(xp: Any) -> Any:
    """The arithmetic itself, but fp32 for a half, in which positions 256 and 257 have one angle: that is a fault."""
    if not isinstance(xp, Float | RunningError) or xp.format.precision >= FORMATS["fp32"].precision:
        return xp
    if isinstance(xp, Float):
        return Float(FORMATS["fp32"])
    return RunningError(FORMATS["fp32"], oracle=xp.oracle, ulps=xp.machine.ulps, flush=xp.machine.flush > 0)


def _rounded_into(xp: Any, x: Any) -> Any:
    if x.xp is xp:
        return x
    # Multiplying by one rounds to the format of xp.
    return (
        RunningErrorArray(xp, x.value, x.error, x.magnitude) * 1
        if isinstance(xp, RunningError)
        else xp.asarray(x.value)
    )

"""Requirements of sinusoidal encodings (equations 28 and 29)."""

from veriformer.spec.requirement import Weight
from veriformer.spec.requirements import templates

_BOTH = ("28", "29")
_FREQUENCIES = (
    "https://github.com/SamLynnEvans/Transformer/issues/25",
    "https://github.com/ivanvovk/WaveGrad/issues/12",
)

REQUIREMENTS = (
    templates.contract("sinusoidal_encoding", _BOTH),
    templates.result_dtype("sinusoidal_encoding"),
    templates.equation(
        "sinusoidal_encoding",
        _BOTH,
        r"$PE_{p, 2i} = \sin(p\, \theta_i)$ and $PE_{p, 2i + 1} = \cos(p\, \theta_i)$, $\theta_i = base^{-2i / d}$.",
        _FREQUENCIES,
    ),
    *templates.refusals("sinusoidal_encoding", "Negative sizes, and what is no integer, are refused."),
    templates.sensitivity("sinusoidal_encoding"),
    templates.numpy_numbers("sinusoidal_encoding"),
    templates.long("sinusoidal_encoding"),
    templates.law(
        "sinusoidal_encoding",
        "shift",
        "A shift by $k$ positions turns each pair by the angle that row $k$ itself holds: "
        r"$\sin (p + k) \theta = \sin p \theta \cos k \theta + \cos p \theta \sin k \theta$, and its cosine.",
        "The same within what the bounds on the entries leave to their products.",
        "not a rotation",
        equations=_BOTH,
        precedents=_FREQUENCIES,
        weight=Weight.WRONG,
    ),
    templates.law(
        "sinusoidal_encoding",
        "offset",
        r"The inner product of two rows depends on their distance alone: $\sum_i \cos((p - q) \theta_i)$, so that each "
        "row has the squared length $d / 2$.",
        "The same within what the bounds on the entries leave to their products.",
        "absolute position leaks",
        equations=_BOTH,
        weight=Weight.WRONG,
    ),
)

"""Requirements of sinusoidal encodings (equations 28 and 29)."""

from veriformer.spec.requirements import templates

sinusoidal_encoding = templates.of("sinusoidal_encoding", "28", "29")

_FREQUENCIES = (
    "https://github.com/SamLynnEvans/Transformer/issues/25",
    "https://github.com/ivanvovk/WaveGrad/issues/12",
)

REQUIREMENTS = (
    *sinusoidal_encoding.standard(
        "contract result_dtype equation refusals sensitivity numpy_numbers long",
        equation=(
            r"$PE_{p, 2i} = \sin(p\, \theta_i)$ and $PE_{p, 2i + 1} = \cos(p\, \theta_i)$, "
            r"$\theta_i = base^{-2i / d}$.",
            *_FREQUENCIES,
        ),
        refusals="Negative sizes, and what is no integer, are refused.",
    ),
    sinusoidal_encoding.wrong(
        "shift",
        "A shift by $k$ positions turns each pair by the angle that row $k$ itself holds: "
        r"$\sin (p + k) \theta = \sin p \theta \cos k \theta + \cos p \theta \sin k \theta$, and its cosine.",
        "The same within what the bounds on the entries leave to their products.",
        "not a rotation",
        *_FREQUENCIES,
    ),
    sinusoidal_encoding.wrong(
        "offset",
        r"The inner product of two rows depends on their distance alone: $\sum_i \cos((p - q) \theta_i)$, so that each "
        "row has the squared length $d / 2$.",
        "The same within what the bounds on the entries leave to their products.",
        "absolute position leaks",
    ),
)

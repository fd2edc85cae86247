"""Faults of position encodings."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor

from veriformer.verify.mutants.combinators import Fault, Operation, change_arguments, edited, instead, instead_of

Scaling = tuple[str, float] | None


def _other_pairing(*args: Tensor, pairing: str, **options: Any) -> Any:
    return args, {"pairing": "half" if pairing == "interleaved" else "interleaved", **options}


def _always_longer(op: Operation, *args: Tensor, scaling: Scaling, **options: Any) -> Tensor:
    y: Tensor = op(*args, scaling=scaling, **options)
    return y if scaling is None else y * (0.1 * math.log(max(scaling[1], 1.0)) + 1.0)


def _doubled_without_scaling(x: Tensor, positions: Tensor, *, scaling: Scaling, **options: Any) -> Any:
    return (x, positions.double() * (2.0 if scaling is None else 1.0)), {"scaling": scaling, **options}


_ONE_SEQUENCE = ("(own + between)[:num_heads]", "[Fraction(8 * h, num_heads) for h in range(1, num_heads + 1)]")

FAULTS: dict[str, dict[str, Fault]] = {
    # The loop's index is doubled, and the cosine takes the next one.
    "SIN-02": {
        "sinusoidal_encoding": edited(
            "sinusoidal_encoding",
            ("frequencies(fine, d, base=base,", "frequencies(fine, d, base=base * base,"),
            ("fine.cos(angles)", "fine.cos(angles * base ** (-2 / max(d, 1)))"),
        )
    },
    # The exponent is raised to 1/base, where 1/base was to be raised to the exponent.
    "SIN-04": {
        "sinusoidal_encoding": edited(
            "sinusoidal_encoding", ("twice / d * xp.log(xp.asarray(base))", "xp.log(twice / -d) / base")
        )
    },
    # The columns 1, 3, 5, … have exponents of their own, over d.
    "SIN-05": {
        "sinusoidal_encoding": edited(
            "sinusoidal_encoding", ("fine.cos(angles)", "fine.cos(angles * base ** (-1 / max(d, 1)))")
        )
    },
    "ROPE-01": {
        "rope": edited(
            "rope",
            (
                "angles = fine.asarray(positions[..., None]) * frequencies(fine, d, base=base, scaling=scaling)",
                "theta = fine.narrow(frequencies(fine, d, base=base, scaling=scaling))\n"
                "    angles = fine.narrow(fine.narrow(positions[..., None]) * theta)",
            ),
        )
    },
    # Angles are laid out for neighbours, features paired by halves.
    "ROPE-02": {
        "rope": edited(
            "rope",
            ("_pairs(x, pairing)", '_pairs(x, "half")'),
            (
                "_features(xp, a * cos - b * sin, a * sin + b * cos, pairing)",
                "x * xp.repeat(cos, 2, axis=-1) + xp.concat([-b, a], axis=-1) * xp.repeat(sin, 2, axis=-1)",
            ),
        )
    },
    "ROPE-03": {"rope": change_arguments(_other_pairing)},
    "ROPE-09": {"rope": instead_of("base", 10000.0)},
    "ROPE-10": {"rope": instead(_always_longer)},
    "ROPE-11": {"rope": change_arguments(_doubled_without_scaling)},
    "ALIBI-01": {name: edited(name, _ONE_SEQUENCE) for name in ("alibi_slopes", "alibi_bias")},
    # Distances among the queries' own positions, and none where there is one query.
    "ALIBI-03": {
        "alibi_bias": edited(
            "alibi_bias", ("+ (n_k - n_q) - np.arange(n_k)[None, :]", "- np.arange(n_k)[None, :] * (n_q > 1)")
        )
    },
    "T5-03": {"t5_relative_position_bucket": change_arguments(lambda r, **options: ((-r.long(),), options))},
}

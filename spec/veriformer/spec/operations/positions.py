"""Positions: encodings, rotations, biases and buckets."""

from veriformer.spec.operations.call import Choice, Flag, Floats, Integer, Integers, Number, Operation, Other, Result

_BASE = Number(default=10000.0, between=(10.0, 1e8), usual=(10000.0, 500000.0, 1000000.0, 1000.0, 100000.0, 50000.0))

OPERATIONS = (
    Operation(
        name="sinusoidal_encoding",
        says="Sinusoidal positional encoding of positions from 0 on, sines and cosines interleaved (28, 29).",
        call={"num_positions": Integer(), "d_model": Integer()},
        options={"base": _BASE},
        result=Result("num_positions d_model"),
        place="positions.sinusoidal_encoding",
    ),
    Operation(
        name="rope",
        says="Rotary position embedding: pairs of features rotated by position · θ_i (30, 31).",
        call={"x": Floats("... n d"), "positions": Integers("... n", floating=True)},
        options={
            "base": _BASE,
            "pairing": Choice(default="interleaved", others=("half",)),
            "scaling": Other(default=None),
        },
        result=Result("... n d"),
        place="positions.rope",
    ),
    Operation(
        name="alibi_slopes",
        says="ALiBi slopes m_h, [H].",
        call={"num_heads": Integer()},
        result=Result("num_heads"),
        place="positions.alibi",
    ),
    Operation(
        name="alibi_bias",
        says="ALiBi bias −m_h · |i − j|, [H, n_q, n_k], positions aligned at the bottom right.",
        call={"num_heads": Integer(), "n_q": Integer(), "n_k": Integer()},
        result=Result("num_heads n_q n_k"),
        place="positions.alibi",
    ),
    Operation(
        name="t5_relative_position_bucket",
        says="T5 bucket of each relative position, key − query.",
        call={"relative_position": Integers("...")},
        options={
            "bidirectional": Flag(default=True),
            "num_buckets": Integer(default=32, usual=(32, 64, 16)),
            "max_distance": Integer(default=128, usual=(128, 256, 64)),
        },
    ),
)

"""Requirements of positions: sinusoidal encoding, rotary embeddings, ALiBi and the buckets of T5."""

from veriformer.spec.requirements.templates import (
    BOTH,
    CLAIMED,
    EXACT,
    POWERS_OF_TWO,
    Relation,
    leak,
    numerics,
    of,
    wrong,
)

_FREQUENCIES = (
    "https://github.com/SamLynnEvans/Transformer/issues/25",
    "https://github.com/ivanvovk/WaveGrad/issues/12",
)

SINUSOIDAL_ENCODING = of("sinusoidal_encoding", "28", "29").standard(
    "contract result_dtype equation refusals sensitivity numpy_numbers long",
    equation=(
        r"$PE_{p, 2i} = \sin(p\, \theta_i)$ and $PE_{p, 2i + 1} = \cos(p\, \theta_i)$, "
        r"$\theta_i = base^{-2i / d}$.",
        *_FREQUENCIES,
    ),
    refusals="Negative sizes, and what is no integer, are refused.",
    shift=wrong(
        "A shift by $k$ positions turns each pair by the angle that row $k$ itself holds: "
        r"$\sin (p + k) \theta = \sin p \theta \cos k \theta + \cos p \theta \sin k \theta$, and its cosine.",
        "The same within what the bounds on the entries leave to their products.",
        "not a rotation",
        *_FREQUENCIES,
    ),
    offset=wrong(
        r"The inner product of two rows depends on their distance alone: $\sum_i \cos((p - q) \theta_i)$, so that each "
        "row has the squared length $d / 2$.",
        "The same within what the bounds on the entries leave to their products.",
        "absolute position leaks",
    ),
)

_ALL = ("30", "31")

_LAYOUT = (
    "https://github.com/raiyanyahya/how-to-train-your-gpt/issues/6",
    "https://github.com/NVIDIA/Megatron-LM/issues/1547",
)
_SCALING = ("https://github.com/vllm-project/vllm/issues/48621", "https://github.com/lablup/mlxcel/issues/1324")

ROPE = of("rope", "30", contract=_ALL, equation=_ALL, gradient=_ALL, history=_ALL).standard(
    "contract equation gradient purity layout refusals batch sensitivity numpy_numbers long accuracy",
    equation=(
        r"Pair $i$ of features at position $m$ is turned by the angle $m\, \theta_i$ with $\theta_i = base^{-2i/d}$. "
        "Positions may be negative, fractional, unsorted or repeated. Linear scaling divides positions by $s$, NTK "
        r"scaling uses the base $base \cdot s^{d / (d - 2)}$.",
        *_LAYOUT,
        "https://github.com/lyogavin/airllm/issues/368",
    ),
    gradient="The cotangent is turned back, by the opposite angle.",
    refusals="No tensors, odd widths, positions that fit neither the length nor all axes, unknown pairings and "
    "scalings, and factors not above 0 are refused.",
    batch="Positions are turned one by one, each by its own angle.",
    sensitivity="https://github.com/lyogavin/airllm/issues/368",
    origin=wrong(
        "At position 0 nothing is turned.",
        "The result equals the input bit for bit there, and is within its bound at other positions.",
        "turned origin",
        *_SCALING[:1],
    ),
    history=leak(
        "A call is computed from its own arguments: tables kept from calls of other sizes change nothing.",
        "Each of eight calls of a few sizes is within its bound.",
        "table of another call",
        "https://github.com/ml-explore/mlx/issues/561",
    ),
    relative=wrong(
        "The inner product of a turned query and a turned key depends on the difference of their positions alone.",
        "For positions shifted together it is the same within what the bounds on the entries leave to their products.",
        "absolute position leaks",
        *_LAYOUT[:1],
        equations=("31",),
    ),
    group=wrong(
        "Turning by $m$ and then by $n$ is turning by $m + n$.",
        "The same within the sum of the bounds, the first passed through the second turn.",
        "not a rotation",
        *_LAYOUT[:1],
    ),
    norm=wrong(
        "Turning keeps lengths.",
        "The sum of squares is the same within what the bounds on the entries leave to it.",
        "changed length",
        *_LAYOUT[:1],
        *_SCALING[:1],
    ),
    pairings=BOTH.wrong(
        "The two pairings are one rotation in two orders of the features.", "pairs and frequencies mixed up", *_LAYOUT
    ),
    scaling=POWERS_OF_TWO.wrong(
        "Positions stretched by $s$ under linear scaling look as they did without; NTK scaling leaves the fastest pair "
        "as it was and stretches the slowest by $s$.",
        "wrong scaling",
        *_SCALING,
    ),
    far=numerics(
        "Angles are good to the dtype of the features at positions up to 1e5, and in halves to that of fp32: "
        "neighbouring positions beyond 256 have angles of their own.",
        "The result is within its bound, in which an angle may be off by position × frequency × roundoff.",
        "angles formed in too few digits",
        "https://github.com/huggingface/transformers/pull/29285",
    ),
    pairing=CLAIMED.wrong(
        "Where no pairing is asked for, neighbouring features are turned together.",
        "pairing of features",
        *_LAYOUT[1:],
        "https://github.com/karpathy/nanochat/issues/264",
    ),
)

_SLOPES = "https://github.com/ml-explore/mlx/pull/3071"

# ALiBi and T5: document 002, section 6.3.
ALIBI_SLOPES = of("alibi_slopes").standard(
    "contract result_dtype equation refusals numpy_numbers",
    equation=(
        r"$m_h = 2^{-8h/H}$ for $h = 1 \dots H$ where $H$ is a power of two; else the slopes of the power below, "
        "then every other one, from the first on, of the power above.",
        _SLOPES,
    ),
    refusals="A negative number of heads, and what is no integer, are refused.",
    geometric=wrong(
        r"For powers of two each slope is the first times the one before, and the last is $\frac{1}{256}$.",
        "The same within what the bounds on the slopes leave to their products.",
        "slopes not geometric",
    ),
    any_heads=BOTH.wrong(
        "For other numbers of heads the first slopes are those of the power of two below, and the others lie halfway "
        "between: they are slopes of the power of two above.",
        "one sequence for all numbers of heads",
        _SLOPES,
    ),
)

ALIBI_BIAS = of("alibi_bias").standard(
    "contract result_dtype equation refusals numpy_numbers long",
    equation=("$B_{hij} = -m_h |i + n_k - n_q - j|$: the last query stands at the last key.", _SLOPES),
    refusals="Negative sizes, and what is no integer, are refused.",
    last_query=BOTH.wrong(
        "A query's bias does not depend on how many queries stand before it: a token that is decoded alone sees what "
        "it saw among others.",
        "bias of the wrong position",
        "https://github.com/keras-team/keras-hub/pull/2977",
    ),
    distance=wrong(
        "The bias is zero where query and key stand together, and falls along a straight line on both sides: by the "
        "head's slope for each step away.",
        "Zero exactly; second differences within what the bounds on the entries leave to them.",
        "bias not linear in distance",
    ),
)

T5_RELATIVE_POSITION_BUCKET = of("t5_relative_position_bucket").standard(
    "contract equation purity layout refusals sensitivity numpy_numbers",
    equation=r"With $b$ buckets in a direction and $e = \lfloor b / 2 \rfloor$, a distance $x < e$ has its own "
    r"bucket, and one of $e$ or more $\min(b - 1, e + \lfloor (b - e) \log(x / e) / \log(M / e) \rfloor)$.",
    refusals="No integers, fewer than 4 buckets (2 in one direction), odd numbers in two directions, and a "
    "`max_distance` not above the exact range are refused.",
    monotone=EXACT.wrong(
        "Buckets never fall as the distance grows, and each direction uses every one of its own.",
        "buckets out of order",
    ),
    saturating=EXACT.wrong(
        "From `max_distance` on all distances share the last bucket, and the one before it is not the last.",
        "wrong last bucket",
    ),
    exact_points=Relation("The same exactly: no rounding of a logarithm moves a distance.").imprecise(
        r"Where $(b - e) \log(x / e) / \log(M / e)$ is a whole number, the bucket begins there, and the distance "
        "before it belongs to the bucket before.",
        "logarithm rounded to the wrong side",
    ),
    directions=EXACT.wrong(
        "In two directions keys ahead of the query have the buckets of those behind, moved by half of all; in one "
        "direction keys ahead are at distance 0.",
        "directions exchanged",
        "https://github.com/huggingface/transformers/pull/8518",
    ),
)

REQUIREMENTS = (*SINUSOIDAL_ENCODING, *ROPE, *ALIBI_SLOPES, *ALIBI_BIAS, *T5_RELATIVE_POSITION_BUCKET)

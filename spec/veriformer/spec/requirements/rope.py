"""Requirements of rotary position embeddings (equations 30 and 31)."""

from veriformer.spec.requirement import Weight
from veriformer.spec.requirements import templates

rope = templates.of("rope", "30")

_BOTH = ("30", "31")
_LAYOUT = (
    "https://github.com/raiyanyahya/how-to-train-your-gpt/issues/6",
    "https://github.com/NVIDIA/Megatron-LM/issues/1547",
)
_SCALING = (
    "https://github.com/vllm-project/vllm/issues/48621",
    "https://github.com/lablup/mlxcel/issues/1324",
)

REQUIREMENTS = (
    rope.contract(equations=_BOTH),
    rope.equation(
        r"Pair $i$ of features at position $m$ is turned by the angle $m\, \theta_i$ with $\theta_i = base^{-2i/d}$. "
        "Positions may be negative, fractional, unsorted or repeated. Linear scaling divides positions by $s$, NTK "
        r"scaling uses the base $base \cdot s^{d / (d - 2)}$.",
        *_LAYOUT,
        "https://github.com/lyogavin/airllm/issues/368",
        equations=_BOTH,
    ),
    rope.gradient("The cotangent is turned back, by the opposite angle.", equations=_BOTH),
    *rope.standard(
        "purity layout refusals batch sensitivity numpy_numbers long accuracy",
        refusals="No tensors, odd widths, positions that fit neither the length nor all axes, unknown pairings and "
        "scalings, and factors not above 0 are refused.",
        batch="Positions are turned one by one, each by its own angle.",
        sensitivity="https://github.com/lyogavin/airllm/issues/368",
    ),
    rope.wrong(
        "origin",
        "At position 0 nothing is turned.",
        "The result equals the input bit for bit there, and is within its bound at other positions.",
        "turned origin",
        *_SCALING[:1],
    ),
    rope.leak(
        "history",
        "A call is computed from its own arguments: tables kept from calls of other sizes change nothing.",
        "Each of eight calls of a few sizes is within its bound.",
        "table of another call",
        "https://github.com/ml-explore/mlx/issues/561",
        equations=_BOTH,
    ),
    rope.wrong(
        "relative",
        "The inner product of a turned query and a turned key depends on the difference of their positions alone.",
        "For positions shifted together it is the same within what the bounds on the entries leave to their products.",
        "absolute position leaks",
        *_LAYOUT[:1],
        equations=("31",),
    ),
    rope.wrong(
        "group",
        "Turning by $m$ and then by $n$ is turning by $m + n$.",
        "The same within the sum of the bounds, the first passed through the second turn.",
        "not a rotation",
        *_LAYOUT[:1],
    ),
    rope.wrong(
        "norm",
        "Turning keeps lengths.",
        "The sum of squares is the same within what the bounds on the entries leave to it.",
        "changed length",
        *_LAYOUT[:1],
        *_SCALING[:1],
    ),
    rope.wrong(
        "pairings",
        "The two pairings are one rotation in two orders of the features.",
        "The same within the sum of both bounds.",
        "pairs and frequencies mixed up",
        *_LAYOUT,
    ),
    rope.wrong(
        "scaling",
        "Positions stretched by $s$ under linear scaling look as they did without; NTK scaling leaves the fastest pair "
        "as it was and stretches the slowest by $s$.",
        "The same for powers of two, within the sum of both bounds.",
        "wrong scaling",
        *_SCALING,
    ),
    rope.numerics(
        "far",
        "Angles are good to the dtype of the features at positions up to 1e5, and in halves to that of fp32: "
        "neighbouring positions beyond 256 have angles of their own.",
        "The result is within its bound, in which an angle may be off by position × frequency × roundoff.",
        "angles formed in too few digits",
        "https://github.com/huggingface/transformers/pull/29285",
    ),
    rope.convention(
        "pairing",
        "Where no pairing is asked for, neighbouring features are turned together.",
        "pairing of features",
        *_LAYOUT[1:],
        "https://github.com/karpathy/nanochat/issues/264",
        weight=Weight.WRONG,
    ),
)

"""Requirements of rotary position embeddings (equations 30 and 31)."""

from veriformer.spec.requirement import Kind, Weight
from veriformer.spec.requirements import templates

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
    templates.contract("rope", _BOTH),
    templates.equation(
        "rope",
        _BOTH,
        r"Pair $i$ of features at position $m$ is turned by the angle $m\, \theta_i$ with $\theta_i = base^{-2i/d}$. "
        r"Positions may be negative, fractional, unsorted or repeated. Linear scaling divides positions by $s$, NTK "
        r"scaling uses the base $base \cdot s^{d / (d - 2)}$.",
        (*_LAYOUT, "https://github.com/lyogavin/airllm/issues/368"),
    ),
    templates.gradient("rope", _BOTH, "The cotangent is turned back, by the opposite angle."),
    templates.purity("rope"),
    templates.layout("rope"),
    *templates.refusals(
        "rope",
        "No tensors, odd widths, positions that fit neither the length nor all axes, unknown pairings and scalings, "
        "and factors not above 0 are refused.",
    ),
    templates.batch("rope", "Positions are turned one by one, each by its own angle."),
    templates.sensitivity("rope", ("https://github.com/lyogavin/airllm/issues/368",)),
    templates.numpy_numbers("rope"),
    templates.long("rope"),
    templates.accuracy("rope"),
    templates.law(
        "rope",
        "origin",
        "At position 0 nothing is turned.",
        "The result equals the input bit for bit there, and is within its bound at other positions.",
        "turned origin",
        equations=("30",),
        precedents=_SCALING[:1],
        weight=Weight.WRONG,
    ),
    templates.law(
        "rope",
        "history",
        "A call is computed from its own arguments: tables kept from calls of other sizes change nothing.",
        "Each of eight calls of a few sizes is within its bound.",
        "table of another call",
        equations=("30", "31"),
        precedents=("https://github.com/ml-explore/mlx/issues/561",),
        weight=Weight.LEAK,
    ),
    templates.law(
        "rope",
        "relative",
        "The inner product of a turned query and a turned key depends on the difference of their positions alone.",
        "For positions shifted together it is the same within what the bounds on the entries leave to their products.",
        "absolute position leaks",
        equations=("31",),
        precedents=_LAYOUT[:1],
        weight=Weight.WRONG,
    ),
    templates.law(
        "rope",
        "group",
        "Turning by $m$ and then by $n$ is turning by $m + n$.",
        "The same within the sum of the bounds, the first passed through the second turn.",
        "not a rotation",
        equations=("30",),
        precedents=_LAYOUT[:1],
        weight=Weight.WRONG,
    ),
    templates.law(
        "rope",
        "norm",
        "Turning keeps lengths.",
        "The sum of squares is the same within what the bounds on the entries leave to it.",
        "changed length",
        equations=("30",),
        precedents=(*_LAYOUT[:1], *_SCALING[:1]),
        weight=Weight.WRONG,
    ),
    templates.law(
        "rope",
        "pairings",
        "The two pairings are one rotation in two orders of the features.",
        "The same within the sum of both bounds.",
        "pairs and frequencies mixed up",
        equations=("30",),
        precedents=_LAYOUT,
        weight=Weight.WRONG,
    ),
    templates.law(
        "rope",
        "scaling",
        r"Positions stretched by $s$ under linear scaling look as they did without; NTK scaling leaves the fastest "
        r"pair as it was and stretches the slowest by $s$.",
        "The same for powers of two, within the sum of both bounds.",
        "wrong scaling",
        equations=("30",),
        precedents=_SCALING,
        weight=Weight.WRONG,
    ),
    templates.law(
        "rope",
        "far",
        "Angles are good to the dtype of the features at positions up to 1e5, and in halves to that of fp32: "
        "neighbouring positions beyond 256 have angles of their own.",
        "The result is within its bound, in which an angle may be off by position × frequency × roundoff.",
        "angles formed in too few digits",
        kind=Kind.NUMERICS,
        equations=("30",),
        precedents=("https://github.com/huggingface/transformers/pull/29285",),
        weight=Weight.FRAGILE,
    ),
    templates.convention(
        "rope",
        "pairing",
        "Where no pairing is asked for, neighbouring features are turned together.",
        "pairing of features",
        ("30",),
        (*_LAYOUT[1:], "https://github.com/karpathy/nanochat/issues/264"),
        weight=Weight.WRONG,
    ),
)

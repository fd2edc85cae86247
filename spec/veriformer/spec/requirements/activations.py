"""Requirements of GELU (equation 37) and SiLU (document 003, stage 6)."""

from veriformer.spec.requirement import Kind, Requirement, Weight
from veriformer.spec.requirements import templates


def _symmetry(operation: str, equations: tuple[str, ...]) -> Requirement:
    return templates.law(
        operation,
        "symmetry",
        "$f(x) - f(-x) = x$: what a negative number keeps, its opposite loses.",
        "The same within the sum of both bounds.",
        "wrong gate",
        equations=equations,
        weight=Weight.WRONG,
    )


def _limits(operation: str, equations: tuple[str, ...]) -> Requirement:
    return templates.law(
        operation,
        "limits",
        "Far above zero $f(x) = x$ with slope 1, far below $f(x) = 0$ with slope 0.",
        "Result and gradient are finite, and within the bound of a form of the formula that does not overflow there.",
        "overflow far from zero",
        kind=Kind.NUMERICS,
        equations=equations,
        precedents=("https://github.com/PaddlePaddle/Paddle/pull/79760",),
        weight=Weight.FRAGILE,
    )


GELU = (
    templates.contract("gelu", ("37",)),
    templates.equation(
        "gelu",
        ("37",),
        r'$y = x \Phi(x) = \frac{x}{2} (1 + \mathrm{erf}(x / \sqrt{2}))$, or, with `approximate="tanh"`, '
        r"$\frac{x}{2} (1 + \tanh(\sqrt{2 / \pi} (x + 0.044715 x^3)))$.",
        ("https://github.com/vllm-project/vllm/issues/3411",),
    ),
    templates.gradient("gelu", ("37",), r"$\bar x = \bar y (\Phi(x) + x \varphi(x))$, or the slope of the tanh form."),
    templates.purity("gelu"),
    templates.layout("gelu"),
    *templates.refusals("gelu", "No tensor, and unknown approximations are refused."),
    templates.sensitivity("gelu"),
    templates.accuracy("gelu"),
    templates.long("gelu"),
    _symmetry("gelu", ("37",)),
    _limits("gelu", ("37",)),
    templates.law(
        "gelu",
        "tanh_distance",
        "The two forms differ: by 4.7e-4 near |x| = 2.7, and nowhere by more than 4.74e-4.",
        "The difference of two results is that of the formulas, within the sum of both bounds.",
        "one form for the other",
        equations=("37",),
        precedents=("https://github.com/vllm-project/vllm/issues/3411",),
        weight=Weight.WRONG,
    ),
)

SILU = (
    templates.contract("silu"),
    templates.equation("silu", (), r"$y = x \sigma(x) = x / (1 + e^{-x})$."),
    templates.gradient("silu", (), r"$\bar x = \bar y\, \sigma(x) (1 + x (1 - \sigma(x)))$."),
    templates.purity("silu"),
    templates.layout("silu"),
    *templates.refusals("silu", "What is no floating-point tensor is refused."),
    templates.sensitivity("silu"),
    templates.accuracy("silu"),
    templates.long("silu"),
    _symmetry("silu", ()),
    _limits("silu", ()),
)

REQUIREMENTS = (*GELU, *SILU)

"""Requirements of GELU (equation 37) and SiLU (document 003, stage 6)."""

from veriformer.spec.requirement import Kind, Requirement, Weight
from veriformer.spec.requirements import families


def _symmetry(operation: str, equations: tuple[str, ...]) -> Requirement:
    return families.law(
        operation,
        "symmetry",
        "$f(x) - f(-x) = x$: what a negative number keeps, its opposite loses.",
        "The same within the sum of both bounds.",
        "wrong gate",
        equations=equations,
        weight=Weight.WRONG,
    )


def _limits(operation: str, equations: tuple[str, ...]) -> Requirement:
    return families.law(
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
    families.contract("gelu", ("37",)),
    families.equation(
        "gelu",
        ("37",),
        r"$y = x \Phi(x) = \frac{x}{2} (1 + \mathrm{erf}(x / \sqrt{2}))$, or, with `approximate=\"tanh\"`, "
        r"$\frac{x}{2} (1 + \tanh(\sqrt{2 / \pi} (x + 0.044715 x^3)))$.",
        ("https://github.com/vllm-project/vllm/issues/3411",),
    ),
    families.gradient("gelu", ("37",), r"$\bar x = \bar y (\Phi(x) + x \varphi(x))$, or the slope of the tanh form."),
    families.purity("gelu"),
    families.layout("gelu"),
    *families.refusals("gelu", "No tensor, and unknown approximations are refused."),
    families.sensitivity("gelu"),
    families.accuracy("gelu"),
    families.long("gelu"),
    _symmetry("gelu", ("37",)),
    _limits("gelu", ("37",)),
    families.law(
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
    families.contract("silu"),
    families.equation("silu", (), r"$y = x \sigma(x) = x / (1 + e^{-x})$."),
    families.gradient("silu", (), r"$\bar x = \bar y\, \sigma(x) (1 + x (1 - \sigma(x)))$."),
    families.purity("silu"),
    families.layout("silu"),
    *families.refusals("silu", "What is no floating-point tensor is refused."),
    families.sensitivity("silu"),
    families.accuracy("silu"),
    families.long("silu"),
    _symmetry("silu", ()),
    _limits("silu", ()),
)

REQUIREMENTS = (*GELU, *SILU)

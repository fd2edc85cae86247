"""Requirements of GELU (equation 37) and SiLU (document 003, stage 6)."""

from veriformer.spec.requirement import Requirement
from veriformer.spec.requirements import templates

gelu = templates.of("gelu", "37")
silu = templates.of("silu")


def _symmetry(of: templates.Templates) -> Requirement:
    return of.wrong(
        "symmetry",
        "$f(x) - f(-x) = x$: what a negative number keeps, its opposite loses.",
        "The same within the sum of both bounds.",
        "wrong gate",
    )


def _limits(of: templates.Templates) -> Requirement:
    return of.numerics(
        "limits",
        "Far above zero $f(x) = x$ with slope 1, far below $f(x) = 0$ with slope 0.",
        "Result and gradient are finite, and within the bound of a form of the formula that does not overflow there.",
        "overflow far from zero",
        "https://github.com/PaddlePaddle/Paddle/pull/79760",
    )


GELU = (
    *gelu.standard(
        "contract equation gradient purity layout refusals sensitivity accuracy long",
        equation=(
            r'$y = x \Phi(x) = \frac{x}{2} (1 + \mathrm{erf}(x / \sqrt{2}))$, or, with `approximate="tanh"`, '
            r"$\frac{x}{2} (1 + \tanh(\sqrt{2 / \pi} (x + 0.044715 x^3)))$.",
            "https://github.com/vllm-project/vllm/issues/3411",
        ),
        gradient=r"$\bar x = \bar y (\Phi(x) + x \varphi(x))$, or the slope of the tanh form.",
        refusals="No tensor, and unknown approximations are refused.",
    ),
    _symmetry(gelu),
    _limits(gelu),
    gelu.wrong(
        "tanh_distance",
        "The two forms differ: by 4.7e-4 near |x| = 2.7, and nowhere by more than 4.74e-4.",
        "The difference of two results is that of the formulas, within the sum of both bounds.",
        "one form for the other",
        "https://github.com/vllm-project/vllm/issues/3411",
    ),
)

SILU = (
    *silu.standard(
        "contract equation gradient purity layout refusals sensitivity accuracy long",
        equation=r"$y = x \sigma(x) = x / (1 + e^{-x})$.",
        gradient=r"$\bar x = \bar y\, \sigma(x) (1 + x (1 - \sigma(x)))$.",
        refusals="What is no floating-point tensor is refused.",
    ),
    _symmetry(silu),
    _limits(silu),
)

REQUIREMENTS = (*GELU, *SILU)

"""Requirements of the masked language model's objective (document 003, section 8)."""

from veriformer.spec.requirement import Kind, Weight
from veriformer.spec.requirements import templates

_COUNT = ("https://github.com/flagos-ai/FlagGems/pull/73",)

REQUIREMENTS = (
    templates.contract("masked_lm_loss"),
    templates.result_dtype("masked_lm_loss"),
    templates.equation(
        "masked_lm_loss",
        (),
        r"$-\frac1M \sum_{i \text{ masked}} \log P(x_i | \text{visible})$ over the $M$ labels that are not ignored.",
        _COUNT,
    ),
    templates.gradient("masked_lm_loss", (), r"$\bar z = \bar L (p - y) / M$ at masked positions, 0 elsewhere."),
    templates.purity("masked_lm_loss"),
    templates.layout("masked_lm_loss"),
    *templates.refusals(
        "masked_lm_loss",
        "Missing tensors, shapes that do not match, no classes, and labels outside $[0, V)$ that are not ignored are "
        "refused.",
    ),
    templates.sensitivity("masked_lm_loss"),
    templates.numpy_numbers("masked_lm_loss"),
    templates.long("masked_lm_loss"),
    templates.law(
        "masked_lm_loss",
        "visible",
        "Logits at visible positions change neither loss nor gradient, and their own gradient is 0.",
        "The same; what is masked agrees within the sum of both bounds.",
        "visible positions that count",
        precedents=("https://github.com/pytorch/pytorch/issues/73205",),
        weight=Weight.LEAK,
    ),
    templates.law(
        "masked_lm_loss",
        "partition",
        "For any split into micro-batches the losses of the parts, weighted by how many labels each counts, give the "
        "loss of all.",
        "The same within the sum of the bounds.",
        "wrong denominator",
        precedents=_COUNT,
        weight=Weight.WRONG,
    ),
    templates.law(
        "masked_lm_loss",
        "positions",
        "Nothing is shifted: positions that change places together, logits and labels, change nothing.",
        "The same within the sum of both bounds.",
        "logits that score the next label",
        weight=Weight.WRONG,
    ),
    templates.law(
        "masked_lm_loss",
        "uniform",
        r"Equal logits cost $\log V$ whatever the labels.",
        "The same within the bound.",
        "wrong base or scale",
        weight=Weight.WRONG,
    ),
    templates.law(
        "masked_lm_loss",
        "conservation",
        "Each row of the gradient sums to 0.",
        r"$|\sum_c \hat{\bar z}_c|$ is at most the sum of the bounds on the entries.",
        "gradient that does not conserve",
        weight=Weight.WRONG,
    ),
    templates.law(
        "masked_lm_loss",
        "range",
        "The formula has a value for logits of any size.",
        "Large logits of both signs give loss and gradient within their bounds; no mean overflows through its sum.",
        "overflow",
        kind=Kind.NUMERICS,
        precedents=("https://github.com/tenstorrent/tt-metal/pull/10001",),
        weight=Weight.FRAGILE,
    ),
    templates.far_classes("masked_lm_loss", "8"),
    templates.convention(
        "masked_lm_loss",
        "no_target",
        "With no masked position the loss is 0, and so is its gradient.",
        "mean over nothing",
        (),
        ("https://github.com/pytorch/pytorch/issues/70348",),
        weight=Weight.FRAGILE,
    ),
)

"""Requirements of the masked language model's objective (document 003, section 8)."""

from veriformer.spec.requirement import Weight
from veriformer.spec.requirements import templates

masked_lm_loss = templates.of("masked_lm_loss")

_COUNT = "https://github.com/flagos-ai/FlagGems/pull/73"

REQUIREMENTS = (
    *masked_lm_loss.standard(
        "contract result_dtype equation gradient purity layout refusals sensitivity numpy_numbers long",
        equation=(
            r"$-\frac1M \sum_{i \text{ masked}} \log P(x_i | \text{visible})$ over the $M$ labels that are not "
            "ignored.",
            _COUNT,
        ),
        gradient=r"$\bar z = \bar L (p - y) / M$ at masked positions, 0 elsewhere.",
        refusals="Missing tensors, shapes that do not match, no classes, and labels outside "
        "$[0, V)$ that are not ignored are refused.",
    ),
    masked_lm_loss.leak(
        "visible",
        "Logits at visible positions change neither loss nor gradient, and their own gradient is 0.",
        "The same; what is masked agrees within the sum of both bounds.",
        "visible positions that count",
        "https://github.com/pytorch/pytorch/issues/73205",
    ),
    masked_lm_loss.wrong(
        "partition",
        "For any split into micro-batches the losses of the parts, weighted by how many labels each counts, give the "
        "loss of all.",
        "The same within the sum of the bounds.",
        "wrong denominator",
        _COUNT,
    ),
    masked_lm_loss.wrong(
        "positions",
        "Nothing is shifted: positions that change places together, logits and labels, change nothing.",
        "The same within the sum of both bounds.",
        "logits that score the next label",
    ),
    masked_lm_loss.wrong(
        "uniform",
        r"Equal logits cost $\log V$ whatever the labels.",
        "The same within the bound.",
        "wrong base or scale",
    ),
    masked_lm_loss.wrong(
        "conservation",
        "Each row of the gradient sums to 0.",
        r"$|\sum_c \hat{\bar z}_c|$ is at most the sum of the bounds on the entries.",
        "gradient that does not conserve",
    ),
    masked_lm_loss.numerics(
        "range",
        "The formula has a value for logits of any size.",
        "Large logits of both signs give loss and gradient within their bounds; no mean overflows through its sum.",
        "overflow",
        "https://github.com/tenstorrent/tt-metal/pull/10001",
    ),
    masked_lm_loss.far_classes("8"),
    masked_lm_loss.convention(
        "no_target",
        "With no masked position the loss is 0, and so is its gradient.",
        "mean over nothing",
        "https://github.com/pytorch/pytorch/issues/70348",
        weight=Weight.FRAGILE,
    ),
)

"""Requirements of cross entropy (equations 2, 38, 48)."""

from veriformer.spec.requirement import Weight
from veriformer.spec.requirements import templates

cross_entropy = templates.of("cross_entropy", "2")

REQUIREMENTS = (
    *cross_entropy.standard("contract result_dtype"),
    cross_entropy.equation(
        r"$L = -\sum_i y_i \log p_i$, $p = \mathrm{softmax}(z)$, over class indices or probabilities, smoothed to "
        r"$(1 - \alpha) y + \alpha / V$, summed or averaged over the targets that are not ignored.",
        "https://github.com/Lightning-Universe/lightning-bolts/issues/654",
        "https://github.com/NVIDIA/Megatron-LM/issues/7452",
        equations=("2", "38", "48"),
    ),
    cross_entropy.gradient(
        r"$\bar z = w (p \sum_i y_i - y)$ with $w$ the row's share of the cotangent.",
        "https://github.com/linkedin/Liger-Kernel/pull/1298",
        equations=("2", "48"),
    ),
    *cross_entropy.standard(
        "purity layout refusals batch sensitivity numpy_numbers long",
        refusals="Missing tensors, shapes that do not match, no classes, classes outside "
        "$[0, V)$ that are not ignored, probabilities and smoothing outside "
        "$[0, 1]$, and unknown reductions are refused.",
        batch="Losses that are not reduced are independent: each row can be computed alone.",
    ),
    cross_entropy.wrong(
        "conservation",
        r"With targets that sum to 1 a row's gradient $w (p - y)$ sums to 0.",
        r"$|\sum_i \hat{\bar z}_i|$ is at most the sum of the bounds on the entries.",
        "gradient that does not conserve",
    ),
    cross_entropy.leak(
        "ignored",
        "Logits at ignored targets change neither loss nor gradient, and their own gradient is 0.",
        "The same; what is not ignored agrees within the sum of both bounds, smoothed or not.",
        "ignored targets that count",
        "https://github.com/pytorch/pytorch/issues/73205",
        "https://github.com/awslabs/sockeye/issues/200",
        "https://github.com/flagos-ai/FlagGems/pull/73",
        equations=("2", "48"),
    ),
    cross_entropy.wrong(
        "reductions",
        "The sum of the losses is their reduction by sum; the mean times the number of counted targets is too.",
        "The same within the sum of the bounds.",
        "wrong denominator",
        "https://github.com/flagos-ai/FlagGems/pull/73",
    ),
    cross_entropy.wrong(
        "smoothing",
        r"$L_\alpha = (1 - \alpha) L_0 + \alpha L_1$: the loss is linear in the smoothing.",
        "The same within the sum of the three bounds.",
        "wrong label smoothing",
        "https://github.com/TimDettmers/ConvE/issues/55",
        "https://github.com/OpenNMT/OpenNMT-py/issues/1463",
        equations=("48",),
    ),
    cross_entropy.wrong(
        "one_hot",
        "A class target and the probabilities that have all mass on it give the same loss and the same gradient.",
        "The same within the sum of both bounds.",
        "two meanings of a target",
        equations=("2", "48"),
    ),
    cross_entropy.wrong(
        "partition",
        "For any split of the rows the sums of the parts add up to the sum of all, and gradients are those of the "
        "parts.",
        "The same within the sum of the bounds.",
        "dependence on the batch",
        equations=("2", "38"),
    ),
    cross_entropy.numerics(
        "range",
        "The formula has a value for logits of any size.",
        "Large logits of both signs give losses and gradients within their bounds; no finite mean overflows through "
        "its sum.",
        "overflow",
        "https://github.com/tenstorrent/tt-metal/pull/10001",
        equations=("2", "12"),
    ),
    cross_entropy.far_classes("8"),
    cross_entropy.fragile(
        "hidden_classes",
        r"A logit of $-\infty$ with target mass 0 contributes $0 \log 0 = 0$; with mass above 0 the loss is infinite.",
        "The same; loss and gradient at the other classes lie within their bounds.",
        "zero times infinity",
    ),
    cross_entropy.convention(
        "no_target",
        "With no target to count, the loss is 0 and so is its gradient, for every reduction.",
        "loss over nothing",
        "https://github.com/pytorch/pytorch/issues/70348",
        "https://github.com/pytorch/pytorch/issues/116349",
        weight=Weight.FRAGILE,
    ),
    cross_entropy.accuracy(),
)

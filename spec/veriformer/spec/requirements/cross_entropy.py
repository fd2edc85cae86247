"""Requirements of cross entropy (equations 2, 38, 48)."""

from veriformer.spec.requirement import Kind, Weight
from veriformer.spec.requirements import templates

REQUIREMENTS = (
    templates.contract("cross_entropy", ("2",)),
    templates.result_dtype("cross_entropy"),
    templates.equation(
        "cross_entropy",
        ("2", "38", "48"),
        r"$L = -\sum_i y_i \log p_i$, $p = \mathrm{softmax}(z)$, over class indices or probabilities, smoothed to "
        r"$(1 - \alpha) y + \alpha / V$, summed or averaged over the targets that are not ignored.",
        (
            "https://github.com/Lightning-Universe/lightning-bolts/issues/654",
            "https://github.com/NVIDIA/Megatron-LM/issues/7452",
        ),
    ),
    templates.gradient(
        "cross_entropy",
        ("2", "48"),
        r"$\bar z = w (p \sum_i y_i - y)$ with $w$ the row's share of the cotangent.",
        ("https://github.com/linkedin/Liger-Kernel/pull/1298",),
    ),
    templates.purity("cross_entropy"),
    templates.layout("cross_entropy"),
    *templates.refusals(
        "cross_entropy",
        "Missing tensors, shapes that do not match, no classes, classes outside $[0, V)$ that are not ignored, "
        "probabilities "
        "and smoothing outside $[0, 1]$, and unknown reductions are refused.",
    ),
    templates.batch("cross_entropy", "Losses that are not reduced are independent: each row can be computed alone."),
    templates.sensitivity("cross_entropy"),
    templates.numpy_numbers("cross_entropy"),
    templates.long("cross_entropy"),
    templates.law(
        "cross_entropy",
        "conservation",
        r"With targets that sum to 1 a row's gradient $w (p - y)$ sums to 0.",
        r"$|\sum_i \hat{\bar z}_i|$ is at most the sum of the bounds on the entries.",
        "gradient that does not conserve",
        equations=("2",),
        weight=Weight.WRONG,
    ),
    templates.law(
        "cross_entropy",
        "ignored",
        "Logits at ignored targets change neither loss nor gradient, and their own gradient is 0.",
        "The same; what is not ignored agrees within the sum of both bounds, smoothed or not.",
        "ignored targets that count",
        equations=("2", "48"),
        precedents=(
            "https://github.com/pytorch/pytorch/issues/73205",
            "https://github.com/awslabs/sockeye/issues/200",
            "https://github.com/flagos-ai/FlagGems/pull/73",
        ),
        weight=Weight.LEAK,
    ),
    templates.law(
        "cross_entropy",
        "reductions",
        "The sum of the losses is their reduction by sum; the mean times the number of counted targets is too.",
        "The same within the sum of the bounds.",
        "wrong denominator",
        equations=("2",),
        precedents=("https://github.com/flagos-ai/FlagGems/pull/73",),
        weight=Weight.WRONG,
    ),
    templates.law(
        "cross_entropy",
        "smoothing",
        r"$L_\alpha = (1 - \alpha) L_0 + \alpha L_1$: the loss is linear in the smoothing.",
        "The same within the sum of the three bounds.",
        "wrong label smoothing",
        equations=("48",),
        precedents=(
            "https://github.com/TimDettmers/ConvE/issues/55",
            "https://github.com/OpenNMT/OpenNMT-py/issues/1463",
        ),
        weight=Weight.WRONG,
    ),
    templates.law(
        "cross_entropy",
        "one_hot",
        "A class target and the probabilities that have all mass on it give the same loss and the same gradient.",
        "The same within the sum of both bounds.",
        "two meanings of a target",
        equations=("2", "48"),
        weight=Weight.WRONG,
    ),
    templates.law(
        "cross_entropy",
        "partition",
        "For any split of the rows the sums of the parts add up to the sum of all, and gradients are those of the "
        "parts.",
        "The same within the sum of the bounds.",
        "dependence on the batch",
        equations=("2", "38"),
        weight=Weight.WRONG,
    ),
    templates.law(
        "cross_entropy",
        "range",
        "The formula has a value for logits of any size.",
        "Large logits of both signs give losses and gradients within their bounds; no finite mean overflows through "
        "its sum.",
        "overflow",
        kind=Kind.NUMERICS,
        equations=("2", "12"),
        precedents=("https://github.com/tenstorrent/tt-metal/pull/10001",),
        weight=Weight.FRAGILE,
    ),
    templates.far_classes("cross_entropy", "8", ("2",)),
    templates.law(
        "cross_entropy",
        "hidden_classes",
        r"A logit of $-\infty$ with target mass 0 contributes $0 \log 0 = 0$; with mass above 0 the loss is infinite.",
        "The same; loss and gradient at the other classes lie within their bounds.",
        "zero times infinity",
        equations=("2",),
        weight=Weight.FRAGILE,
    ),
    templates.convention(
        "cross_entropy",
        "no_target",
        "With no target to count, the loss is 0 and so is its gradient, for every reduction.",
        "loss over nothing",
        ("2",),
        ("https://github.com/pytorch/pytorch/issues/70348", "https://github.com/pytorch/pytorch/issues/116349"),
        weight=Weight.FRAGILE,
    ),
    templates.accuracy("cross_entropy"),
)

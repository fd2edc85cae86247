"""Requirements of perplexity (equation 41)."""

from veriformer.spec.requirement import Kind, Weight
from veriformer.spec.requirements import templates

REQUIREMENTS = (
    templates.contract("perplexity", ("41",)),
    templates.result_dtype("perplexity"),
    templates.equation(
        "perplexity",
        ("41",),
        r"$\exp(-\frac{1}{T} \sum_t \log p_{t, x_t})$ over the $T$ targets that are not ignored, of all axes together.",
    ),
    templates.gradient("perplexity", ("41",), r"$\bar z_t = \bar L \cdot \mathrm{PPL} \cdot (p_t - y_t) / T$."),
    templates.purity("perplexity"),
    templates.layout("perplexity"),
    *templates.refusals(
        "perplexity",
        "Missing tensors, shapes that do not match, no classes, and classes outside $[0, V)$ that are not ignored "
        "are refused.",
    ),
    templates.sensitivity("perplexity"),
    templates.numpy_numbers("perplexity"),
    templates.long("perplexity"),
    templates.law(
        "perplexity",
        "between",
        r"With $w_t = \max z_t - \min z_t$, the perplexity lies between the geometric means of $1 + (V - 1) "
        r"e^{-w_t}$, which is "
        r"above 1, and of $1 + (V - 1) e^{w_t}$.",
        "The same, widened by the bound on the result.",
        "out of bounds",
        equations=("41",),
        weight=Weight.WRONG,
    ),
    templates.law(
        "perplexity",
        "uniform",
        "Uniform logits over $V$ classes have perplexity $V$, whatever the targets.",
        "The same within the bound on the result.",
        "wrong base or scale",
        equations=("41",),
        weight=Weight.WRONG,
    ),
    templates.law(
        "perplexity",
        "counted",
        "Rows whose target is ignored may be left out, or hold other logits, and nothing changes.",
        "The same within the sum of both bounds; the gradient at ignored rows is 0.",
        "ignored targets that count",
        equations=("41",),
        weight=Weight.LEAK,
    ),
    templates.law(
        "perplexity",
        "partition",
        r"$T \log \mathrm{PPL} = \sum_k T_k \log \mathrm{PPL}_k$ for any split into parts of $T_k$ targets.",
        "The same within the sum of the bounds, carried through the logarithm.",
        "mean of means",
        equations=("41",),
        precedents=(
            "https://github.com/huggingface/transformers/issues/34138",
            "https://github.com/huggingface/transformers/issues/30975",
        ),
        weight=Weight.WRONG,
    ),
    templates.law(
        "perplexity",
        "range",
        "The formula has a value for logits of any size.",
        "Large logits of both signs, and so many targets that their losses add up beyond fp16, give a finite "
        "perplexity within "
        "its bound.",
        "overflow",
        kind=Kind.NUMERICS,
        equations=("41", "12"),
        weight=Weight.FRAGILE,
    ),
    templates.far_classes("perplexity", "$e^8$", ("41",)),
    templates.convention(
        "perplexity",
        "no_target",
        "With no target to count, the perplexity is 1 and its gradient 0.",
        "perplexity of nothing",
        ("41",),
        ("https://github.com/pytorch/pytorch/issues/70348",),
        weight=Weight.FRAGILE,
    ),
)

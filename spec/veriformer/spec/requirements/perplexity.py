"""Requirements of perplexity (equation 41)."""

from veriformer.spec.requirement import Weight
from veriformer.spec.requirements import templates

perplexity = templates.of("perplexity", "41")

REQUIREMENTS = (
    *perplexity.standard(
        "contract result_dtype equation gradient purity layout refusals sensitivity numpy_numbers long",
        equation=r"$\exp(-\frac{1}{T} \sum_t \log p_{t, x_t})$ over the $T$ targets that are not ignored, of all axes "
        "together.",
        gradient=r"$\bar z_t = \bar L \cdot \mathrm{PPL} \cdot (p_t - y_t) / T$.",
        refusals="Missing tensors, shapes that do not match, no classes, and classes outside "
        "$[0, V)$ that are not ignored are refused.",
    ),
    perplexity.wrong(
        "between",
        r"With $w_t = \max z_t - \min z_t$, the perplexity lies between the geometric means of $1 + (V - 1) e^{-w_t}$, "
        "which is above 1, and of $1 + (V - 1) e^{w_t}$.",
        "The same, widened by the bound on the result.",
        "out of bounds",
    ),
    perplexity.wrong(
        "uniform",
        "Uniform logits over $V$ classes have perplexity $V$, whatever the targets.",
        "The same within the bound on the result.",
        "wrong base or scale",
    ),
    perplexity.leak(
        "counted",
        "Rows whose target is ignored may be left out, or hold other logits, and nothing changes.",
        "The same within the sum of both bounds; the gradient at ignored rows is 0.",
        "ignored targets that count",
    ),
    perplexity.wrong(
        "partition",
        r"$T \log \mathrm{PPL} = \sum_k T_k \log \mathrm{PPL}_k$ for any split into parts of $T_k$ targets.",
        "The same within the sum of the bounds, carried through the logarithm.",
        "mean of means",
        "https://github.com/huggingface/transformers/issues/34138",
        "https://github.com/huggingface/transformers/issues/30975",
    ),
    perplexity.numerics(
        "range",
        "The formula has a value for logits of any size.",
        "Large logits of both signs, and so many targets that their losses add up beyond fp16, give a finite "
        "perplexity within its bound.",
        "overflow",
        equations=("41", "12"),
    ),
    perplexity.far_classes("$e^8$"),
    perplexity.convention(
        "no_target",
        "With no target to count, the perplexity is 1 and its gradient 0.",
        "perplexity of nothing",
        "https://github.com/pytorch/pytorch/issues/70348",
        weight=Weight.FRAGILE,
    ),
)

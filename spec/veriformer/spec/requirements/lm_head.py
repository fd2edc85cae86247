"""Requirements of the head of a language model (equation 40)."""

from veriformer.spec.requirement import Kind, Weight
from veriformer.spec.requirements import templates

REQUIREMENTS = (
    templates.contract("lm_head", ("40",)),
    templates.equation(
        "lm_head",
        ("40",),
        r"The logits are $h E^T$, neither scaled nor shifted.",
        ("https://github.com/ml-explore/mlx-examples/pull/591",),
    ),
    templates.gradient(
        "lm_head", ("40",), r"$\bar h = \bar z E$ and $\bar E = \bar z^T h$, summed over all positions."
    ),
    templates.purity("lm_head"),
    templates.layout("lm_head"),
    *templates.refusals("lm_head", "No tensor, widths that differ, tables that are no matrix, and mixed dtypes."),
    templates.batch("lm_head", "Positions are independent: each can be computed alone."),
    templates.sensitivity("lm_head"),
    templates.accuracy("lm_head"),
    templates.long("lm_head"),
    templates.law(
        "lm_head",
        "linearity",
        "Logits are linear in the features: those of a sum are the sum of the logits, and those of zero are zero.",
        "The same for sums that the dtype holds exactly, within the sum of all bounds; zero exactly.",
        "logits not linear",
        equations=("40",),
        weight=Weight.WRONG,
    ),
    templates.law(
        "lm_head",
        "one_hot",
        "A feature alone reads its column of the table.",
        "The same bit for bit.",
        "changed logits",
        equations=("40",),
        weight=Weight.WRONG,
    ),
    templates.law(
        "lm_head",
        "range",
        "Inner products are finite where their value is, though their parts may not be.",
        "Logits are finite and within their bound, in fp16.",
        "overflow in half precision",
        kind=Kind.NUMERICS,
        equations=("40",),
        weight=Weight.FRAGILE,
    ),
)

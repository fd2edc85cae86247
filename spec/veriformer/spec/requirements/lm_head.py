"""Requirements of the head of a language model (equation 40)."""

from veriformer.spec.requirement import Kind, Weight
from veriformer.spec.requirements import families

REQUIREMENTS = (
    families.contract("lm_head", ("40",)),
    families.equation(
        "lm_head",
        ("40",),
        r"The logits are $h E^T$, neither scaled nor shifted.",
        ("https://github.com/ml-explore/mlx-examples/pull/591",),
    ),
    families.gradient("lm_head", ("40",), r"$\bar h = \bar z E$ and $\bar E = \bar z^T h$, summed over all positions."),
    families.purity("lm_head"),
    families.layout("lm_head"),
    *families.refusals("lm_head", "No tensor, widths that differ, tables that are no matrix, and mixed dtypes."),
    families.batch("lm_head", "Positions are independent: each can be computed alone."),
    families.sensitivity("lm_head"),
    families.accuracy("lm_head"),
    families.long("lm_head"),
    families.law(
        "lm_head",
        "linearity",
        "Logits are linear in the features: those of a sum are the sum of the logits, and those of zero are zero.",
        "The same for sums that the dtype holds exactly, within the sum of all bounds; zero exactly.",
        "logits not linear",
        equations=("40",),
        weight=Weight.WRONG,
    ),
    families.law(
        "lm_head",
        "one_hot",
        "A feature alone reads its column of the table.",
        "The same bit for bit.",
        "changed logits",
        equations=("40",),
        weight=Weight.WRONG,
    ),
    families.law(
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

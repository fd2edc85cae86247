"""Requirements of the head of a language model (equation 40)."""

from veriformer.spec.requirements import templates

lm_head = templates.of("lm_head", "40")

REQUIREMENTS = (
    *lm_head.standard(
        "contract equation gradient purity layout refusals batch sensitivity accuracy long",
        equation=(
            r"The logits are $h E^T$, neither scaled nor shifted.",
            "https://github.com/ml-explore/mlx-examples/pull/591",
        ),
        gradient=r"$\bar h = \bar z E$ and $\bar E = \bar z^T h$, summed over all positions.",
        refusals="No tensor, widths that differ, tables that are no matrix, and mixed dtypes.",
        batch="Positions are independent: each can be computed alone.",
    ),
    lm_head.wrong(
        "linearity",
        "Logits are linear in the features: those of a sum are the sum of the logits, and those of zero are zero.",
        "The same for sums that the dtype holds exactly, within the sum of all bounds; zero exactly.",
        "logits not linear",
    ),
    lm_head.wrong(
        "one_hot", "A feature alone reads its column of the table.", "The same bit for bit.", "changed logits"
    ),
    lm_head.numerics(
        "range",
        "Inner products are finite where their value is, though their parts may not be.",
        "Logits are finite and within their bound, in fp16.",
        "overflow in half precision",
    ),
)

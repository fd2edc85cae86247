"""Requirements of T5's buckets of relative positions (document 002, section 6.3)."""

from veriformer.spec.requirement import Weight
from veriformer.spec.requirements import templates

t5_relative_position_bucket = templates.of("t5_relative_position_bucket")

REQUIREMENTS = (
    *t5_relative_position_bucket.standard(
        "contract equation purity layout refusals sensitivity numpy_numbers",
        equation=r"With $b$ buckets in a direction and $e = \lfloor b / 2 \rfloor$, a distance $x < e$ has its own "
        r"bucket, and one of $e$ or more $\min(b - 1, e + \lfloor (b - e) \log(x / e) / \log(M / e) \rfloor)$.",
        refusals="No integers, fewer than 4 buckets (2 in one direction), odd numbers in two directions, and a "
        "`max_distance` not above the exact range are refused.",
    ),
    t5_relative_position_bucket.wrong(
        "monotone",
        "Buckets never fall as the distance grows, and each direction uses every one of its own.",
        "The same exactly.",
        "buckets out of order",
    ),
    t5_relative_position_bucket.wrong(
        "saturating",
        "From `max_distance` on all distances share the last bucket, and the one before it is not the last.",
        "The same exactly.",
        "wrong last bucket",
    ),
    t5_relative_position_bucket.law(
        "exact_points",
        r"Where $(b - e) \log(x / e) / \log(M / e)$ is a whole number, the bucket begins there, and the distance "
        "before it belongs to the bucket before.",
        "The same exactly: no rounding of a logarithm moves a distance.",
        "logarithm rounded to the wrong side",
        weight=Weight.IMPRECISE,
    ),
    t5_relative_position_bucket.wrong(
        "directions",
        "In two directions keys ahead of the query have the buckets of those behind, moved by half of all; in one "
        "direction keys ahead are at distance 0.",
        "The same exactly.",
        "directions exchanged",
        "https://github.com/huggingface/transformers/pull/8518",
    ),
)

"""Requirements of temperature scaling (section 11.2)."""

from veriformer.spec.requirement import Kind
from veriformer.spec.requirements import families

TEMPERATURE_SCALE = (
    families.contract("temperature_scale"),
    families.equation("temperature_scale", (), r"$p = \mathrm{softmax}(z / T)$ over the last axis."),
    families.gradient("temperature_scale", (), r"$\bar z = p \odot (\bar p - \sum_j p_j \bar p_j) / T$."),
    families.purity("temperature_scale"),
    families.layout("temperature_scale"),
    *families.refusals(
        "temperature_scale",
        "A missing tensor, an empty last axis, and a temperature that is 0, negative, NaN, a bool or missing are "
        "refused.",
    ),
    families.batch("temperature_scale", "Rows are independent: each can be computed alone."),
    families.sensitivity("temperature_scale"),
    families.numpy_numbers("temperature_scale"),
    families.long("temperature_scale"),
    families.accuracy("temperature_scale"),
    families.law(
        "temperature_scale",
        "simplex",
        r"$p_i > 0$ and $\sum_i p_i = 1$ at every temperature.",
        r"$\hat p_i \ge 0$ and $|\sum_i \hat p_i - 1|$ is at most the sum of the bounds on the entries.",
        "probabilities that are none",
    ),
    families.law(
        "temperature_scale",
        "shift",
        "A number added to every score changes nothing at any temperature.",
        "For shifts up to a few binades below the largest exact integer, within the sum of both bounds.",
        "dependence on an offset",
    ),
    families.law(
        "temperature_scale",
        "units",
        "Scores and temperature have one unit: scaling both by $s > 0$ changes nothing.",
        "The same for powers of two, within the sum of both bounds.",
        "temperature in other units",
    ),
    families.law(
        "temperature_scale",
        "order",
        "Temperature keeps the order of the scores, and ties.",
        r"$z_i > z_j$ gives $\hat p_i \ge \hat p_j$, give or take both bounds; equal scores differ by at most both.",
        "order that changes with temperature",
    ),
    families.law(
        "temperature_scale",
        "conservation",
        "A gradient sums to 0 along the last axis, since probabilities always sum to 1.",
        r"$|\sum_i \hat{\bar z}_i|$ is at most the sum of the bounds on the entries.",
        "gradient that does not conserve",
    ),
    families.law(
        "temperature_scale",
        "cold",
        r"As $T \to 0$ the largest scores share all probability evenly, and what is not largest has none.",
        "At temperatures down to the smallest number of fp64, also below the range of the dtype, within the bound.",
        "overflow at low temperature",
        kind=Kind.NUMERICS,
        precedents=("https://github.com/tenstorrent/tt-metal/pull/10001",),
    ),
    families.law(
        "temperature_scale",
        "hot",
        r"As $T \to \infty$ all classes become equally probable.",
        r"At temperatures of $2^{40}$ times the spread of the scores every entry is $1/V$ within its bound.",
        "temperature that does not flatten",
        kind=Kind.NUMERICS,
    ),
    families.law(
        "temperature_scale",
        "range",
        "The formula has a value for scores of any size.",
        "Scores near the largest number of the dtype, of either sign, give result and gradient within their bounds.",
        "overflow",
        kind=Kind.NUMERICS,
        precedents=("https://github.com/tenstorrent/tt-metal/pull/10001",),
    ),
)

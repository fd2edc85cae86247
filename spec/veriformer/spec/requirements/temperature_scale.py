"""Requirements of temperature scaling (section 11.2)."""

from veriformer.spec.requirements import templates

temperature_scale = templates.of("temperature_scale")

REQUIREMENTS = (
    *temperature_scale.standard(
        "contract equation gradient purity layout refusals batch sensitivity numpy_numbers long accuracy",
        equation=r"$p = \mathrm{softmax}(z / T)$ over the last axis.",
        gradient=r"$\bar z = p \odot (\bar p - \sum_j p_j \bar p_j) / T$.",
        refusals="A missing tensor, an empty last axis, and a temperature that is 0, negative, NaN, a bool or missing "
        "are refused.",
        batch="Rows are independent: each can be computed alone.",
    ),
    temperature_scale.wrong(
        "simplex",
        r"$p_i > 0$ and $\sum_i p_i = 1$ at every temperature.",
        r"$\hat p_i \ge 0$ and $|\sum_i \hat p_i - 1|$ is at most the sum of the bounds on the entries.",
        "probabilities that are none",
    ),
    temperature_scale.wrong(
        "shift",
        "A number added to every score changes nothing at any temperature.",
        "For shifts up to a few binades below the largest exact integer, within the sum of both bounds.",
        "dependence on an offset",
    ),
    temperature_scale.wrong(
        "units",
        "Scores and temperature have one unit: scaling both by $s > 0$ changes nothing.",
        "The same for powers of two, within the sum of both bounds.",
        "temperature in other units",
    ),
    temperature_scale.wrong(
        "order",
        "Temperature keeps the order of the scores, and ties.",
        r"$z_i > z_j$ gives $\hat p_i \ge \hat p_j$, give or take both bounds; equal scores differ by at most both.",
        "order that changes with temperature",
    ),
    temperature_scale.wrong(
        "conservation",
        "A gradient sums to 0 along the last axis, since probabilities always sum to 1.",
        r"$|\sum_i \hat{\bar z}_i|$ is at most the sum of the bounds on the entries.",
        "gradient that does not conserve",
    ),
    temperature_scale.numerics(
        "cold",
        r"As $T \to 0$ the largest scores share all probability evenly, and what is not largest has none.",
        "At temperatures down to the smallest number of fp64, also below the range of the dtype, within the bound.",
        "overflow at low temperature",
        "https://github.com/tenstorrent/tt-metal/pull/10001",
    ),
    temperature_scale.numerics(
        "hot",
        r"As $T \to \infty$ all classes become equally probable.",
        r"At temperatures of $2^{40}$ times the spread of the scores every entry is $1/V$ within its bound.",
        "temperature that does not flatten",
    ),
    temperature_scale.numerics(
        "range",
        "The formula has a value for scores of any size.",
        "Scores near the largest number of the dtype, of either sign, give result and gradient within their bounds.",
        "overflow",
        "https://github.com/tenstorrent/tt-metal/pull/10001",
    ),
)

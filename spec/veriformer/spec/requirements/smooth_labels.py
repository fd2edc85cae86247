"""Requirements of label smoothing (equation 48)."""

from veriformer.spec.requirements import templates

smooth_labels = templates.of("smooth_labels", "48")

_TWICE = "https://github.com/TimDettmers/ConvE/issues/55"

REQUIREMENTS = (
    *smooth_labels.standard(
        "contract result_dtype equation purity layout refusals batch sensitivity numpy_numbers long",
        equation=(r"$y_c = (1 - \alpha) [c = t] + \alpha / V$.", _TWICE),
        refusals=r"A missing target, classes outside $[0, V)$, fewer than one class, $\alpha$ outside "
        "$[0, 1]$, and bools for numbers are refused.",
        batch="Rows are independent: each can be smoothed alone.",
    ),
    smooth_labels.wrong(
        "simplex",
        "Each row is a distribution: not negative, and of sum 1.",
        r"$\hat y \ge 0$, and $|\sum_c \hat y_c - 1|$ is at most the sum of the bounds on the entries.",
        "smoothed targets that do not sum to 1",
        _TWICE,
    ),
    smooth_labels.wrong(
        "mixture",
        r"$y_\alpha = (1 - \alpha) y_0 + \alpha y_1$: smoothing is linear between one-hot and uniform.",
        "The same within the sum of the three bounds.",
        "wrong label smoothing",
    ),
    smooth_labels.wrong(
        "relabelling",
        "Classes are names: permuting them permutes the columns.",
        "The same within the sum of both bounds.",
        "a class that is treated apart",
        "https://github.com/OpenNMT/OpenNMT-py/issues/1463",
    ),
)

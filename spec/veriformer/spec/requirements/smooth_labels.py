"""Requirements of label smoothing (equation 48)."""

from veriformer.spec.requirement import Weight
from veriformer.spec.requirements import templates

_TWICE = ("https://github.com/TimDettmers/ConvE/issues/55",)

REQUIREMENTS = (
    templates.contract("smooth_labels", ("48",)),
    templates.result_dtype("smooth_labels"),
    templates.equation("smooth_labels", ("48",), r"$y_c = (1 - \alpha) [c = t] + \alpha / V$.", _TWICE),
    templates.purity("smooth_labels"),
    templates.layout("smooth_labels"),
    *templates.refusals(
        "smooth_labels",
        r"A missing target, classes outside $[0, V)$, fewer than one class, $\alpha$ outside $[0, 1]$, and bools for "
        "numbers are refused.",
    ),
    templates.batch("smooth_labels", "Rows are independent: each can be smoothed alone."),
    templates.sensitivity("smooth_labels"),
    templates.numpy_numbers("smooth_labels"),
    templates.long("smooth_labels"),
    templates.law(
        "smooth_labels",
        "simplex",
        "Each row is a distribution: not negative, and of sum 1.",
        r"$\hat y \ge 0$, and $|\sum_c \hat y_c - 1|$ is at most the sum of the bounds on the entries.",
        "smoothed targets that do not sum to 1",
        equations=("48",),
        precedents=_TWICE,
        weight=Weight.WRONG,
    ),
    templates.law(
        "smooth_labels",
        "mixture",
        r"$y_\alpha = (1 - \alpha) y_0 + \alpha y_1$: smoothing is linear between one-hot and uniform.",
        "The same within the sum of the three bounds.",
        "wrong label smoothing",
        equations=("48",),
        weight=Weight.WRONG,
    ),
    templates.law(
        "smooth_labels",
        "relabelling",
        "Classes are names: permuting them permutes the columns.",
        "The same within the sum of both bounds.",
        "a class that is treated apart",
        equations=("48",),
        precedents=("https://github.com/OpenNMT/OpenNMT-py/issues/1463",),
        weight=Weight.WRONG,
    ),
)

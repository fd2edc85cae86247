"""Requirements of dropout (equations 46 and 47)."""

from veriformer.spec.requirements import templates

dropout = templates.of("dropout", "46")

_CHANCE = "The same but for one run in 1e9."

REQUIREMENTS = (
    *dropout.standard(
        "contract equation gradient purity layout refusals numpy_numbers",
        equation="Outside training, and with $p = 0$, the result is $x$; with $p = 1$ it is zero.",
        gradient="The gradient is the cotangent outside training, and zero with $p = 1$.",
        refusals="No tensor, probabilities outside [0, 1], also outside training, and bad flags.",
    ),
    dropout.wrong(
        "scale",
        "In training, which is the default, each entry is 0 or $x / (1 - p)$, and the gradient goes through the same "
        "mask: it is 0 where the entry was dropped and $g / (1 - p)$ where it was kept.",
        "The mask is read from the result; under it result and gradient are within their bounds.",
        "wrong scale",
        equations=("46", "47"),
    ),
    dropout.wrong(
        "rate",
        "Each entry is kept with probability $1 - p$.",
        f"{_CHANCE} The share of kept entries is judged by Chernoff's bound.",
        "wrong rate",
    ),
    dropout.wrong(
        "independence",
        "Entries are dropped one by one, each independently of all others.",
        f"{_CHANCE} Pairs at several distances along each axis, and pairs alone, are kept alike as often as "
        "chance has it.",
        "entries dropped together",
    ),
    dropout.wrong(
        "generator",
        "Equal states of the generator, or of PyTorch's global one, give equal masks for equal shapes, whether or not "
        "gradients are asked for; a state that has moved on gives another mask.",
        f"{_CHANCE}",
        "mask not reproducible",
    ),
)

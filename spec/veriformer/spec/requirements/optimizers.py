"""Requirements of the optimizers (equations 3 and 5 to 9, and decoupled decay)."""

from __future__ import annotations

from veriformer.spec.requirement import Kind, Requirement, Weight
from veriformer.spec.requirements import templates

_RUN_BOUND = (
    "Every entry of every parameter after every step lies within the running error bound of the formula, applied step "
    "by step from the start."
)


def _common(
    operation: str, equations: tuple[str, ...], statement: str, refused: str, precedents: tuple[str, ...] = ()
) -> tuple[Requirement, ...]:
    """Return the requirements on every optimizer."""
    return (
        templates.contract(operation, equations),
        templates.equation(
            operation,
            equations,
            f"{statement} That holds for runs of any gradients, with steps at which some of them are missing, zeroed "
            "gradients, and states saved and loaded on the way.",
            precedents,
        ),
        *templates.refusals(operation, refused),
        templates.sensitivity(operation),
        templates.numpy_numbers(operation),
        templates.law(
            operation,
            "long_run",
            "The formula holds over hundreds of steps as it does over one, and over thousands.",
            f"{_RUN_BOUND} Thousands of steps of Adam under one gradient end where as many equal steps do.",
            "drift",
            kind=Kind.EQUATION,
            equations=equations,
            weight=Weight.WRONG,
        ),
        templates.law(
            operation,
            "resume",
            "A run that is saved and goes on, with a new optimizer made with other options or with one that stepped "
            "astray meanwhile, is the run that was never interrupted.",
            "The same bit for bit, for parameters that are contiguous in memory; the uninterrupted run lies within "
            "its bounds.",
            "state that is not restored",
            equations=equations,
            precedents=("https://github.com/tenstorrent/tt-metal/issues/53212",),
            weight=Weight.WRONG,
        ),
        templates.law(
            operation,
            "gaps",
            "A parameter without a gradient is skipped: it stays, and its next step is the one that it would have "
            "taken, its step count included.",
            "It stays bit for bit; the steps that it takes are, within the sum of both bounds, those of a run without "
            "gaps.",
            "a skipped parameter that moves",
            equations=equations,
            weight=Weight.WRONG,
        ),
        templates.law(
            operation,
            "independence",
            "Each parameter is updated by its own gradients alone, whatever others are trained with it, in any order.",
            "Runs of all parameters, of all in another order, and of each alone differ by at most the sums of their "
            "bounds.",
            "parameters that share a state",
            equations=equations,
            weight=Weight.LEAK,
        ),
        templates.contract_case(
            operation,
            "gradients_kept",
            "A step changes parameters in place and leaves their gradients as they are; after `zero_grad` there are "
            "none.",
            "modified gradient",
            equations,
            weight=Weight.WRONG,
        ),
        templates.contract_case(
            operation,
            "no_rate",
            "With a learning rate of 0 nothing moves.",
            "steps without a rate",
            equations,
            weight=Weight.WRONG,
        ),
        templates.law(
            operation,
            "half_precision",
            "Parameters in half precision stay finite where the formula's are.",
            "The same for gradients of 0, tiny ones, and ones whose squares leave the range of fp16.",
            "overflow in half precision",
            kind=Kind.CONTRACT,
            equations=equations,
            weight=Weight.FRAGILE,
        ),
    )


def _adaptive(operation: str, equations: tuple[str, ...]) -> tuple[Requirement, ...]:
    """Return the requirements that Adam and AdamW share."""
    return (
        templates.law(
            operation,
            "constant_gradient",
            r"Under one gradient $g$, and without decay, every step from the first on is "
            r"$\eta\, g / (|g| + \epsilon)$: of length $\eta$, however large $g$ is.",
            "The sum of the steps lies within the bound of the run, and that of this product.",
            "bias that is not corrected",
            equations=("9",),
            precedents=("https://github.com/kozistr/AdaBound-tensorflow/issues/3",),
            weight=Weight.WRONG,
        ),
        templates.law(
            operation,
            "scale",
            r"Gradients and $\epsilon$ that are $c > 0$ times as large give the same steps.",
            "The same for powers of two, within the sum of both bounds.",
            "steps that depend on the loss's scale",
            equations=("9",),
            precedents=("https://github.com/d2l-ai/d2l-zh/pull/502",),
            weight=Weight.WRONG,
        ),
        templates.law(
            operation,
            "step_bound",
            r"Without decay no step is longer than $\eta \frac{\sqrt{1 - \beta_2^t}}{1 - \beta_1^t} \sqrt{\sum_i "
            r"\frac{((1 - \beta_1) \beta_1^{t-i})^2}{(1 - \beta_2) \beta_2^{t-i}}}$ (Cauchy and Schwarz), whatever the "
            "gradients.",
            "The same, give or take the bounds on the two parameters that the step lies between.",
            "steps without bound",
            equations=("9",),
            weight=Weight.WRONG,
        ),
        templates.convention(
            operation,
            "eps",
            r"$\epsilon$ is added to $\sqrt{\hat v}$: after the root and after the correction.",
            "misplaced epsilon",
            equations,
            ("https://github.com/d2l-ai/d2l-zh/pull/502", "https://github.com/tensorflow/tensorflow/issues/9047"),
            weight=Weight.WRONG,
        ),
    )


GRADIENT_DESCENT = (
    *_common(
        "gradient_descent",
        ("3",),
        r"$\theta \leftarrow \theta - \eta\, g$ for every parameter that has a gradient.",
        "No parameters, what is no tensor among them, and a rate that is negative or no number are refused.",
    ),
    templates.law(
        "gradient_descent",
        "sum",
        "Where a run ends depends on the sum of its gradients alone, not on their order.",
        r"$\theta - \eta \sum_t g_t$ within the bound of the run, and that of this expression.",
        "steps that remember",
        equations=("3",),
        weight=Weight.WRONG,
    ),
)

SGD_MOMENTUM = (
    *_common(
        "sgd_momentum",
        ("5", "6"),
        r"$v \leftarrow \beta v + (1 - \beta)\, g$ from $v = 0$, then $\theta \leftarrow \theta - \eta v$.",
        r"No parameters, what is no tensor among them, a negative rate, and a $\beta$ outside [0, 1) are refused.",
        (
            "https://github.com/PaddlePaddle/Paddle/pull/12231",
            "https://github.com/ml-explore/mlx/pull/87",
        ),
    ),
    templates.law(
        "sgd_momentum",
        "closed_form",
        r"A run ends at $\theta - \eta \sum_i (1 - \beta^{T-i+1})\, g_i$: each gradient is spent over all later steps.",
        "The same within the bound of the run, and that of this expression.",
        "wrong velocity",
        equations=("5", "6"),
        precedents=("https://github.com/PaddlePaddle/Paddle/pull/12231",),
        weight=Weight.WRONG,
    ),
    templates.convention(
        "sgd_momentum",
        "first_velocity",
        r"The velocity is damped from the first step on, which is $(1 - \beta)\, \eta\, g$.",
        "another first velocity",
        ("5",),
        weight=Weight.WRONG,
    ),
    templates.convention(
        "sgd_momentum",
        "gradient_weight",
        r"Every gradient enters the velocity with the weight $1 - \beta$.",
        "undamped gradients",
        ("5",),
        weight=Weight.WRONG,
    ),
)

_ADAM_REFUSED = (
    r"No parameters, what is no tensor among them, $\beta$ outside [0, 1), and a rate, an $\epsilon$ or a decay that "
    "is negative or no number are refused."
)

ADAM = (
    *_common(
        "adam",
        ("7", "8", "9"),
        r"$\theta \leftarrow \theta - \eta\, \hat m / (\sqrt{\hat v} + \epsilon)$ with the averages $m$ and $v$ of the "
        r"gradients $g + \lambda \theta$ and of their squares, divided by $1 - \beta^t$.",
        _ADAM_REFUSED,
        (
            "https://github.com/flagos-ai/FlagGems/issues/4988",
            "https://github.com/d2l-ai/d2l-zh/pull/502",
            "https://github.com/kozistr/AdaBound-tensorflow/issues/3",
        ),
    ),
    *_adaptive("adam", ("9",)),
    templates.law(
        "adam",
        "l2",
        r"Decay is L2: a first step with decay $\lambda$ is one without, of the gradient $g + \lambda \theta$.",
        r"The same within the sum of both bounds, for $\theta$, $g$ and $\lambda$ whose sum and product are exact.",
        "decay that passes by the averages",
        equations=("9",),
        precedents=("https://github.com/flagos-ai/FlagGems/issues/4988",),
        weight=Weight.WRONG,
    ),
)

ADAMW = (
    *_common(
        "adamw",
        (),
        r"$\theta \leftarrow (1 - \eta \lambda)\, \theta - \eta\, \hat m / (\sqrt{\hat v} + \epsilon)$ with the "
        "averages of the gradients alone.",
        _ADAM_REFUSED,
        ("https://github.com/pytorch/pytorch/pull/4429",),
    ),
    *_adaptive("adamw", ()),
    templates.law(
        "adamw",
        "decay",
        r"Under gradients of 0, $T$ steps leave $(1 - \eta \lambda)^T\, \theta$.",
        "The same within the bound of the run, and that of this product.",
        "decay that is not times the rate, or not decoupled",
        precedents=("https://github.com/pytorch/pytorch/pull/4429",),
        weight=Weight.WRONG,
    ),
)

REQUIREMENTS = (*GRADIENT_DESCENT, *SGD_MOMENTUM, *ADAM, *ADAMW)

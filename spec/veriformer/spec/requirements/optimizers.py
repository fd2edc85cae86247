"""Requirements of the optimizers (equations 3 and 5 to 9, and decoupled decay)."""

from veriformer.spec.requirement import Kind
from veriformer.spec.requirements.templates import CASE, CLAIMED, POWERS_OF_TWO, fragile, leak, of, wrong

_FAMILIES = "contract equation refusals sensitivity numpy_numbers"
_RUNS = (
    " That holds for runs of any gradients, with steps at which some of them are missing, zeroed gradients, and states "
    "saved and loaded on the way."
)

_COMMON = {
    "long_run": wrong(
        "The formula holds over hundreds of steps as it does over one, and over thousands.",
        "Every entry of every parameter after every step lies within the running error bound of the formula, applied "
        "step by step from the start. Thousands of steps of Adam under one gradient end where as many equal steps do.",
        "drift",
        kind=Kind.EQUATION,
    ),
    "resume": wrong(
        "A run that is saved and goes on, with a new optimizer made with other options or with one that stepped "
        "astray meanwhile, is the run that was never interrupted.",
        "The same bit for bit, for parameters that are contiguous in memory; the uninterrupted run lies within its "
        "bounds.",
        "state that is not restored",
        "https://github.com/tenstorrent/tt-metal/issues/53212",
    ),
    "gaps": wrong(
        "A parameter without a gradient is skipped: it stays, and its next step is the one that it would have "
        "taken, its step count included.",
        "It stays bit for bit; the steps that it takes are, within the sum of both bounds, those of a run without "
        "gaps.",
        "a skipped parameter that moves",
    ),
    "independence": leak(
        "Each parameter is updated by its own gradients alone, whatever others are trained with it, in any order.",
        "Runs of all parameters, of all in another order, and of each alone differ by at most the sums of their "
        "bounds.",
        "parameters that share a state",
    ),
    "gradients_kept": CASE.wrong(
        "A step changes parameters in place and leaves their gradients as they are; after `zero_grad` there are none.",
        "modified gradient",
    ),
    "no_rate": CASE.wrong("With a learning rate of 0 nothing moves.", "steps without a rate"),
    "half_precision": fragile(
        "Parameters in half precision stay finite where the formula's are.",
        "The same for gradients of 0, tiny ones, and ones whose squares leave the range of fp16.",
        "overflow in half precision",
        kind=Kind.CONTRACT,
    ),
}
_ADAPTIVE = {
    "constant_gradient": wrong(
        "Under one gradient $g$, and without decay, every step from the first on is "
        r"$\eta\, g / (|g| + \epsilon)$: of length $\eta$, however large $g$ is.",
        "The sum of the steps lies within the bound of the run, and that of this product.",
        "bias that is not corrected",
        "https://github.com/kozistr/AdaBound-tensorflow/issues/3",
        equations=("9",),
    ),
    "scale": POWERS_OF_TWO.wrong(
        r"Gradients and $\epsilon$ that are $c > 0$ times as large give the same steps.",
        "steps that depend on the loss's scale",
        "https://github.com/d2l-ai/d2l-zh/pull/502",
        equations=("9",),
    ),
    "step_bound": wrong(
        r"Without decay no step is longer than $\eta \frac{\sqrt{1 - \beta_2^t}}{1 - \beta_1^t} \sqrt{\sum_i "
        r"\frac{((1 - \beta_1) \beta_1^{t-i})^2}{(1 - \beta_2) "
        r"\beta_2^{t-i}}}$ (Cauchy and Schwarz), whatever the gradients.",
        "The same, give or take the bounds on the two parameters that the step lies between.",
        "steps without bound",
        equations=("9",),
    ),
    "eps": CLAIMED.wrong(
        r"$\epsilon$ is added to $\sqrt{\hat v}$: after the root and after the correction.",
        "misplaced epsilon",
        "https://github.com/d2l-ai/d2l-zh/pull/502",
        "https://github.com/tensorflow/tensorflow/issues/9047",
    ),
}

GRADIENT_DESCENT = of("gradient_descent", "3").standard(
    _FAMILIES,
    equation=r"$\theta \leftarrow \theta - \eta\, g$ for every parameter that has a gradient." + _RUNS,
    refusals="No parameters, what is no tensor among them, and a rate that is negative or no number are refused.",
    **_COMMON,
    sum=wrong(
        "Where a run ends depends on the sum of its gradients alone, not on their order.",
        r"$\theta - \eta \sum_t g_t$ within the bound of the run, and that of this expression.",
        "steps that remember",
    ),
)

SGD_MOMENTUM = of("sgd_momentum", "5", "6").standard(
    _FAMILIES,
    equation=(
        r"$v \leftarrow \beta v + (1 - \beta)\, g$ from $v = 0$, then $\theta \leftarrow \theta - \eta v$." + _RUNS,
        "https://github.com/PaddlePaddle/Paddle/pull/12231",
        "https://github.com/ml-explore/mlx/pull/87",
    ),
    refusals=r"No parameters, what is no tensor among them, a negative rate, and a $\beta$ outside [0, 1) are refused.",
    **_COMMON,
    closed_form=wrong(
        r"A run ends at $\theta - \eta \sum_i (1 - \beta^{T-i+1})\, g_i$: each gradient is spent over all later steps.",
        "The same within the bound of the run, and that of this expression.",
        "wrong velocity",
        "https://github.com/PaddlePaddle/Paddle/pull/12231",
    ),
    first_velocity=CLAIMED.wrong(
        r"The velocity is damped from the first step on, which is $(1 - \beta)\, \eta\, g$.",
        "another first velocity",
        equations=("5",),
    ),
    gradient_weight=CLAIMED.wrong(
        r"Every gradient enters the velocity with the weight $1 - \beta$.", "undamped gradients", equations=("5",)
    ),
)

_ADAM_REFUSED = (
    r"No parameters, what is no tensor among them, $\beta$ outside "
    r"[0, 1), and a rate, an $\epsilon$ or a decay that is negative or no number are refused."
)

ADAM = of("adam", "7", "8", "9", eps=("9",)).standard(
    _FAMILIES,
    equation=(
        r"$\theta \leftarrow \theta - \eta\, \hat m / (\sqrt{\hat v} + \epsilon)$ with the averages $m$ and $v$ of the "
        r"gradients $g + \lambda \theta$ and of their squares, divided by $1 - \beta^t$." + _RUNS,
        "https://github.com/flagos-ai/FlagGems/issues/4988",
        "https://github.com/d2l-ai/d2l-zh/pull/502",
        "https://github.com/kozistr/AdaBound-tensorflow/issues/3",
    ),
    refusals=_ADAM_REFUSED,
    **_COMMON,
    **_ADAPTIVE,
    l2=wrong(
        r"Decay is L2: a first step with decay $\lambda$ is one without, of the gradient $g + \lambda \theta$.",
        r"The same within the sum of both bounds, for $\theta$, $g$ and $\lambda$ whose sum and product are exact.",
        "decay that passes by the averages",
        "https://github.com/flagos-ai/FlagGems/issues/4988",
        equations=("9",),
    ),
)

ADAMW = of("adamw").standard(
    _FAMILIES,
    equation=(
        r"$\theta \leftarrow (1 - \eta \lambda)\, \theta - \eta\, \hat m / (\sqrt{\hat v} + \epsilon)$ with the "
        "averages of the gradients alone." + _RUNS,
        "https://github.com/pytorch/pytorch/pull/4429",
    ),
    refusals=_ADAM_REFUSED,
    **_COMMON,
    **_ADAPTIVE,
    decay=wrong(
        r"Under gradients of 0, $T$ steps leave $(1 - \eta \lambda)^T\, \theta$.",
        "The same within the bound of the run, and that of this product.",
        "decay that is not times the rate, or not decoupled",
        "https://github.com/pytorch/pytorch/pull/4429",
    ),
)

REQUIREMENTS = (*GRADIENT_DESCENT, *SGD_MOMENTUM, *ADAM, *ADAMW)

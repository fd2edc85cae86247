"""Requirements of the schedules, and of any schedule used as PyTorch's ``LRScheduler`` is, whatever its formula."""

from veriformer.spec.requirements.templates import BOTH, CASE, CLAIMED, POWERS_OF_TWO, Relation, of, wrong

_BITS = Relation("The same bit for bit, at every step.")

LR_SCHEDULER = of("lr_scheduler").standard(
    contract=CASE.wrong(
        "Built on an optimizer it sets finite rates; after $t$ steps `last_epoch` is $t$, and `get_last_lr` gives the "
        "rates of the groups.",
        "count or rates that are one step apart",
        rests=(),
    ),
    resume=_BITS.wrong(
        "A new schedule that loads the saved state, on an optimizer that did, goes on as one that was not interrupted.",
        "state that is not restored",
    ),
    groups=_BITS.wrong(
        "The rates of a group follow from its own first rate: they are those that it has alone.",
        "groups that share a rate",
    ),
    closed_form=Relation(
        "At every step their distance is at most the spread that random errors of one roundoff in the rates make in "
        "the recursion, times a factor that right schedules exceed once in ten million judgements."
    ).wrong("Where it has a closed form besides the recursion, both give the same rates.", "forms that part"),
)

_FIRST_STEP = CLAIMED.wrong(
    "Steps count from 0, and the rate of step 0 of a warmup is 0.", "steps counted from elsewhere"
)

_FAMILIES = "contract equation refusals sensitivity numpy_numbers"
_SLOPES = Relation("The same, give or take the bounds of the rates compared.")
_LINEAR_IN_RATE = POWERS_OF_TWO.wrong(
    r"The rate is $\eta_{\max}$ times a number that does not depend on it.",
    "forgotten largest rate",
    "https://github.com/espnet/espnet/pull/2088",
)

# Equation 10, and section 9.3 of documents 000 and 001.
WARMUP = of("warmup", "10").standard(
    _FAMILIES,
    equation=(
        r"$\eta_t = \eta_{\max} \min(t / T, 1)$, and $\eta_{\max}$ at once where $T = 0$; a float.",
        "https://github.com/espnet/espnet/pull/2088",
    ),
    refusals="Negative steps, what is no int for a step, and what is no number for a rate are refused.",
    line=_SLOPES.wrong(
        r"During the warmup the rate grows by $\eta_{\max} / T$ at each step; after it, it is $\eta_{\max}$.",
        "bend in the line",
    ),
    linear_in_rate=_LINEAR_IN_RATE,
    first_step=_FIRST_STEP,
)

WARMUP_COSINE = of("warmup_cosine").standard(
    _FAMILIES,
    equation=(
        r"The rate of the warmup up to $T_w$, then $\frac12 \eta_{\max} (1 + \cos \pi \frac{t - T_w}{T - T_w})$ up to "
        "$T$, and 0 from there on; a float.",
        "https://github.com/deepspeedai/DeepSpeed/pull/5287",
    ),
    refusals="Negative steps, $T < T_w$, what is no int for a step, and what is no number for a rate are refused.",
    pieces=_SLOPES.wrong(
        r"The rate rises up to $T_w$, where it is $\eta_{\max}$, and falls from there to $T$.",
        "rate that turns too early or too late",
        "https://github.com/deepspeedai/DeepSpeed/pull/5287",
    ),
    symmetry=BOTH.wrong(
        r"The decay is point-symmetric: the rates as far from its start and from its end sum to $\eta_{\max}$.",
        "another curve",
    ),
    end=wrong(
        "From step $T$ on the rate is 0.",
        "The same exactly, while the rate of the step before is not.",
        "rate that rises again",
    ),
    linear_in_rate=_LINEAR_IN_RATE,
    first_step=_FIRST_STEP,
)

NOAM = of("noam").standard(
    _FAMILIES,
    equation=(
        r"$\eta_t = d^{-1/2} \min(t^{-1/2}, t\, T^{-3/2})$ for steps from 1; a float.",
        "https://github.com/tugstugi/pytorch-saltnet/issues/7",
    ),
    refusals="Steps, widths and warmups below 1, and what is no int, are refused.",
    peak=_SLOPES.wrong(
        r"The rate rises up to step $T$, where it is $(d\, T)^{-1/2}$, and falls after it.",
        "peak that lies elsewhere",
        "https://github.com/tugstugi/pytorch-saltnet/issues/7",
    ),
    width=BOTH.wrong("Four times the width halves the rate.", "wrong scale"),
    stretch=BOTH.wrong("Four times the warmup, at four times the step, halves the rate.", "wrong exponent"),
)

REQUIREMENTS = (*LR_SCHEDULER, *WARMUP, *WARMUP_COSINE, *NOAM)

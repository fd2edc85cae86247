"""Requirements of the schedules (equation 10, and section 9.3 of documents 000 and 001)."""

from __future__ import annotations

from veriformer.spec.requirement import Requirement, Weight
from veriformer.spec.requirements import templates

warmup = templates.of("warmup", "10")
warmup_cosine = templates.of("warmup_cosine")
noam = templates.of("noam")


def _common(
    of: templates.Templates, statement: str, refused: str, precedents: tuple[str, ...] = ()
) -> tuple[Requirement, ...]:
    return of.standard(
        "contract equation refusals sensitivity numpy_numbers", equation=(statement, *precedents), refusals=refused
    )


def _first_step(of: templates.Templates) -> Requirement:
    return of.convention(
        "first_step",
        "Steps count from 0, and the rate of step 0 of a warmup is 0.",
        "steps counted from elsewhere",
        weight=Weight.WRONG,
    )


_SLOPES = "The same, give or take the bounds of the rates compared."

WARMUP = (
    *_common(
        warmup,
        r"$\eta_t = \eta_{\max} \min(t / T, 1)$, and $\eta_{\max}$ at once where $T = 0$; a float.",
        "Negative steps, what is no int for a step, and what is no number for a rate are refused.",
        ("https://github.com/espnet/espnet/pull/2088",),
    ),
    warmup.wrong(
        "line",
        r"During the warmup the rate grows by $\eta_{\max} / T$ at each step; after it, it is $\eta_{\max}$.",
        _SLOPES,
        "bend in the line",
    ),
    warmup.wrong(
        "linear_in_rate",
        r"The rate is $\eta_{\max}$ times a number that does not depend on it.",
        "The same for powers of two, within the sum of both bounds.",
        "forgotten largest rate",
        "https://github.com/espnet/espnet/pull/2088",
    ),
    _first_step(warmup),
)

WARMUP_COSINE = (
    *_common(
        warmup_cosine,
        r"The rate of the warmup up to $T_w$, then $\frac12 \eta_{\max} (1 + \cos \pi \frac{t - T_w}{T - T_w})$ up to "
        "$T$, and 0 from there on; a float.",
        "Negative steps, $T < T_w$, what is no int for a step, and what is no number for a rate are refused.",
        ("https://github.com/deepspeedai/DeepSpeed/pull/5287",),
    ),
    warmup_cosine.wrong(
        "pieces",
        r"The rate rises up to $T_w$, where it is $\eta_{\max}$, and falls from there to $T$.",
        _SLOPES,
        "rate that turns too early or too late",
        "https://github.com/deepspeedai/DeepSpeed/pull/5287",
    ),
    warmup_cosine.wrong(
        "symmetry",
        r"The decay is point-symmetric: the rates as far from its start and from its end sum to $\eta_{\max}$.",
        "The same within the sum of both bounds.",
        "another curve",
    ),
    warmup_cosine.wrong(
        "end",
        "From step $T$ on the rate is 0.",
        "The same exactly, while the rate of the step before is not.",
        "rate that rises again",
    ),
    warmup_cosine.wrong(
        "linear_in_rate",
        r"The rate is $\eta_{\max}$ times a number that does not depend on it.",
        "The same for powers of two, within the sum of both bounds.",
        "forgotten largest rate",
        "https://github.com/espnet/espnet/pull/2088",
    ),
    _first_step(warmup_cosine),
)

NOAM = (
    *_common(
        noam,
        r"$\eta_t = d^{-1/2} \min(t^{-1/2}, t\, T^{-3/2})$ for steps from 1; a float.",
        "Steps, widths and warmups below 1, and what is no int, are refused.",
        ("https://github.com/tugstugi/pytorch-saltnet/issues/7",),
    ),
    noam.wrong(
        "peak",
        r"The rate rises up to step $T$, where it is $(d\, T)^{-1/2}$, and falls after it.",
        _SLOPES,
        "peak that lies elsewhere",
        "https://github.com/tugstugi/pytorch-saltnet/issues/7",
    ),
    noam.wrong(
        "width", "Four times the width halves the rate.", "The same within the sum of both bounds.", "wrong scale"
    ),
    noam.wrong(
        "stretch",
        "Four times the warmup, at four times the step, halves the rate.",
        "The same within the sum of both bounds.",
        "wrong exponent",
    ),
)

REQUIREMENTS = (*WARMUP, *WARMUP_COSINE, *NOAM)

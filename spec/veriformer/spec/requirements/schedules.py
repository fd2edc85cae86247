"""Requirements of the schedules (equation 10, and section 9.3 of documents 000 and 001)."""

from __future__ import annotations

from veriformer.spec.requirement import Requirement, Weight
from veriformer.spec.requirements import templates


def _common(
    operation: str, equations: tuple[str, ...], statement: str, refused: str, precedents: tuple[str, ...] = ()
) -> tuple[Requirement, ...]:
    return (
        templates.contract(operation, equations),
        templates.equation(operation, equations, statement, precedents),
        *templates.refusals(operation, refused),
        templates.sensitivity(operation),
        templates.numpy_numbers(operation),
    )


def _first_step(operation: str, equations: tuple[str, ...]) -> Requirement:
    return templates.convention(
        operation,
        "first_step",
        "Steps count from 0, and the rate of step 0 of a warmup is 0.",
        "steps counted from elsewhere",
        equations,
        weight=Weight.WRONG,
    )


_SLOPES = "The same, give or take the bounds of the rates compared."

WARMUP = (
    *_common(
        "warmup",
        ("10",),
        r"$\eta_t = \eta_{\max} \min(t / T, 1)$, and $\eta_{\max}$ at once where $T = 0$; a float.",
        "Negative steps, what is no int for a step, and what is no number for a rate are refused.",
        ("https://github.com/espnet/espnet/pull/2088",),
    ),
    templates.law(
        "warmup",
        "line",
        r"During the warmup the rate grows by $\eta_{\max} / T$ at each step; after it, it is $\eta_{\max}$.",
        _SLOPES,
        "bend in the line",
        equations=("10",),
        weight=Weight.WRONG,
    ),
    templates.law(
        "warmup",
        "linear_in_rate",
        r"The rate is $\eta_{\max}$ times a number that does not depend on it.",
        "The same for powers of two, within the sum of both bounds.",
        "forgotten largest rate",
        equations=("10",),
        precedents=("https://github.com/espnet/espnet/pull/2088",),
        weight=Weight.WRONG,
    ),
    _first_step("warmup", ("10",)),
)

WARMUP_COSINE = (
    *_common(
        "warmup_cosine",
        (),
        r"The rate of the warmup up to $T_w$, then $\frac12 \eta_{\max} (1 + \cos \pi \frac{t - T_w}{T - T_w})$ up to "
        "$T$, and 0 from there on; a float.",
        "Negative steps, $T < T_w$, what is no int for a step, and what is no number for a rate are refused.",
        ("https://github.com/deepspeedai/DeepSpeed/pull/5287",),
    ),
    templates.law(
        "warmup_cosine",
        "pieces",
        r"The rate rises up to $T_w$, where it is $\eta_{\max}$, and falls from there to $T$.",
        _SLOPES,
        "rate that turns too early or too late",
        precedents=("https://github.com/deepspeedai/DeepSpeed/pull/5287",),
        weight=Weight.WRONG,
    ),
    templates.law(
        "warmup_cosine",
        "symmetry",
        r"The decay is point-symmetric: the rates as far from its start and from its end sum to $\eta_{\max}$.",
        "The same within the sum of both bounds.",
        "another curve",
        weight=Weight.WRONG,
    ),
    templates.law(
        "warmup_cosine",
        "end",
        "From step $T$ on the rate is 0.",
        "The same exactly, while the rate of the step before is not.",
        "rate that rises again",
        weight=Weight.WRONG,
    ),
    templates.law(
        "warmup_cosine",
        "linear_in_rate",
        r"The rate is $\eta_{\max}$ times a number that does not depend on it.",
        "The same for powers of two, within the sum of both bounds.",
        "forgotten largest rate",
        precedents=("https://github.com/espnet/espnet/pull/2088",),
        weight=Weight.WRONG,
    ),
    _first_step("warmup_cosine", ()),
)

NOAM = (
    *_common(
        "noam",
        (),
        r"$\eta_t = d^{-1/2} \min(t^{-1/2}, t\, T^{-3/2})$ for steps from 1; a float.",
        "Steps, widths and warmups below 1, and what is no int, are refused.",
        ("https://github.com/tugstugi/pytorch-saltnet/issues/7",),
    ),
    templates.law(
        "noam",
        "peak",
        r"The rate rises up to step $T$, where it is $(d\, T)^{-1/2}$, and falls after it.",
        _SLOPES,
        "peak that lies elsewhere",
        precedents=("https://github.com/tugstugi/pytorch-saltnet/issues/7",),
        weight=Weight.WRONG,
    ),
    templates.law(
        "noam",
        "width",
        "Four times the width halves the rate.",
        "The same within the sum of both bounds.",
        "wrong scale",
        weight=Weight.WRONG,
    ),
    templates.law(
        "noam",
        "stretch",
        "Four times the warmup, at four times the step, halves the rate.",
        "The same within the sum of both bounds.",
        "wrong exponent",
        weight=Weight.WRONG,
    ),
)

REQUIREMENTS = (*WARMUP, *WARMUP_COSINE, *NOAM)

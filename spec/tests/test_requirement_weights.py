"""Every requirement says what is at stake, and what is advice is said once: nothing that the mathematics demands is."""

import pytest

from veriformer.spec.requirement import Kind, Requirement, Weight
from veriformer.spec.requirements import REQUIREMENTS, templates

ADVICE = {
    "refusal": Weight.UNGUARDED,
    "refusal_names_argument": Weight.UNGUARDED,
    "numpy_numbers": Weight.UNGUARDED,
    "accuracy": Weight.IMPRECISE,
    "result_dtype": Weight.IMPRECISE,
}
ADVICE_ALONE = {"optimizer.gradients_kept", "t5_relative_position_bucket.exact_points"}
"""Requirements that are advice for one operation alone: many optimizers add the decay to the gradient, and say so;
where the logarithm of T5's buckets is a whole number, its rounding decides between two of them, in the published code
as well."""

ALWAYS = {
    "contract": Weight.WRONG,
    "equation": Weight.WRONG,
    "gradient": Weight.WRONG,
    "purity": Weight.WRONG,
    "layout": Weight.WRONG,
    "sensitivity": Weight.WRONG,
    "long": Weight.WRONG,
    "batch": Weight.LEAK,
    "causality": Weight.LEAK,
    "range": Weight.FRAGILE,
    **ADVICE,
}


def law(requirement: Requirement) -> str:
    return requirement.slug.partition(".")[2]


def test_advice_is_what_it_is_listed_to_be_and_nothing_else() -> None:
    for requirement in REQUIREMENTS:
        advised = law(requirement) in ADVICE or requirement.slug in ADVICE_ALONE
        assert requirement.weight.advice == advised, requirement.slug
        assert requirement.weight is ALWAYS.get(law(requirement), requirement.weight), requirement.slug


def test_a_refusal_is_never_what_a_formula_demands() -> None:
    for requirement in REQUIREMENTS:
        assert (requirement.kind is Kind.REFUSAL) == law(requirement).startswith("refusal"), requirement.slug


def test_what_is_about_range_is_fragile() -> None:
    numerics = [r for r in REQUIREMENTS if r.kind is Kind.NUMERICS and law(r) not in (*ADVICE, "int8")]
    assert {r.weight for r in numerics} == {Weight.FRAGILE}


def test_a_weight_has_no_default() -> None:
    with pytest.raises(TypeError, match="weight"):
        Requirement(slug="a.b", operation="a", statement="", floating_point_statement="", kind=Kind.LAW)  # type: ignore[call-arg]


def test_families_come_in_the_order_in_which_they_are_named() -> None:
    found = templates.of("a", "7").standard(
        "contract refusals layout equation", equation=("said", "url"), refusals="no"
    )
    assert [law(r) for r in found] == ["contract", "refusal", "refusal_names_argument", "layout", "equation"]
    assert [(r.statement, r.equations, r.precedents) for r in found[-1:]] == [("said", ("7",), ("url",))]


def test_what_is_said_of_a_family_that_is_not_named_is_refused() -> None:
    with pytest.raises(ValueError, match="families among contract, got batch"):
        templates.of("a").standard("contract", batch="Rows are independent.")

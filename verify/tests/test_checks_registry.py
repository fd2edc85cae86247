"""The requirements and the checks are the same list."""

from __future__ import annotations

import pytest

from veriformer.spec.registry import equations
from veriformer.spec.requirement import Kind, Requirement
from veriformer.spec.requirements import REQUIREMENTS, requirement
from veriformer.verify.catalogue.checks import ALL
from veriformer.verify.contract.signatures import POSITIONAL
from veriformer.verify.operations.registry import OPERATIONS


def test_every_requirement_has_a_check_and_every_check_a_requirement() -> None:
    assert [check.requirement for check in ALL] == list(REQUIREMENTS)


def test_slugs_are_unique() -> None:
    slugs = [r.slug for r in REQUIREMENTS]
    assert len(slugs) == len(set(slugs))


def test_prerequisites_exist_and_come_first() -> None:
    seen: set[str] = set()
    for r in REQUIREMENTS:
        assert seen.issuperset(r.prerequisites), r.slug
        seen.add(r.slug)


def test_all_but_the_contract_rest_on_the_contract() -> None:
    for r in REQUIREMENTS:
        first = f"{r.operation}.contract"
        assert r.slug == first or first in r.prerequisites, r.slug


def test_every_operation_of_the_contract_has_a_record() -> None:
    assert {operation.name for operation in OPERATIONS} == set(POSITIONAL)


def test_a_slug_that_is_not_there_is_an_error() -> None:
    with pytest.raises(KeyError, match=r"softmax\.nothing"):
        requirement("softmax.nothing")


@pytest.mark.parametrize("r", REQUIREMENTS, ids=lambda r: r.slug)
def test_a_requirement_says_what_it_demands_and_what_breaking_it_means(r: Requirement) -> None:
    assert r.statement.endswith(".")
    assert r.floating_point_statement
    assert r.bug_class
    assert all(link.startswith("https://") for link in r.precedents)


NO_LAW = {"24b": "a property of random vectors, of which an implementation computes no more than the scale"}
"""Numbered equations that nothing but equality with the formula can be asked of."""


def test_every_numbered_equation_is_required_and_has_a_law_besides_equality() -> None:
    numbers = {equation.number for equation in equations() if equation.number}
    assert {number for r in REQUIREMENTS for number in r.equations} == numbers
    assert numbers - {number for r in REQUIREMENTS if r.kind is Kind.LAW for number in r.equations} == set(NO_LAW)


def test_every_operation_has_a_law_of_its_own() -> None:
    shared = ("batch", "sensitivity")
    own = {r.operation for r in REQUIREMENTS if r.kind is Kind.LAW and r.slug.partition(".")[2] not in shared}
    assert own == {check.operation for check in ALL}

"""The contract's signatures, what they say of equations, and what keeps to them."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from typing import Any

import pytest

from veriformer import impl
from veriformer.spec.operations import OPERATIONS
from veriformer.spec.operations.call import Operation
from veriformer.spec.requirements import REQUIREMENTS
from veriformer.verify.catalogue import checks
from veriformer.verify.contract.signatures import SIGNATURES
from veriformer.verify.operations import registry
from veriformer.verify.operations.layers import gelu, silu

EACH = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=lambda one: one.name)


def arguments(signature: inspect.Signature) -> list[tuple[Any, ...]]:
    return [(p.name, p.kind, p.default) for p in signature.parameters.values()]


@EACH
def test_our_own_implementation_is_called_as_the_contract_says(operation: Operation) -> None:
    assert arguments(inspect.signature(getattr(impl, operation.name))) == arguments(SIGNATURES[operation.name])


@EACH
def test_the_numbers_in_brackets_are_the_equations_that_are_required(operation: Operation) -> None:
    brackets = re.search(r"\(([0-9ab, ]+)\)\.$", operation.meaning)
    told = brackets[1].split(", ") if brackets else []
    required = [r for r in REQUIREMENTS if r.operation == operation.name]
    assert set(told) <= {number for r in required for number in r.equations}
    assert {number for r in required if r.slug.endswith(".equation") for number in r.equations} <= set(told)


def test_a_record_that_is_missing_is_asked_for_by_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(silu, "SILU")
    with pytest.raises(ImportError, match=r"operations\.layers\.silu: expected its record as SILU, got None"):
        registry._record("silu")


def test_two_checks_of_one_requirement_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gelu, "CHECKS", (*gelu.CHECKS, replace(silu.CHECKS[0])))
    with pytest.raises(ImportError, match=r"silu\.symmetry has a check elsewhere"):
        checks._by_slug()

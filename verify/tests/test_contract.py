"""The contract's signatures, what they say of equations, and what keeps to them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from veriformer import impl
from veriformer.spec.requirements import REQUIREMENTS
from veriformer.verify.catalogue import checks
from veriformer.verify.contract.signatures import STUBS
from veriformer.verify.contract.table import meaning
from veriformer.verify.operations import registry
from veriformer.verify.operations.layers import gelu, silu

EACH = pytest.mark.parametrize(
    "stub", [s for stubs in STUBS.values() for s in stubs.values()], ids=lambda s: s.__name__
)


def arguments(function: Callable[..., Any]) -> list[tuple[Any, ...]]:
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


@EACH
def test_our_own_implementation_is_called_as_the_contract_says(stub: Callable[..., Any]) -> None:
    assert arguments(getattr(impl, stub.__name__)) == arguments(stub)


@EACH
def test_the_numbers_in_brackets_are_the_equations_that_are_required(stub: Callable[..., Any]) -> None:
    brackets = re.search(r"\(([0-9ab, ]+)\)\.$", meaning(stub.__name__))
    told = brackets[1].split(", ") if brackets else []
    required = [r for r in REQUIREMENTS if r.operation == stub.__name__]
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

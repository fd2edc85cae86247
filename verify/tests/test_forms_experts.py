"""Gates of a mixture of experts that are not renormalised are a convention, and other gates are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from veriformer.verify import check
from veriformer.verify.recognition.recognise import recognise
from veriformer.verify.targets.source_files import module_of

FILE = Path(__file__).parent / "forms" / "experts_of_files.py"


@pytest.mark.whole
@pytest.mark.parametrize(
    ("name", "everywhere", "conventions"),
    [
        ("SparseMoE", True, {"mixture_of_experts.gates": "of all"}),
        ("RenormalisedMoE", True, {}),
        ("HalvedMoE", False, None),
    ],
)
def test_gates_of_all_experts_are_a_convention(name: str, everywhere: bool, conventions: dict[str, str] | None) -> None:
    (pin,) = recognise(getattr(module_of(FILE), name)).pins
    assert pin.everywhere == everywhere
    stated = {key: value for key, value in pin.conventions.items() if key != "choice.ties"}
    assert conventions is None or stated == conventions


@pytest.mark.whole
def test_results_and_gradients_of_gates_of_all_are_judged_by_their_formula() -> None:
    rows = [f"mixture_of_experts.{name}" for name in ("equation", "gradient", "identical_experts", "unchosen")]
    found = check(module_of(FILE).SparseMoE, only=rows, dtype=["fp64"], profile="quick")
    assert found.findings == []
    assert {row.status.value for row in found.results} >= {"pass"}


@pytest.mark.whole
@pytest.mark.parametrize(
    ("name", "experts", "everywhere"),
    [
        ("GivenMoE", None, True),
        ("GivenMoEOverTokens", None, False),
        ("StackedMoE", "SwiGLU", True),
        ("SwappedStackedMoE", "SwiGLU", False),
        ("ListedMoE", "SwiGLU", True),
    ],
)
def test_experts_that_are_given_or_gated_are_judged(name: str, experts: str | None, everywhere: bool) -> None:
    (pin,) = recognise(getattr(module_of(FILE), name)).pins
    assert (pin.conventions.get("mixture_of_experts.experts"), pin.everywhere) == (experts, everywhere)


@pytest.mark.whole
def test_results_and_gradients_of_gated_experts_are_judged_by_their_formula() -> None:
    rows = [f"mixture_of_experts.{name}" for name in ("gradient", "identical_experts", "permutation", "unchosen")]
    found = check(module_of(FILE).StackedMoE, only=rows, dtype=["fp64"], profile="quick")
    assert found.findings == []
    assert {row.status.value for row in found.results} >= {"pass"}

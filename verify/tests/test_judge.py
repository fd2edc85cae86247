"""The judge raises on anything outside the bound, and knows a reference that cannot tell right from wrong."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from veriformer.verify.judging.arguments import array
from veriformer.verify.judging.judge import (
    HarnessError,
    Reference,
    RunStatistics,
    Violation,
    assert_within_bound,
    ratios,
)
from veriformer.verify.judging.outcome import Outcome

NAN, INF = float("nan"), float("inf")


def reference(exact: object, bound: object, **options: object) -> Reference:
    return Reference(np.array(exact, dtype=float), np.array(bound, dtype=float), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("observed", "exact", "bound", "ratio"),
    [
        (1.0, 1.0, 0.0, 0.0),
        (1.5, 1.0, 1.0, 0.5),
        (1.5, 1.0, 0.25, 2.0),
        (1.5, 1.0, 0.0, INF),
        (NAN, 1.0, 1.0, INF),
        (INF, 1.0, 1.0, INF),
        (NAN, 1.0, INF, 0.0),
        (-INF, -INF, 0.0, 0.0),
        (3.0, -INF, 0.0, INF),
        (INF, -INF, 0.0, INF),
    ],
)
def test_ratio(observed: float, exact: float, bound: float, ratio: float) -> None:
    assert ratios(np.array([observed]), reference([exact], [bound]))[0] == ratio


def test_a_violation_is_raised_and_names_the_worst_element() -> None:
    tally = RunStatistics()
    with pytest.raises(Violation, match=r"gradient\[0, 1\]: observed 3, exact 2, off by 1, bound 0.5 \(ratio 2\)"):
        assert_within_bound(np.array([[1.0, 3.0]]), reference([[1, 2]], [[0.5, 0.5]]), tally, what="gradient", lines=[])
    assert tally.worst_ratio == 2


def test_the_largest_ratio_is_kept() -> None:
    tally = RunStatistics()
    for value in (1.1, 1.4, 1.2):
        assert_within_bound(np.array([value]), reference([1], [0.5]), tally, what="result", lines=[])
    assert tally.worst_ratio == abs(1.4 - 1) / 0.5


def test_the_size_kept_is_that_of_what_came_nearest_to_its_bound() -> None:
    tally, kept = RunStatistics(), []
    for ratio, size in ((0.5, 3), (0.1, 90), (0.7, 8), (0.9, None)):
        with tally.sized(lambda size=size: size):  # type: ignore[misc]
            tally.note(ratio)
        kept.append(tally.worst_size)
    assert kept == [3, 3, 8, None]


@pytest.mark.parametrize(
    ("made", "effective"),
    [
        (reference([1, 2], [0.1, 0.1]), True),
        (reference([], []), False),
        (reference([2, 2], [0.1, 0.1]), False),
        (reference([2, 2], [0.1, 0.1], constant=True), True),
        (reference([1, 2], [3, 3]), False),
        (reference([1, 2], [INF, INF]), False),
        (reference([0, 0], [1e-9, 1e-9], scale=1.0, constant=True), True),
        (reference(3, 0.1), True),
    ],
)
def test_what_counts_as_exercised(made: Reference, effective: bool) -> None:
    assert made.effective is effective


def test_a_broken_reference_is_our_error_not_the_targets() -> None:
    with pytest.raises(HarnessError, match="NaN"):
        reference([NAN], [1])
    with pytest.raises(HarnessError, match="shape"):
        reference([1, 2], [1])
    with pytest.raises(HarnessError, match="shape"):
        assert_within_bound(np.zeros(3), reference([1, 2], [1, 1]), RunStatistics(), what="result", lines=[])


def judged(value: float, narrow: float, wide: float) -> tuple[Reference, list[int]]:
    """The reference by which a value is judged that should be 1, and a note for each time the wide bound was needed."""
    asked: list[int] = []

    def widen() -> np.ndarray:
        asked.append(1)
        return np.array([wide])

    return reference([1.0], [narrow], widen=widen).narrowed(np.array([value])), asked


@pytest.mark.parametrize(("value", "bound", "asked"), [(1.25, 0.5, 0), (1.75, 1.0, 1), (3.0, 1.0, 1), (NAN, 1.0, 1)])
def test_a_wide_bound_is_made_where_the_narrow_one_is_not_kept(value: float, bound: float, asked: int) -> None:
    found, times = judged(value, 0.5, 1.0)
    assert found.bound == bound
    assert len(times) == asked


def test_a_bound_that_is_asked_for_is_the_wide_one() -> None:
    assert reference([1.0], [0.5], widen=lambda: np.array([1.0])).bound == 1.0
    with pytest.raises(HarnessError, match="NaN"):
        _ = reference([1.0], [0.5], widen=lambda: np.array([NAN])).bound


@pytest.mark.filterwarnings("ignore::UserWarning")  # all of these are in beta state, or deprecated
@pytest.mark.parametrize(
    ("kind", "made"),
    [
        ("sparse", lambda x: x.to_sparse()),
        ("sparse", lambda x: x.reshape(-1, x.shape[-1]).to_sparse_csr()),
        ("quantised", lambda x: torch.quantize_per_tensor(x.float(), 0.1, 0, torch.qint8)),
        ("nested", lambda x: torch.nested.nested_tensor([x, x])),
    ],
)
def test_a_result_that_is_not_dense_is_none(kind: str, made: Callable[[torch.Tensor], torch.Tensor]) -> None:
    outcome = Outcome("r0", made(torch.ones(2, 3)))
    with pytest.raises(Violation, match=f"the result is a {kind} tensor, not a dense one"):
        outcome.result  # noqa: B018  # that is what is judged


def test_a_result_with_a_negative_bit_is_judged_like_any_other() -> None:
    x = torch.complex(torch.zeros(3, dtype=torch.float64), torch.arange(3, dtype=torch.float64)).conj().imag
    assert x.is_neg()
    assert array(x).tolist() == [0.0, -1.0, -2.0]

"""Calls, and their settings: number of threads, seeds."""

from __future__ import annotations

import pytest
import torch

from veriformer.verify.comparison.calling import call


@pytest.mark.parametrize(("numbers", "threads"), [(2**10, 1), (2**16, 2)])
def test_what_is_quick_is_computed_by_one_thread(numbers: int, threads: int) -> None:
    usual = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        called = call(lambda x: torch.get_num_threads(), ([torch.zeros(numbers)], {}), seed=0, gradient=False)
        assert called.record["results"] == {"": threads}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(usual)

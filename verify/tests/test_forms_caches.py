"""Caches that are given keys and values alone are judged with their own length and reset."""

from __future__ import annotations

from pathlib import Path

import pytest

from veriformer.verify import check
from veriformer.verify.recognition.recognise import recognise
from veriformer.verify.targets.source_files import module_of

FILE = Path(__file__).parent / "forms" / "caches_of_files.py"


@pytest.mark.parametrize(
    ("name", "everywhere"),
    [
        ("KVCache", True),
        ("GrowingCache", True),
        ("TurnedGrowingCache", False),
        ("LayeredCache", True),
        ("ResizedLayeredCache", False),
        ("WrittenCache", True),
        ("WrittenAtTheFrontCache", False),
        ("CountedOutsideCache", True),
        ("OneLayerCountedOutsideCache", False),
    ],
)
def test_caches_that_count_by_themselves_are_recognised(name: str, everywhere: bool) -> None:
    (pin,) = recognise(getattr(module_of(FILE), name)).pins
    assert (pin.operation, pin.everywhere) == ("kv_cache", everywhere)


@pytest.mark.whole
@pytest.mark.parametrize(
    ("name", "findings"),
    [("KVCache", 0), ("HalfResetKVCache", 1), ("GrowingCache", 0), ("CountedOutsideCache", 0), ("PlacedCache", 0)],
)
def test_the_reset_of_a_cache_is_its_own(name: str, findings: int) -> None:
    rows = ["kv_cache.history", "kv_cache.overflow"]
    found = check(getattr(module_of(FILE), name), only=rows, dtype=["fp32"], profile="quick")
    assert len([one for one in found.findings if one.weight in ("wrong", "leak", "fragile")]) == findings
    assert "pass" in {row.status.value for row in found.results}


ROLLING = """
import abc
import torch

class Cache({base}):
    {mark}
    def update(self, k, v):
        raise NotImplementedError

class RollingCache(Cache):
    def __init__(self, n_kv_heads, head_dim, capacity=512):
        self.capacity, self.k, self.v = capacity, [], []

    def update(self, k, v):
        self.k = self.keep([*self.k, *k.unbind(2)])
        self.v = self.keep([*self.v, *v.unbind(2)])
        return torch.stack(self.k, 2), torch.stack(self.v, 2)

    def keep(self, held):
        return held if len(held) <= self.capacity else {kept}
"""


@pytest.mark.whole
@pytest.mark.parametrize(
    ("kept", "base", "mark", "exit_status"),
    [
        ("held[-self.capacity :]", "", "", 0),
        ("held[-self.capacity :]", "abc.ABC", "@abc.abstractmethod", 0),
        ("held[-1:] + held[-self.capacity : -1]", "", "", 1),
    ],
)
def test_a_cache_that_drops_its_oldest_tokens_is_judged_by_a_window(
    kept: str, base: str, mark: str, exit_status: int, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(ROLLING.format(kept=kept, base=base, mark=mark))
    rows = ["kv_cache.equation", "kv_cache.window"]
    found = check(tmp_path / "mine.py", only=rows, dtype=["fp32"], profile="quick")
    assert found.exit_status == exit_status, found.gaps

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


@pytest.mark.parametrize(
    ("name", "findings"),
    [("KVCache", 0), ("HalfResetKVCache", 1), ("GrowingCache", 0), ("CountedOutsideCache", 0), ("PlacedCache", 0)],
)
def test_the_reset_of_a_cache_is_its_own(name: str, findings: int) -> None:
    rows = ["kv_cache.history", "kv_cache.overflow"]
    found = check(getattr(module_of(FILE), name), only=rows, dtype=["fp32"], profile="quick")
    assert len([one for one in found.findings if one.weight in ("wrong", "leak", "fragile")]) == findings
    assert "pass" in {row.status.value for row in found.results}

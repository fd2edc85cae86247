"""What failing rows leave behind is collected when it has become much, and not after each of them."""

from __future__ import annotations

import gc

import pytest

from veriformer.verify.engine import memory

MIB = 2**20


@pytest.mark.parametrize(("sizes", "times"), [([300, 310, 320, 330], 1), ([300, 700, 200, 500], 3), ([0, 0], 0)])
def test_it_is_collected_where_the_process_has_grown(
    sizes: list[int], times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    collected: list[int] = []
    size = [0]
    monkeypatch.setattr(memory, "_left", 0)
    monkeypatch.setattr(memory, "resident", lambda: size[0])
    monkeypatch.setattr(gc, "collect", lambda: collected.append(size[0]))
    for mebibytes in sizes:
        size[0] = mebibytes * MIB
        memory.give_back()
    assert len(collected) == times


def test_the_size_of_the_process_is_known() -> None:
    assert memory.resident() > 10 * MIB

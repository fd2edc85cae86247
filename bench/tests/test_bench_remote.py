"""Counts on workers are the counts of one process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("distributed")

from veriformer.bench.assess import assess
from veriformer.bench.counting.command import count
from veriformer.bench.counting.items import Given, InOrder, items
from veriformer.workers.place import local

MINE = "import torch\n\ndef silu(x):\n    return x * torch.sigmoid(x)\n"


@pytest.mark.whole
def test_workers_count_what_one_process_counts(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    given, said, found = Given((str(file),)), [], []
    wanted = items(given.targets, ["silu"], whole=True)
    order = InOrder(wanted)
    with local(1) as address:
        count(
            given,
            wanted,
            address,
            lambda item, counts: found.extend(x for _, x in order.take(item, counts)),
            said.append,
        )
    here = [replace(one, seconds=0.0) for some in assess(given.targets[0], ("silu",)) for one in some]
    assert [replace(one, seconds=0.0) for some in found for one in some] == here
    assert len(here) > 3
    assert said[0].startswith("dashboard http://127.0.0.1:")

"""Counts on workers are the counts of one process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("distributed")

from veriformer.bench.assess import assess
from veriformer.bench.remote import counts
from veriformer.bench.targets import find
from veriformer.cluster.place import local

MINE = "import torch\n\ndef silu(x):\n    return x * torch.sigmoid(x)\n"


def test_workers_count_what_one_process_counts(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    target, said = find(str(file)), []
    with local(1) as address:
        found = list(counts([target], ["silu"], address, claim=None, whole=True, say=said.append))
    here = [replace(one, seconds=0.0) for some in assess(target, ("silu",)) for one in some]
    assert [replace(one, seconds=0.0) for some in found for one in some] == here
    assert len(here) > 3
    assert said[0].startswith("dashboard http://127.0.0.1:")

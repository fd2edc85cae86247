"""Choice of the calls of a comparison."""

from __future__ import annotations

import time
from pathlib import Path

from veriformer.verify.comparison.preparation import prepare

GROUPED = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels, groups):
        super().__init__()
        assert channels % groups == 0, "channels have to be a multiple of groups"
        self.groups = groups
        self.scale = nn.Parameter(torch.ones(channels, 1))

    def forward(self, x):
        return self.scale * x.unflatten(1, (self.groups, -1)).softmax(2).flatten(1, 2)


def get_inputs():
    return [torch.randn(64, 24, 512)]


def get_init_inputs():
    return [24, 8]
"""


def test_sizes_with_which_a_class_cannot_be_built_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "grouped.py"
    file.write_text(GROUPED, encoding="utf-8")
    job = {"spec": str(file), "out": str(tmp_path), "device": "cpu", "seconds": 60.0, "until": time.monotonic() + 60.0}
    found = prepare(job)
    assert {"given", "small", "gradient"} <= set(found["cases"])
    assert "size 24 as 25" not in found["cases"]

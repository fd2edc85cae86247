"""Files and lines of the code that is judged."""

from __future__ import annotations

import functools
import math

import pytest
import torch

from tests.made_results import results, row
from veriformer.verify import load
from veriformer.verify.engine.merging import anywhere
from veriformer.verify.engine.run import store_findings
from veriformer.verify.recognition.places import place_of, places
from veriformer.verify.results import Results, Status, json_safe

CODE = """import torch


def softmax(z, dim=-1):
    return torch.softmax(z, dim)


class RMSNorm(torch.nn.Module):
    def __init__(self, size, eps=1e-6):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight
"""


@pytest.mark.whole
def test_named_and_recognised_code_has_its_line_below_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "of_places.py").write_text(CODE)
    found = places(load("of_places.py"), ["softmax", "rms_norm", "gelu"])
    assert found == {
        "softmax": {"file": "of_places.py", "line": 4},
        "rms_norm": {"file": "of_places.py", "line": 8},
    }


def test_a_file_elsewhere_is_absolute(tmp_path):
    (tmp_path / "of_elsewhere.py").write_text(CODE)
    found = places(load(f"{tmp_path}/of_elsewhere.py"), ["softmax"])
    assert found["softmax"]["file"] == (tmp_path.resolve() / "of_elsewhere.py").as_posix()


@functools.lru_cache
def decorated(x):
    return x


@pytest.mark.parametrize("thing", [decorated, functools.partial(decorated, 1)])
def test_wrappers_are_looked_through(thing):
    place = place_of(thing)
    assert place is not None
    assert place["line"] == decorated.__wrapped__.__code__.co_firstlineno


@pytest.mark.parametrize("thing", [math.sqrt, torch.softmax, None, 3])
def test_what_has_no_python_file_has_no_place(thing):
    assert place_of(thing) is None


def test_adapters_of_ours_are_no_place():
    assert places(load("torch"), ["softmax"]) == {}


def test_findings_say_where_and_files_are_read_again():
    place = {"file": "mine.py", "line": 7}
    found = results([row("softmax.equation", Status.CRASH, weight="wrong", message="the process ended")])
    found.implementation["where"] = {"softmax": place}
    store_findings(found, {})
    assert [finding.where for finding in found.findings] == [place]
    assert Results.from_dict(json_safe(found.to_dict())).findings[0].where == place


def test_parts_of_a_run_may_lie_in_other_folders():
    here, there = ({"target": "mine.py", "where": {"softmax": {"file": file, "line": 1}}} for file in ("a", "b"))
    assert anywhere(here) == anywhere(there) == {"target": "mine.py"}

"""A target that changes the state of the process, or wants it to end, costs itself that finding and nothing else."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from tests.test_engine import verify
from veriformer.verify import check, load
from veriformer.verify.judging.exceptions import RowTimeout
from veriformer.verify.judging.global_state import OF_CALLS, OF_ROWS, guarded

pytestmark = pytest.mark.usefixtures("warm")
CHANGING = Path(__file__).parent / "changing.py"
WORDS = ("--profile", "quick", "--dtype", "fp32", "--jobs", "2")


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The results of a run over all of it, started with relative paths."""
    folder = tmp_path_factory.mktemp("run")
    here = Path.cwd()
    os.chdir(folder)
    try:
        only = ("softmax", "logsumexp", "gelu", "silu", "residual", "lm_head", "rms_norm", "causal_lm")
        done = verify(os.path.relpath(CHANGING), *WORDS, "--only", *only, "--json", "out.json", "--junit", "out.xml")
    finally:
        os.chdir(here)
    assert done.returncode == 1, done.stderr
    assert (folder / "out.xml").is_file()
    return json.loads((folder / "out.json").read_text())


def statuses(document: Any, operation: str) -> dict[str, str]:
    return {
        row["requirement"].partition(".")[2]: row["status"]
        for row in document["results"]
        if row["operation"] == operation
    }


def test_what_is_changed_is_told_by_operation(document: Any) -> None:
    assert document["verdict"] == "violated"
    assert document["run"] == document["planned"]
    assert document["global_state"] == {
        "loading": ["the working directory"],
        "softmax": ["the working directory"],
        "logsumexp": ["whether gradients are recorded"],
        "gelu": ["the default dtype", "the number of threads", "the seed of PyTorch's generator"],
        "silu": ["deterministic algorithms", "variables of the environment"],
    }


@pytest.mark.parametrize("operation", ["softmax", "logsumexp", "gelu", "silu"])
def test_it_costs_no_row(document: Any, operation: str) -> None:
    found = statuses(document, operation)
    assert found["equation"] == found["gradient"] == "pass"
    assert set(found.values()) <= {"pass", "advice"}


def test_who_wants_the_process_to_end_fails_where_it_says_so(document: Any) -> None:
    for operation in ("residual", "lm_head", "causal_lm"):
        assert statuses(document, operation)["contract"] == "fail"
    assert statuses(document, "rms_norm")["gradient"] == "fail"
    assert statuses(document, "rms_norm")["equation"] == "pass"


def test_what_was_being_put_back_when_the_time_ended_is_no_change() -> None:
    told: list[str] = []
    before = np.geterr()
    with contextlib.suppress(RowTimeout), guarded(OF_ROWS, told.append):
        np.seterr(all="ignore")  # as the beginning of errstate, whose end is not reached
        raise RowTimeout
    assert (told, np.geterr()) == ([], before)
    with guarded(OF_ROWS, told.append):
        np.seterr(all="ignore")
    assert told == ["what NumPy does about errors"]


@pytest.mark.parametrize(
    ("limit", "told"), [(2000, []), (2001, ["the limit of recursion"]), (900, ["the limit of recursion"])]
)
def test_a_limit_of_recursion_that_compiling_needs_is_no_change(limit: int, told: list[str]) -> None:
    before = sys.getrecursionlimit()
    found: list[str] = []
    sys.setrecursionlimit(1000)
    try:
        with guarded(OF_CALLS, found.append):
            sys.setrecursionlimit(limit)
        assert found == told
    finally:
        sys.setrecursionlimit(before)


@pytest.mark.whole
def test_a_process_that_is_a_guest_is_left_as_it_was() -> None:
    here, threads = Path.cwd(), torch.get_num_threads()
    changing: Any = load(str(CHANGING)).implementation
    os.chdir(here)
    mine = SimpleNamespace(softmax=changing.softmax, gelu=changing.gelu, lm_head=changing.lm_head)
    results = check(mine, only=["softmax.equation", "gelu.equation", "lm_head.equation"], dtype=["fp32"])
    assert (Path.cwd(), torch.get_num_threads(), torch.get_default_dtype()) == (here, threads, torch.float32)
    assert set(results.global_state) == {"softmax", "gelu"}
    found = {row.operation: row.status.value for row in results.results if row.kind == "equation"}
    assert found == {"softmax": "pass", "gelu": "pass", "lm_head": "blocked"}


def _stops_the_clock(x: torch.Tensor) -> torch.Tensor:
    for name in ("perf_counter", "process_time", "monotonic"):
        setattr(time, name, lambda: 0.0)
    return torch.nn.functional.silu(x)


def _profiles(z: torch.Tensor, dim: int = -1) -> torch.Tensor:
    sys.setprofile(lambda *_: None)
    return torch.softmax(z, dim)


def _opens_little(z: torch.Tensor, dim: int = -1) -> torch.Tensor:
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    return torch.logsumexp(z, dim)


def _keeps_garbage(x: torch.Tensor, fx: torch.Tensor, *, scale: float = 1.0) -> torch.Tensor:
    gc.disable()
    return x + scale * fx


@pytest.mark.whole
def test_the_clock_and_what_watches_or_limits_the_process_are_put_back() -> None:
    mine = SimpleNamespace(silu=_stops_the_clock, softmax=_profiles, logsumexp=_opens_little, residual=_keeps_garbage)
    before = time.perf_counter, sys.getprofile(), resource.getrlimit(resource.RLIMIT_NOFILE), gc.isenabled()
    results = check(mine, only=[f"{name}.equation" for name in vars(mine)], dtype=["fp32"])
    assert before == (time.perf_counter, sys.getprofile(), resource.getrlimit(resource.RLIMIT_NOFILE), gc.isenabled())
    assert results.global_state == {
        "silu": ["the clock"],
        "softmax": ["what traces or profiles the process"],
        "logsumexp": ["limits on what the process may take"],
        "residual": ["whether garbage is collected"],
    }
    assert {row.status.value for row in results.results if row.seconds} == {"pass"}

"""Scripts of counterexamples reproduce what was found on the target, and find nothing on a correct one."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from veriformer.verify import load
from veriformer.verify.catalogue.selection import select
from veriformer.verify.engine.check_run import run_check
from veriformer.verify.engine.profiles import PROFILES
from veriformer.verify.judging.row import plan
from veriformer.verify.results import Result, Status

FEW = replace(PROFILES["quick"], examples=12, shrinks=25)
HOSTILE = str(Path(__file__).parent / "hostile.py")


@cache
def failures(target: str, operation: str, dtype: str) -> tuple[Result, ...]:
    # Accuracy is a statistic over all examples of a row: no single call shows it, so it has no script.
    checks = [check for check in select(operation.split()) if check.finish is None]
    rows = [run_check(row, load(target), FEW, "slug", {}) for row in plan(checks, [dtype])]
    return tuple(row for row in rows if row.status is Status.FAIL)


def end_of(script: str) -> object:
    """The exit status of a script, or what it raised."""
    try:
        exec(compile(script, "counterexample", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        return end.code
    except Exception as error:
        return repr(error)
    return 0


MUTANTS = [
    ("mutant:CE-02", "cross_entropy", "fp32"),
    ("mutant:LN-02", "layer_norm", "fp32"),
    ("mutant:GQA-01", "attention", "fp32"),
    ("mutant:KV-01", "causal_mask", "fp32"),
    ("mutant:FA-05", "attention.equation attention.conservation attention.decoding", "fp32"),
    ("mutant:CLIP-03", "clip_grad_norm", "fp64"),
    ("mutant:BEAM-04", "beam_search", "fp32"),
    ("mutant:TOK-01", "bpe_encode", "fp32"),
    ("mutant:SMP-01", "top_p_filter", "fp32"),
    ("sabotage:zeros", "unigram_segment", "fp32"),
    ("sabotage:nan", "perplexity", "fp32"),
    ("sabotage:zeros", "logsumexp", "bf16"),
    (HOSTILE, "rms_norm", "fp32"),
    (HOSTILE, "causal_mask", "fp32"),
    (HOSTILE, "clip_grad_norm", "fp32"),
]


@pytest.mark.whole
@pytest.mark.parametrize(("target", "operation", "dtype"), MUTANTS)
def test_a_script_reproduces_and_accuses_no_correct_target(
    target: str, operation: str, dtype: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = failures(target, operation, dtype)
    assert found
    for row in found:
        assert row.counterexample is not None, row.key
        assert row.counterexample.script is not None, row.key
        assert end_of(row.counterexample.script) not in (0, None), f"{row.key}\n{row.counterexample.script}"
        corrected = row.counterexample.script.replace(f"load({target!r})", "load('impl:reference')")
        # The values that dropout should give follow the mask that this very target drew.
        if corrected != row.counterexample.script and "dropout" not in row.requirement:
            assert end_of(corrected) in (0, None), f"{row.key}\n{corrected}"


@pytest.mark.whole
def test_a_script_stands_on_its_own(tmp_path: Path) -> None:
    """A target in a file: the script imports PyTorch and that file, and nothing of the suite."""
    (row, *_) = failures(HOSTILE, "rms_norm", "fp32")
    assert row.counterexample is not None
    script = tmp_path / "counterexample.py"
    script.write_text(str(row.counterexample.script))
    assert "veriformer" not in script.read_text().replace(HOSTILE, "").replace(str(Path(HOSTILE).parent), "")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1, done.stdout + done.stderr


def test_counterexamples_are_small() -> None:
    (row,) = (r for r in failures("mutant:LN-02", "layer_norm", "fp32") if r.requirement == "layer_norm.equation")
    assert row.counterexample is not None
    shape = row.counterexample.arguments["x"]["shape"]
    size = 1
    for n in shape:
        size *= n
    assert size <= 6


WRONG_WHERE_LARGE = """
import torch

def softmax(z, dim=-1):
    found = torch.softmax(z, dim)
    return found * 1.5 if z.numel() > 2000 else found
"""


def test_the_script_of_a_large_counterexample_is_short_and_reproduces_it(tmp_path: Path) -> None:
    file = tmp_path / "large.py"
    file.write_text(WRONG_WHERE_LARGE)
    (row,) = (r for r in failures(str(file), "softmax.long", "fp32") if r.requirement == "softmax.long")
    assert row.counterexample is not None
    assert row.counterexample.scalars is not None
    assert row.counterexample.scalars > 2000
    assert end_of(str(row.counterexample.script)) == "violated"
    assert len(str(row.counterexample.script)) < 8 * row.counterexample.scalars + 4000
    file.write_text(WRONG_WHERE_LARGE.replace("1.5", "1.0"))
    assert end_of(str(row.counterexample.script)) in (0, None)

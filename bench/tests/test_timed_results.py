"""Check of timed results: a wrong or a cached result makes a time invalid."""

import json
from types import SimpleNamespace

import pytest
import torch
from click.testing import CliRunner

from veriformer.bench import torch_functional
from veriformer.bench.cli import bench
from veriformer.bench.document import Benchmarks
from veriformer.bench.targets import Target
from veriformer.bench.timing import worker
from veriformer.bench.timing.workloads import FAMILIES, Workload
from veriformer.bench.verdicts import Verdict

FILE = """import torch
RESULTS = []
def rms_norm(x, weight=None, *, eps=1e-6):
    {how}
    return torch.nn.functional.rms_norm(x, x.shape[-1:], weight, eps)
"""
CACHED = "RESULTS[:1] or RESULTS.append(torch.nn.functional.rms_norm(x, x.shape[-1:], weight, eps)); return RESULTS[0]"
LATER = "RESULTS.append(0)\n    if len(RESULTS) > 12: return x"


def judged(operation, case, function, backward=False):
    family = next(f for f in FAMILIES if (f.operation, f.case) == (operation, case))
    return worker.wrong(Workload(family, backward), [function], "cpu")


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize(("operation", "case"), [(f.operation, f.case) for f in FAMILIES if worker.is_judged(f)])
def test_right_results_are_right(operation, case, backward):
    from veriformer.bench.targets import find

    assert judged(operation, case, find("impl").operation(operation), backward) is None


@pytest.mark.parametrize("operation", ["logsumexp", "rms_norm", "layer_norm", "lm_head"])
def test_wrong_results_are_wrong(operation):
    right = getattr(torch_functional, operation)
    assert "times what rounding explains" in judged(operation, "all sizes", lambda *x: 1.001 * right(*x))
    assert "times what rounding explains" in judged(operation, "all sizes", lambda *x: right(*x) * torch.nan)


def test_a_result_that_was_kept_is_told_from_one_that_follows_its_arguments():
    family = next(f for f in FAMILIES if f.operation == "softmax")
    once = torch.randn(3, 4)
    for function, said in ((torch.softmax, None), (lambda z, dim=-1: once, "cached")):
        provided = SimpleNamespace(softmax=lambda z, dim=-1, f=function: f(z, dim))
        made = Workload(family, False).build(Target("mine", None, None, False, provided), {"N": 3, "d": 4})
        given = made.tensors[0].clone()
        found = worker.kept(made)
        assert (found is None) if said is None else (said in found)
        assert torch.equal(made.tensors[0], given)


@pytest.mark.usefixtures("local_processes")
@pytest.mark.parametrize(("how", "said"), [(CACHED, "cached"), ("return x", "wrong"), (LATER, "wrong")])
def test_a_regression_of_wrong_results_is_invalid(how, said, tmp_path):
    for name, body in (("base", "pass"), ("head", how)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.py").write_text(FILE.format(how=body))
    words = [str(tmp_path / "base"), str(tmp_path / "head"), "--target", "mine.py", "--blocks", "2", "--clock", "cpu"]
    only = ["--only", "rms_norm, all sizes, forward", "--json", str(tmp_path / "json")]
    found = CliRunner().invoke(bench, ["regression", *words, *only])
    assert found.exit_code == 3, found.output
    assert "invalid   rms_norm, all sizes, forward: head: the result is " + said in found.output


@pytest.mark.usefixtures("local_processes")
def test_scaling_of_a_wrong_result_is_invalid(tmp_path):
    (tmp_path / "mine.py").write_text(FILE.format(how="return x"))
    words = ["--only", "rms_norm over N, forward", "--processes", "2", "--json", str(tmp_path / "json")]
    CliRunner().invoke(bench, ["scaling", str(tmp_path / "mine.py"), *words])
    (found,) = Benchmarks.from_dict(json.loads((tmp_path / "json").read_text())).scalings
    assert found.verdict is Verdict.INVALID
    assert "the result is wrong" in found.reason

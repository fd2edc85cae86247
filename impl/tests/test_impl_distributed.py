"""Two processes, started by torchrun over gloo, train as one does: copies of a model, and shares of it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.derived_bounds import gamma
from tests.training_runs import trainer

HERE = Path(__file__).parent
U = 2.0**-53


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    directory = tmp_path_factory.mktemp("runs")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(HERE.parent)]), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, str(HERE / "distributed_run.py"), str(directory)],
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return torch.load(directory / "results.pt", weights_only=True)


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_two_processes_take_the_steps_of_one(results, strategy):
    alone = trainer(size=4, accumulate=2, dtype=torch.float64, max_norm=0.5)
    reports, got = list(alone.run()), results[strategy]
    assert max(r.norm for r in reports) > 0.5
    assert got["tokens"] == [r.tokens for r in reports]
    first, loss, norm = reports[0], got["losses"][0], got["norms"][0]
    assert abs(loss - first.loss) <= gamma(5000, U) * first.loss
    assert abs(norm - first.norm) <= gamma(5000, U) * first.norm
    weights = torch.cat([p.detach().flatten() for p in alone.model.parameters()])
    # Six steps of Adam, each of which divides the rounding of a gradient by its size, or by ε where that is smaller.
    assert float((got["weights"] - weights).abs().max()) <= 6 * 1e-2 * gamma(5000, U) / 1e-8
    start = torch.cat([p.detach().flatten() for p in trainer().model.double().parameters()])
    assert float((weights - start).abs().max()) > 1e-2


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_two_processes_resume_to_the_bit(results, strategy):
    assert results[strategy]["resumed"]

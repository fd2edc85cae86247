"""The front of the Triton backend, a process for each file of kernel tests, and the compiler for GPUs without one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.triton_kernels import DEVICE, INSTALLED
from veriformer.impl import BACKENDS
from veriformer.impl.attention_backends.flash.availability import UnavailableError, interpreting, require
from veriformer.impl.attention_backends.flash.launch import launch, padded
from veriformer.impl.attention_backends.flash.triton import attention_in_tiles

HERE = Path(__file__).parent
installed = pytest.mark.skipif(not INSTALLED, reason="needs Triton: pip install 'veriformer[gpu]'")


def python(*arguments, **environment):
    """Run Python in a process of its own, which sees Triton for the first time."""
    variables = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, *arguments]
    paths = os.pathsep.join(sys.path)
    variables |= {"PYTHONPATH": paths, **environment}
    return subprocess.run(command, capture_output=True, text=True, env=variables, cwd=HERE.parent.parent)


@installed
@pytest.mark.whole
@pytest.mark.skipif(interpreting() or DEVICE == "cuda", reason="the files run in this very process")
@pytest.mark.parametrize("name", ["kernels", "dropout"])
def test_interpreted(name):
    file = str(HERE / f"test_impl_triton_{name}.py")
    found = python("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-n", "0", file, TRITON_INTERPRET="1")
    assert found.returncode == 0, found.stdout[-5000:] + found.stderr[-2000:]
    assert "skipped" not in found.stdout


@pytest.mark.skipif(interpreting() or torch.cuda.is_available(), reason="the kernels can run")
def test_where_nothing_can_run_kernels_the_error_says_what_to_do(monkeypatch):
    x = torch.ones(1, 1, 2, 4)
    for q in (x, x.double()):
        if INSTALLED:
            with pytest.raises(UnavailableError, match=r"expected a CUDA device, got none; .* TRITON_INTERPRET=1"):
                BACKENDS["triton"](q, q, q)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UnavailableError, match=r"pip install 'veriformer\[gpu\]'"):
        require()


@pytest.mark.whole
def test_the_package_is_imported_without_triton():
    program = "import sys, veriformer.impl; assert not any(name.startswith('triton') for name in sys.modules)"
    found = python("-c", program)
    assert found.returncode == 0, found.stderr


def test_tiles_have_sides_that_kernels_can_have():
    for side, error in ((8, ValueError), (24, ValueError), (16.0, TypeError)):
        with pytest.raises(error, match="side: expected"):
            attention_in_tiles(side)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_every_width_has_a_launch_of_powers_of_two(dtype):
    for width in (1, 16, 64, 65, 128, 200, 256):
        chosen = launch(width, dtype, interpreted=False)
        for blocks in (chosen.forward, chosen.to_queries, chosen.to_keys, chosen.to_bias):
            assert blocks.rows & (blocks.rows - 1) == blocks.cols & (blocks.cols - 1) == 0
            assert min(blocks.rows, blocks.cols) >= 16
        assert padded(width) >= max(width, 16) > padded(width) // 2 or padded(width) == 16


@installed
@pytest.mark.whole
@pytest.mark.skipif(interpreting(), reason="interpreted kernels are not compiled")
def test_kernels_compile_for_a_gpu_that_is_not_there(tmp_path):
    """The interpreter admits more than the compiler does, which needs no GPU to run."""
    found = python(str(HERE / "compile_triton_kernels.py"), TRITON_CACHE_DIR=str(tmp_path))
    assert found.returncode == 0, found.stdout + found.stderr[-3000:]
    names = {"forward", "row_products", "query_gradients", "key_gradients", "bias_gradients"}
    assert {line.split()[0] for line in found.stdout.splitlines()} == names

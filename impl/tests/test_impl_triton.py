"""The front of the Triton backend, a process for each file of kernel tests, and the compiler for GPUs without one."""

import ast
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.triton_kernels import DEVICE, INSTALLED
from veriformer.impl import BACKENDS
from veriformer.impl.attention_backends.flash.availability import UnavailableError, interpreting, require
from veriformer.impl.attention_backends.flash.launch import TABLES, launch, padded
from veriformer.impl.attention_backends.flash.triton import attention_in_tiles

HERE = Path(__file__).parent
NAMES = (
    "forward",
    "row_products",
    "query_gradients",
    "key_gradients",
    "bias_gradients",
    "attend_pieces",
    "join_pieces",
)
SPILLED = {"plain": 2048, "all": 10_240}
"""Bytes of local memory that a thread of a kernel may spill into, by options."""
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
@pytest.mark.parametrize("name", ["kernels", "dropout", "decoding"])
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


def data_conditions(tree):
    """Return the conditions in kernels that read more than what is known when they are compiled, as text."""
    found = []
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and any(map(of_kernels, function.decorator_list)):
            arguments = function.args.args
            constant = {a.arg for a in arguments if a.annotation and ast.unparse(a.annotation) == "tl.constexpr"}
            found += [test for node in ast.walk(function) for test in conditions(node) if not known(test, constant)]
    return [ast.unparse(test) for test in found]


def of_kernels(decorator):
    return ast.unparse(decorator).startswith(("device", "triton.jit"))


def conditions(node):
    return [node.test] if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert) else []


def known(test, constant):
    """Return whether a condition reads constants and dtypes alone."""
    if isinstance(test, ast.Name):
        return test.id in constant or test.id == "tl"
    if isinstance(test, ast.Attribute):
        return test.attr == "dtype" or known(test.value, constant)
    if isinstance(test, ast.Call):
        return False
    return all(known(part, constant) for part in ast.iter_child_nodes(test))


def test_no_kernel_branches_on_data():
    """Triton compiles a product under a condition on data into wrong code for halves, which no interpreter shows."""
    files = sorted((HERE.parent / "veriformer/impl/attention_backends/flash").glob("*.py"))
    found = {file.name: data_conditions(ast.parse(file.read_text())) for file in files}
    assert {name: told for name, told in found.items() if told} == {}


def test_a_branch_on_data_is_noticed():
    kernel = """
@device
def add(total, rows, EDGE: tl.constexpr):
    if EDGE or rows.dtype == tl.float16:
        total += 1
    if tl.max(rows) > 0:
        total += 2
    return total if total else rows
"""
    assert data_conditions(ast.parse(kernel)) == ["tl.max(rows) > 0", "total"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_every_width_has_a_launch_of_powers_of_two(dtype):
    for width, tiles in itertools.product((1, 16, 64, 65, 128, 200, 256), TABLES):
        chosen = launch(width, dtype, False, tiles.shared)
        for blocks in (chosen.forward, chosen.to_queries, chosen.to_keys, chosen.to_bias):
            assert blocks.rows & (blocks.rows - 1) == blocks.cols & (blocks.cols - 1) == 0
            assert min(blocks.rows, blocks.cols) >= 16
            assert blocks.cols <= 128  # add_weighed_seen counts no more
        assert padded(width) >= max(width, 16) > padded(width) // 2 or padded(width) == 16


def test_cards_between_two_tables_have_the_tiles_of_the_smaller():
    for one in (232_448, 232_447, 166_912, 101_376, 65_536):
        most = max((tiles.shared for tiles in TABLES if tiles.shared <= one), default=TABLES[-1].shared)
        assert launch(128, torch.bfloat16, False, one) is launch(128, torch.bfloat16, False, most)
    assert launch(128, torch.bfloat16, False, 232_448) != launch(128, torch.bfloat16, False, 232_447)


@installed
@pytest.mark.whole
@pytest.mark.skipif(interpreting(), reason="interpreted kernels are not compiled")
def test_kernels_compile_for_a_gpu_that_is_not_there(tmp_path):
    """The interpreter admits more than the compiler does, which needs no GPU to run."""
    cards = ("80", "90", "100")
    words = ["--small", "--capability", *cards, "--dtype", "fp16", "--width", "24", "--options", "all"]
    found = python(str(HERE / "compile_triton_kernels.py"), *words, TRITON_CACHE_DIR=str(tmp_path))
    assert found.returncode == 0, found.stdout + found.stderr[-3000:]
    made = {(row["kernel"], str(row["capability"])) for row in map(json.loads, found.stdout.splitlines())}
    assert made == set(itertools.product(NAMES, cards))


@installed
def test_kernels_fit_the_cards_in_the_tiles_that_are_launched():
    """Larger tiles than a card has shared memory for raise where the card is, and nowhere else."""
    from tests.compile_triton_kernels import FILE, SHARED, TENSOR, sources

    kept = json.loads(FILE.read_text(encoding="utf-8"))
    assert kept["sources"] == sources(), "the kernels are other ones than were compiled: run nox -s kernels"
    cases = {tuple(row[name] for name in ("capability", "dtype", "width", "options")) for row in kept["kernels"]}
    widths, options = (64, 128, 256), ("plain", "all")
    assert cases == set(itertools.product((80, 86, 90, 100), ("fp16", "bf16", "fp32"), widths, options))
    for row in kept["kernels"]:
        assert row["shared"] <= SHARED[row["capability"]], row
        assert row["tensor"] <= TENSOR, row
        assert row["spilled"] <= SPILLED[row["options"]], row

"""No integer of a kernel overflows, and no grid is larger than a GPU takes, for as many and as long texts as there are.

Neither has a size at which a test could run it: what is compiled is looked at instead."""

from functools import cache

import pytest
import torch

from tests.triton_kernels import INSTALLED
from veriformer.impl.attention_backends.flash.availability import interpreting
from veriformer.impl.attention_backends.flash.launch import TABLES, launch

pytestmark = pytest.mark.skipif(not INSTALLED or interpreting(), reason="needs Triton, whose kernels are compiled")

AXES = (2**31 - 1, 65_535, 65_535)
"""Programs that CUDA takes along each axis of a grid."""

N, B, G, H = 131_072, 2**14, 4, 8
ANY, REACH = (0, 2**31 - 1), 2**23 - 1
"""Strides that fit an argument of 32 bits, and those of rows and columns together that `_within_reach` lets through."""

NAMES = ("forward", "row_products", "query_gradients", "key_gradients", "bias_gradients")
OPTIONS = {"is_causal": True, "window": 20, "softcap": 3.0, "dropout_p": 0.0}


@cache
def made(width, shared):
    """Return grids and intermediate representations of all kernels for halves, with every option that has addresses."""
    from tests.triton_ranges import Ranges
    from veriformer.impl.attention_backends.flash.function import Plan

    with torch.device("meta"):
        q, k = torch.empty(B, H, N, width, dtype=torch.float16), torch.empty(B, G, N, width, dtype=torch.float16)
        mask, bias = torch.empty(B, 1, N, N, dtype=torch.uint8), torch.empty(1, H, N, N)
        plan = Plan(**OPTIONS, scale=0.1, launch=launch(width, torch.float16, False, shared))
        kernels = Ranges(plan, q, k, k, bias, mask, None)
        o, lse = kernels.forward()
        D = kernels.row_products(o, o)
        kernels.query_gradients(o, lse, D)
        kernels.key_gradients(o, lse, D)
        kernels.bias_gradients(o, lse, D)
    return kernels


def arguments(width, rows, cols):
    """Return the intervals of all arguments, where rows and columns of q, k, v and the cotangent have such strides."""
    strides = {f"{x}_{axis}": ANY for x in "qkvg" for axis in "bh"}
    strides |= {f"{x}_n": (0, rows) for x in "qkvg"} | {f"{x}_d": (0, cols) for x in "qkvg"}
    strides |= {f"{x}_{axis}": ANY for x in ("bias", "mask") for axis in "bhij"}
    sizes = {"n_q": (1, N), "n_k": (1, N), "d_k": (1, width), "d_v": (1, width), "GROUP": (1, 2)}
    heads = {"B": (1, 2**16), "B_BIAS": (1, 2**16), "H": (2, 2**16), "H_BIAS": (1, 2**16)}
    return strides | sizes | heads | {"shift": (-N, N), "window": (0, 2 * N)}


@pytest.mark.parametrize("shared", [tiles.shared for tiles in TABLES])
@pytest.mark.parametrize("width", [64, 256])
def test_grids_have_as_many_programs_as_a_gpu_takes(width, shared):
    """Batch and heads are the first axis, which alone may have more than 65 535 programs."""
    for name, grid in made(width, shared).grids.items():
        assert all(programs <= most for programs, most in zip(grid, AXES, strict=False)), (name, grid)
    assert made(width, shared).grids["forward"][0] == B * H > AXES[1]


@pytest.mark.parametrize("strides", [(REACH, 1), (1, REACH)], ids=["rows far apart", "columns far apart"])
@pytest.mark.parametrize("width", [64, 256])
@pytest.mark.parametrize("name", NAMES)
def test_no_integer_overflows(name, width, strides):
    """There are 2³⁰ heads, and 2²⁴ of a bias, beyond which its bounds on their product would be too wide."""
    from tests.triton_ranges import overflows

    kernels = made(width, TABLES[0].shared)
    programs = (2**24 if name == "bias_gradients" else 2**30, *kernels.grids[name][1:])
    assert overflows(kernels.texts[name], arguments(width, *strides), programs) == []


def test_an_overflow_is_noticed():
    from tests.triton_ranges import overflows

    text = """
    %c128_i32 = arith.constant 128 : i32 loc(#loc1)
    %0 = tt.get_program_id y : i32 loc(#loc2)
    %1 = arith.muli %0, %c128_i32 : i32
    %2 = arith.subi %n, %1 : i32 loc(#loc3)
    %3 = scf.for %i = %1 to %n step %c128_i32 iter_args(%4 = %cst) -> (tensor<64xf32>) : i32 {
      %5 = arith.muli %i, %i : i32
      %6 = arith.extsi %i : i32 to i64
      %7 = arith.muli %6, %6 : i64
      %8 = arith.addi %6, %unheard : i64
    """
    for n, lines in ((2**15, ["%8"]), (N, ["%5", "%8"])):
        found = overflows(text, {"n": (1, n)}, (1, n // 128, 1))
        assert [line.split(" = ")[0].split()[-1] for line in found] == lines


def test_tensors_whose_tiles_leave_32_bits_are_copied():
    from veriformer.impl.attention_backends.flash.differentiable import _within_reach

    def strided(*strides):
        return torch.empty_strided((1, 1, 300, 256), (1, 1, *strides), dtype=torch.float16, device="meta")

    for kept in (strided(256, 1), strided(REACH - 1, 1), strided(1, REACH - 1)):
        assert _within_reach(kept) is kept
    for far in (strided(2**23, 1), strided(1, 2**23), strided(2**22, 2**22), strided(REACH, REACH)):
        assert _within_reach(far).is_contiguous()
